/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw_alloc.h - the calls that make, bind and end memory windows.
 */
#ifndef SHCA_MW_ALLOC_H
#define SHCA_MW_ALLOC_H

#include "hca/memory/mw.h"

/* Implement the libibverbs calls of the same names. */
struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int shca_dealloc_mw(struct ibv_mw *mw);
int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* Ends a window for its peers; the struct stays. */
void shca_mw_end(struct shca_mw *mw);

#endif
