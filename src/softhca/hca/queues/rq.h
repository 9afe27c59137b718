/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rq.h - receive queues, of QPs and SRQs alike. The owner posts; any requester claims, lock-free.
 */
#ifndef SHCA_RQ_H
#define SHCA_RQ_H

#include "hca/objects.h"

/* --- owner --- */

/* Makes the rings of a queue for at least max_wr receives (a power of two, minus one on an SRQ, as
 * mlx5 makes them, but not above the device's limit). The shared part is filled in; *max_wr becomes
 * what it holds. 0 or -ENOMEM. */
int shca_rq_init(struct shca_rq_local *rq, struct shca_rq *shared, bool is_srq, uint32_t *max_wr,
		 uint32_t max_sge);
void shca_rq_fini(struct shca_rq_local *rq);
/* Posts a list; 0, EINVAL or ENOMEM with *bad set. */
int shca_rq_post(struct shca_rq_local *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Gives a WQE slot back, when its completion was polled or dropped. */
void shca_rq_release(struct shca_rq_local *rq, uint32_t slot);
/* Marks the WQE slots that are free or posted, of rq->mask + 1. With rq->lock. */
void shca_rq_mark(struct shca_rq_local *rq, bool *slots);
/* Takes back all that is posted, without completions (QP to RESET). */
void shca_rq_reset(struct shca_rq_local *rq);

static inline struct shca_rwqe *shca_rq_own_wqe(const struct shca_rq_local *rq, uint32_t slot)
{
	return (struct shca_rwqe *)(rq->wqes + (uint64_t)slot * rq->shared->stride);
}

/* --- any process, inside an epoch --- */

/* Takes the oldest receive of the queue `rq` of process proc: its WQE slot. -EAGAIN: none is
 * posted. -ESRCH: no such memory. */
int shca_rq_claim(struct shca_fabric *f, unsigned proc, struct shca_rq *rq, uint32_t *slot);
/* What the next claim of the queue will read if nobody else comes before: the next position and, on
 * a queue with one receive at a time, the WQE that this one had. Its owner wrote both last, so a
 * requester fetches them while it still prepares its message. Only ever prefetched from. */
void shca_rq_look_ahead(struct shca_fabric *f, unsigned proc, const struct shca_rq *rq,
			uint32_t slot, struct shca_rq_ahead *ahead);
struct shca_rwqe *shca_rq_wqe(struct shca_fabric *f, unsigned proc, const struct shca_rq *rq,
			      uint32_t slot);
/* Says that this process waits for a receive there: it looks once more, and is rung after that. */
void shca_rq_wait(struct shca_rq *rq);
/* Rings the engines of those who wait: a receive was posted, or the queue has ended. */
void shca_rq_wake_waiters(struct shca_rq *rq);
/* Receives that are posted and not claimed. */
uint32_t shca_rq_posted(const struct shca_rq *rq);

#endif
