/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.h - completion queues: any executor produces, the owner polls.
 */
#ifndef SHCA_CQ_H
#define SHCA_CQ_H

#include "fabric/table.h"
#include "hca/context_objects.h"
#include "hca/memory/mem.h"

/* The most bytes of a message that travel in the slot of its completion; --cqe-payload may allow
 * more, which travel in bounce buffers. */
#define SHCA_CQ_SHORT 192

/* Largest number of holes (cq_ring.h) of a CQ at a time: at this limit, the consumer stops at a
 * slot that is being written. A choice: a hole needs a producer that is stopped between two
 * instructions, and each poll looks at all holes. */
#define SHCA_CQ_HOLES 64
struct shca_cq_pending; /* cq_heap.h */

struct shca_cq {
	struct ibv_cq_ex ibv; /* also used as struct ibv_cq */
	pthread_mutex_t lock;
	/* Held from start_poll to end_poll, while the user's code runs. Nothing else waits for this
	 * lock, because that code may call any function. */
	pthread_mutex_t polling;
	struct shca_cq_entry *entry;
	uint32_t idx;
	uint32_t number;
	char *ring; /* struct shca_cq_ring, then the slots */
	uint32_t log2_slots;
	uint32_t stride;
	uint64_t ring_off, ring_len;     /* place of the ring in the arena */
	uint64_t next;                   /* position that a poll looks at */
	struct shca_cq_pending *pending; /* heap by (visible_at, order) */
	uint32_t npending, pending_room;
	uint64_t order;                /* number of the next completion that goes into the heap */
	uint64_t holes[SHCA_CQ_HOLES]; /* positions skipped while their producer writes them */
	uint32_t nholes;
	bool holed;           /* true if positions may be passed over, because of a hole */
	uint64_t holed_until; /* if there is no hole any more: position from which none is */
	/* The completion that the extended interface reads, and its time stamp (ns). */
	struct ibv_wc cur_wc;
	uint64_t cur_ts;
	struct shca_table_last last_region; /* where the last payload went */
	struct shca_rq_local *read_rq; /* queue of the last receive that was read, which is locked;
					  NULL outside of a poll */
	uint32_t empty_polls;
	struct shca_pd *parent_domain;                  /* that it was made in, or NULL */
	_Atomic uint32_t refs;                          /* QPs and SRQs that report here */
	uint32_t comp_events_given, async_events_given; /* hca/event_ack.h */
	struct shca_context_object context_node;
};

/* Most of event moderation that a ConnectX takes: completions, and us. */
#define SHCA_CQ_MOST_COUNT  65535
#define SHCA_CQ_MOST_PERIOD 4095

/* Implement the libibverbs calls of the same names. */
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int shca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/* ---------------------------------------------------------------- cq.c: the life of a CQ */

/* Returns this process's CQ with that table index, if it still has that number; else NULL. */
struct ibv_cq *shca_cq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);
/* Ends a CQ for its peers and gives its memory back; the struct stays. */
void shca_cq_end(struct shca_cq *cq);
/* Makes bounce buffers for a CQ that will report receives. */
void shca_cq_make_bounces(struct shca_cq *cq);
/* Delivers the payloads that wait in completions of all CQs: memory of this process is about to be
 * deregistered. */
void shca_cq_deliver_all_payloads(void);
/* Starts over, in a forked child. */
void shca_cq_reset(void);

/* ---------------------------------------------------------------- cq_produce.c: any process */

/*
 * Returns true if the next completion of this CQ can carry the first len bytes of copy->src to
 * copy->dst. *bounce is then the number of the buffer to pass in the completion (0: the payload
 * fits into the slot), and the caller has to produce that completion. Payloads above SHCA_CQ_SHORT
 * are carried only if their memory is pinned: they are copied by instructions, and memory that
 * isn't there has to be an error rather than a SIGSEGV. Inside an epoch.
 */
bool shca_cq_carries(const struct shca_cq_entry *entry, const struct shca_copy *copy, uint32_t len,
		     uint16_t *bounce);
/*
 * Adds a completion, with its payload gathered from runs of own memory. Returns 0, or -ENOSPC if
 * the queue overran (IBA 11.6.3.1), of which the owner got an asynchronous event, or can't be
 * mapped: the caller fails the QP. Inside an epoch in which `entry` was live, or for an own CQ.
 */
int shca_cq_produce(struct shca_hca *hca, struct shca_cq_entry *entry, const struct shca_cqe *cqe,
		    const struct shca_run *runs);

/* ---------------------------------------------------------------- cq_poll.c */

/* Delivers the payloads that wait in completions of one CQ. */
void shca_cq_deliver_payloads(struct shca_cq *cq);
/* Turns a completion into a work completion (in which it leaves the fields that mlx5 doesn't fill
 * in for such a completion), delivers its payload, and frees its WQE slot. Returns 0, or -ENOENT if
 * its queue is gone, as with mlx5 when an SRQ was destroyed before its completions were polled, or
 * has no such request. The caller holds cq->lock, and before it lets that go calls
 * shca_cq_stop_reading(): until then a receive queue may stay locked. */
int shca_cq_read(struct shca_cq *cq, const struct shca_cqe *cqe, struct ibv_wc *wc);
void shca_cq_stop_reading(struct shca_cq *cq);
/* Counts an empty poll, and yields the CPU after many of them: then it returns true. */
bool shca_cq_idle(struct shca_cq *cq);

/* ---------------------------------------------------------------- cq_ex.c */

/* Fills in the function pointers of an extended CQ. */
void shca_cq_ex_init(struct shca_cq *cq, uint64_t wc_flags);
/* Makes these functions fail from here on. */
void shca_cq_ex_refuse(struct shca_cq *cq);

#endif
