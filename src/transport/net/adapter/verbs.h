/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs, and what a device lacks of it. tupleq-check is compiled with these files, too. */
#ifndef TQ_NET_VERBS_H
#define TQ_NET_VERBS_H

/* The library is built with hidden visibility, and these functions are not its own. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

/*
 * Returns the verb by which a device with XRC fails, with its error, or NULL. All providers report
 * the capability, but not all of them have ibv_open_qp(), by which the processes of a node share
 * their connections. So a domain and a target QP are made, which nobody else sees, and that QP is
 * opened once more.
 */
const char *tq_missing_of_xrc(struct ibv_context *verbs, int *error);

#endif
