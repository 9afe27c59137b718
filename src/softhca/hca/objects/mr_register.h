/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_register.h - the calls that make, change and end memory regions.
 */
#ifndef SHCA_MR_REGISTER_H
#define SHCA_MR_REGISTER_H

#include "hca/memory/mr.h"

/* Implement the libibverbs calls of the same names. */
struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *shca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			      unsigned int access);
int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sge, uint32_t n);

/* Ends a region for its peers and unpins its memory; the struct stays. */
void shca_mr_end(struct shca_mr *mr);

#endif
