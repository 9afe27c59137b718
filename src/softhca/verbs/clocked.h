/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clocked.h - the operations of the data path in virtual time, each a sync point.
 */
#ifndef SHCA_CLOCKED_H
#define SHCA_CLOCKED_H

#include "hca/context.h"

/* Puts these operations into a context's table in place of the plain ones, if time is virtual. */
void shca_clocked_ops(struct ibv_context_ops *ops);
/* Makes an object whose extended interface is in virtual time, too, and otherwise does what the
 * function of hca/ without "clocked" in its name does. */
struct ibv_cq_ex *shca_clocked_create_cq_ex(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *shca_clocked_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

#endif
