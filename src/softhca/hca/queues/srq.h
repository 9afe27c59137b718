/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq.h - shared receive queues, basic and XRC.
 */
#ifndef SHCA_SRQ_H
#define SHCA_SRQ_H

#include "cq.h"
#include "hca/domains.h"
#include "rq.h"

struct shca_srq {
	struct ibv_srq ibv;
	struct shca_srq_entry *entry;
	uint32_t idx;
	uint32_t number;
	struct shca_rq_local rq;
	struct shca_pd *pd;     /* domain that it counts for */
	struct shca_cq *cq;     /* XRC only */
	struct shca_xrcd *xrcd; /* XRC only */
	_Atomic uint32_t refs;  /* QPs that receive from it */
	uint32_t events_given;  /* hca/event_ack.h */
	struct shca_context_object context_node;
};

/* Implement the libibverbs calls of the same names. */
struct ibv_srq *shca_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Returns this process's SRQ with that table index, if it still has that number; else NULL. */
struct ibv_srq *shca_srq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);
/* Ends an SRQ for its peers and gives its memory back; the struct stays. */
void shca_srq_end(struct shca_srq *srq);

/* Sends the limit event of an SRQ, and disarms the limit, if the limit is armed and fewer receives
 * are posted. Any process, inside an epoch. */
void shca_srq_check_limit(struct shca_hca *hca, struct shca_srq_entry *srq);

#endif
