/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rq.h - receive queues, of QPs and SRQs alike. The owner posts; any requester claims, without a
 * lock.
 */
#ifndef SHCA_RQ_H
#define SHCA_RQ_H

#include "hca/process.h"

/* The owner's side of a receive queue. */
struct shca_rq_local {
	pthread_mutex_t lock;
	struct shca_rq *shared;
	_Atomic uint64_t *ring;
	char *wqes;
	uint32_t *free_list; /* stack of the WQE slots that are the owner's */
	uint32_t nfree;
	uint32_t mask;
	uint64_t ring_off, ring_len; /* place of the rings in the arena */
	uint64_t backed;             /* bytes of them that have memory */
	uint32_t backed_wqes;        /* WQEs that have memory */
	bool is_srq;
};

/* Addresses that a requester prefetches from another process's receive queue. Never dereferenced.
 */
struct shca_rq_ahead {
	const void *position, *wqe;
};

/* ---------------------------------------------------------------- the owner */

/* Makes the rings of a queue for at least max_wr receives (a power of two, minus one on an SRQ, as
 * mlx5 makes them, but not above the device's limit), and fills in the shared part. *max_wr becomes
 * the capacity. Returns 0 or -ENOMEM. */
int shca_rq_init(struct shca_rq_local *rq, struct shca_rq *shared, bool is_srq, uint32_t *max_wr,
		 uint32_t max_sge);
/* Frees the rings, if there are any. No process may reach them any more (epoch.h). */
void shca_rq_fini(struct shca_rq_local *rq);
/* Posts a list of receives, of at most max_sge elements each. Returns 0, or EINVAL or ENOMEM with
 * *bad set. */
int shca_rq_post(struct shca_rq_local *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		 int max_sge);
/* Records (fabric/trace.h) the receives from `wr` to before `end`, which were just posted to the
 * queue of that QP or SRQ. */
void shca_rq_trace(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *end, uint32_t qpn,
		   uint32_t srqn);
/* Gives a WQE slot back, after its completion was polled or dropped. Like the functions below, it
 * takes any number for a slot, because other processes may have written it, and uses the bits that
 * a slot has. */
void shca_rq_release(struct shca_rq_local *rq, uint32_t slot);
/* Gives a WQE slot back. The caller holds rq->lock. */
void shca_rq_release_locked(struct shca_rq_local *rq, uint32_t slot);
/* Marks the WQE slots (rq->mask + 1 of them) that are free or posted. The caller holds rq->lock. */
void shca_rq_mark(struct shca_rq_local *rq, bool *slots);
/* Takes back all posted receives, without completions, when the QP goes to RESET. */
void shca_rq_reset(struct shca_rq_local *rq);

static inline struct shca_rwqe *shca_rq_own_wqe(const struct shca_rq_local *rq, uint32_t slot)
{
	return (struct shca_rwqe *)(rq->wqes + (uint64_t)(slot & rq->mask) * rq->shared->stride);
}

/* ---------------------------------------------------------------- any process, inside an epoch */

/* Returns the ring and the WQEs of a queue of process `proc`, the `mem` of the functions below, or
 * NULL if the owner's memory is gone. */
static inline char *shca_rq_map(struct shca_fabric *fabric, unsigned proc, const struct shca_rq *rq)
{
	return shca_arena(fabric, proc, rq->ring,
			  rq->wqes - rq->ring + (uint64_t)rq->size * rq->stride);
}
/* Returns the WQE of a slot. */
static inline struct shca_rwqe *shca_rq_wqe(char *mem, const struct shca_rq *rq, uint32_t slot)
{
	return (struct shca_rwqe *)(void *)(mem + (rq->wqes - rq->ring) +
					    (uint64_t)(slot & (rq->size - 1)) * rq->stride);
}
/* Takes the oldest receive and stores its WQE slot. Returns false if none is posted. */
bool shca_rq_claim(char *mem, struct shca_rq *rq, uint32_t *slot);
/* Gives a claimed receive back: the next claim takes it. */
void shca_rq_return(char *mem, struct shca_rq *rq, uint32_t slot);
/* Stores the addresses that the next claim of the queue will read if nobody else claims before: the
 * next position and, on a queue with one receive at a time, the WQE that this claim had. The owner
 * wrote both last, so a requester fetches them while it still prepares its message. */
static inline void shca_rq_look_ahead(char *mem, const struct shca_rq *rq, uint32_t slot,
				      struct shca_rq_ahead *ahead)
{
	uint64_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);

	ahead->position = mem + (head & (rq->size - 1)) * sizeof(uint64_t);
	ahead->wqe = shca_rq_wqe(mem, rq, slot);
}
/* Registers this process as waiting for a receive. The caller tries to claim once more after this;
 * from then on its engine is woken when one is posted. */
void shca_rq_add_waiter(struct shca_rq *rq);
/* Wakes the engines of the waiting processes: a receive was posted, or the queue has ended. */
void shca_rq_wake_waiters(struct shca_rq *rq);
/* Returns the number of receives that are posted and not claimed, without those that were given
 * back. */
uint32_t shca_rq_posted(const struct shca_rq *rq);

#endif
