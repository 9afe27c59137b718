/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.h - completion queues: any executor produces, the owner polls.
 */
#ifndef SHCA_CQ_H
#define SHCA_CQ_H

#include "hca/memory/mem.h"
#include "hca/objects.h"
#include "hca/ops.h"

/* The bytes of a message that fit into the slot of a completion, of those of --cqe-payload. */
#define SHCA_CQ_SHORT 192

/*
 * Can the next completion of this CQ carry the first len bytes of c->src to c->dst? Then *pocket is
 * where (0: in its slot), for the `pocket` of the completion, which has to be produced. What is not
 * short only if its memory is pinned: it is copied by instructions, and memory that isn't there has
 * to be an error rather than a SIGSEGV. Inside an epoch.
 */
bool shca_cq_carries(const struct shca_cq_entry *e, const struct shca_copy *c, uint32_t len,
		     uint16_t *bounce);
/* Messages will come to this CQ of ours: makes room for them. */
void shca_cq_receives(struct shca_cq *cq);
/*
 * Adds completion *c, with its payload gathered from runs (own memory). 0, or -ENOSPC: the queue
 * overran (IBA 11.6.3.1): the owner was told by an async event; the caller's QP is to fail. Inside
 * an epoch; `e` must be live or this process's own.
 */
int shca_cq_produce(struct shca_hca *hca, struct shca_cq_entry *e, const struct shca_cqe *c,
		    const struct shca_run *runs);

/* Does the queue hold completions that were not polled? Inside an epoch. */
bool shca_cq_holds(struct shca_cq_entry *e);
/* Raises the completion event of a CQ if it is armed for such a completion. */
void shca_cq_fire(struct shca_hca *hca, struct shca_cq_entry *e, bool solicited);

/* A forked child starts anew (reset.c). */
void shca_cq_reset(void);

/* Drops the completions of a QP that is being destroyed or reset; nothing of it is in flight any
 * more. `dropped` is called for each. Holding cq->lock. */
void shca_cq_purge(struct shca_cq *cq, uint32_t qp_idx, uint32_t qpn,
		   void (*dropped)(struct shca_cq *cq, const struct shca_cqe *c));
/* Moves what lies in the ring to the heap of completions that wait for their time. Holding
 * cq->lock. */
void shca_cq_ring_to_heap(struct shca_cq *cq);

/* Takes the next completion; NULL: none that may be seen. Holding cq->lock. Valid until
 * shca_cq_pop(). */
struct shca_cqe *shca_cq_peek(struct shca_cq *cq);
void shca_cq_pop(struct shca_cq *cq);
/* When the next completion may be seen, of those that a solicited-only arming asks for: 0 = there
 * is none, 1 = now. Holding cq->lock. */
uint64_t shca_cq_next_visible(struct shca_cq *cq, bool solicited_only);
/* Moves what the ring holds to the heap and gives up on the rest: nobody produces into it any more.
 * Holding cq->lock. */
void shca_cq_close_ring(struct shca_cq *cq);
/* Before that: a producer that died may not have moved the tail behind its completion. */
void shca_cq_repair_tail(struct shca_cq *cq);
/* Calls fn for each completion that was not polled. Holding cq->lock. */
void shca_cq_each(struct shca_cq *cq, void (*fn)(struct shca_cq *cq, struct shca_cqe *c, void *arg),
		  void *arg);
/* Puts the bytes that wait in completions, of one queue or of all, where they belong: memory of
 * this process is about to be deregistered. */
void shca_cq_deliver_payloads(struct shca_cq *cq);
void shca_cq_deliver_all_payloads(void);
/* Turns it into a work completion, scattering its payload. 0, or -ENOENT: its queue is gone, as
 * with mlx5 after an SRQ was destroyed before its completions were polled. */
int shca_cq_read(struct shca_cq *cq, const struct shca_cqe *c, struct ibv_wc *wc);
/* True if a poll may find something; no lock. */
bool shca_cq_maybe(struct shca_cq *cq);
/* What a thread does that polled in vain: sees to what peers flagged, and yields the CPU now and
 * then. */
void shca_cq_idle(struct shca_cq *cq);

/* cq_ex.c: fills in the function pointers of an extended CQ. */
void shca_cq_ex_init(struct shca_cq *cq, uint64_t wc_flags);

#endif
