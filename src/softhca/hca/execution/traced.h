/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traced.h - records of posted sends and of messages, for the option "trace".
 */
#ifndef SHCA_TRACED_H
#define SHCA_TRACED_H

#include "fabric/trace.h"
#include "req.h"

/* Records the sends from number `from` to before number `to`, which were just posted. The caller
 * holds sq_lock. */
void shca_traced_sends(const struct shca_qp *qp, uint32_t from, uint32_t to);
/* Records a message that has ended with that status, before its WQE is completed. */
void shca_traced_message(const struct shca_req *req, enum ibv_wc_status status);

#endif
