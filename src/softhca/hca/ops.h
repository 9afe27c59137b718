/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - what verbs/ puts into the op tables of a context, and how it finds objects that an event
 * names. The functions have the signatures and the contracts of the libibverbs calls of the same
 * name.
 */
#ifndef SHCA_OPS_H
#define SHCA_OPS_H

#include "objects.h"

int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int shca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_srq *shca_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *num);

struct ibv_qp *shca_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);

struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int shca_close_xrcd(struct ibv_xrcd *xrcd);

struct ibv_mr *shca_alloc_null_mr(struct ibv_pd *pd);
int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sge, uint32_t n);

/* Closing a context ends what is left in it: peers find it no more, its memory is given back. The
 * structs stay: the user may still hold them. */
void shca_qp_end(struct shca_qp *qp, bool left); /* left = by this, not by ibv_destroy_qp() */
void shca_srq_end(struct shca_srq *srq);
void shca_cq_end(struct shca_cq *cq);
void shca_mr_end(struct shca_mr *mr);
void shca_xrcd_end(struct shca_xrcd *x);
/* Lets the functions that such an object carries itself refuse from here on. */
void shca_wr_api_refuse(struct shca_qp *qp);
void shca_cq_ex_refuse(struct shca_cq *cq);

/* Forgets everything that this process had on its fabric, in a forked child. */
void shca_hca_reset(void);

/* This process's object with that table index, if it still has that number; else NULL. */
struct ibv_qp *shca_qp_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);
struct ibv_srq *shca_srq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);
struct ibv_cq *shca_cq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);

#endif
