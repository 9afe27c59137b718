/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clocked.h - the operations of the data path in virtual time: those of hca/ops.h, each a sync
 * point.
 */
#ifndef SHCA_CLOCKED_H
#define SHCA_CLOCKED_H

#include "hca/context.h"

/* Puts them in place of those in the tables. */
void shca_clocked_ops(struct ibv_context_ops *ops);
/* As those of hca/ops.h; the extended interfaces of what they make are in virtual time, too. */
struct ibv_cq_ex *shca_clocked_create_cq_ex(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *shca_clocked_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

#endif
