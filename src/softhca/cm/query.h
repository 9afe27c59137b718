/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query.h - what an identifier knows: addresses, GIDs, path, and the attributes of its QP.
 */
#ifndef SHCA_CM_QUERY_H
#define SHCA_CM_QUERY_H

#include "cells.h"

void shca_query_addresses(const struct shca_fabric *fabric, const struct shca_cm_id *id,
			  struct rdma_ucm_query_addr_resp *resp);
void shca_query_gids(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		     struct rdma_ucm_query_addr_resp *resp);
void shca_query_route(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		      struct rdma_ucm_query_route_resp *resp);
/* Stores the path in a response of that many bytes. Returns how many of them it uses. */
size_t shca_query_path(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		       struct rdma_ucm_query_path_resp *resp, size_t len);
/* Fills in the attributes for a transition of the QP to attr->qp_state. Returns 0 or -EINVAL. */
int shca_query_qp(const struct shca_fabric *fabric, struct shca_cm_id *id,
		  struct ib_uverbs_qp_attr *attr);

#endif
