/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clocked.h - the operations of the data path in virtual time, each a sync point.
 */
#ifndef SHCA_CLOCKED_H
#define SHCA_CLOCKED_H

#include "hca/context.h"

/* Puts them into the tables in place of the plain ones. */
void shca_clocked_ops(struct ibv_context_ops *ops);
/* Make objects whose extended interfaces are in virtual time too; otherwise as the functions of
 * hca/ without "clocked". */
struct ibv_cq_ex *shca_clocked_create_cq_ex(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *shca_clocked_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

#endif
