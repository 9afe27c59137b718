/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * objects.h - the private half of each verbs object: what only its own process sees. Each embeds
 * the public struct, so a pointer from the user is one to ours.
 *
 * Lock order: the handout lock (event_ack.h), those of lists of objects (qp.c, cq.c), cq->lock,
 * qp->sq_lock, rq->lock, the engine's or the one of segment.c. No lock is held across a wait for
 * another process.
 */
#ifndef SHCA_OBJECTS_H
#define SHCA_OBJECTS_H

#include <pthread.h>

#include "fabric/epoch.h"
#include "fabric/event.h"
#include "fabric/fabric.h"
#include "fabric/table.h"

/* This process on its fabric; one per process. */
struct shca_process {
	struct shca_fabric fabric;
	unsigned slot; /* in the process table; SHCA_NO_PROC before the first ibv_open_device */
	struct shca_proc *proc;
	unsigned tag; /* slot and generation: tells a slot's lives apart */
	unsigned node;
	unsigned life; /* counts forks: which contexts are this process's own */
};
extern struct shca_process shca_self;

#define SHCA_TAG(slot, state) ((unsigned)(slot) | ((unsigned)((state) >> 8) & 0xff) << 8)
static inline bool shca_tag_alive(unsigned tag)
{
	unsigned slot = tag & 0xff;
	uint64_t s = atomic_load_explicit(&shca_self.fabric.hdr->procs[slot].state,
					  memory_order_acquire);

	return shca_proc_state_alive(s) && SHCA_TAG(slot, s) == tag;
}

/* The device struct that applications see, with room behind it that providers' checks may read as
 * zeros. */
struct shca_device {
	struct ibv_device ibv;
	char provider_room[1024];
	struct shca_hca *hca;
};

/* What a context owns, in the order in which the kernel ends it when the context is closed: users
 * before what they use. */
enum shca_object_kind {
	SHCA_OBJECT_QP,
	SHCA_OBJECT_SRQ,
	SHCA_OBJECT_MR,
	SHCA_OBJECT_CQ,
	SHCA_OBJECT_XRCD,
	SHCA_OBJECT_PD,
	SHCA_OBJECT_TD,
	SHCA_OBJECT_CHANNEL,
	SHCA_OBJECT_KINDS
};
struct shca_context_object { /* context_objects.h */
	struct shca_context_object *next, **at;
	void *object;
	enum shca_object_kind kind;
};

#define SHCA_CLOSED 0
struct shca_context {
	struct verbs_context vctx; /* vctx.context is what the user holds */
	struct shca_hca *hca;
	unsigned hca_idx;
	uint32_t async_channel; /* event.h id */
	unsigned life;          /* shca_self.life, or SHCA_CLOSED */
	struct shca_context_object *objects;
	struct shca_context *next;
};

static inline struct shca_context *shca_ctx(struct ibv_context *c)
{
	return (struct shca_context *)((char *)c - offsetof(struct shca_context, vctx.context));
}

/*
 * May this process use what is in that context? Not if it came with a fork, when it is the parent's
 * and any use would harm the parent; and not after it was closed. Data path functions don't ask:
 * they are taken out of such a context's tables.
 */
static inline bool shca_ours(struct ibv_context *c)
{
	return shca_ctx(c)->life == shca_self.life;
}

struct shca_pd {
	struct ibv_pd ibv;
	uint32_t pdn;
	_Atomic uint32_t refs;     /* MRs, QPs, SRQs, parent domains in it */
	struct shca_pd *parent_of; /* a parent domain: the PD it stands for */
	struct ibv_td *td;
	struct shca_context_object context_node;
};

struct shca_td {
	struct ibv_td ibv;
	struct shca_context_object context_node;
	_Atomic uint32_t refs;
};

struct shca_mr {
	struct ibv_mr ibv;
	struct shca_mr_entry *entry;
	uint64_t pinned; /* bytes counted against memlock */
	struct shca_context_object context_node;
};

struct shca_channel {
	struct ibv_comp_channel ibv;
	uint32_t id;
	struct shca_context_object context_node;
};

struct shca_xrcd {
	struct ibv_xrcd ibv;
	struct shca_xrcd_entry *entry;
	uint32_t idx;
	_Atomic uint32_t refs;
	struct shca_context_object context_node;
};

struct shca_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	int hca;       /* index of the destination HCA, -1 = nowhere */
	int multicast; /* dgid is a multicast group */
};

struct shca_rq_local; /* rq.h */

#define SHCA_CQ_HOLES 64
struct shca_cq_pending; /* cq_heap.h: a completion taken from the ring before it may be seen */

struct shca_cq {
	struct ibv_cq_ex ibv; /* also used as struct ibv_cq */
	pthread_mutex_t lock;
	/* From start_poll to end_poll, while the user's code runs: nothing else waits for it, as
	 * that may call whatever it likes. */
	pthread_mutex_t polling;
	struct shca_cq_entry *entry;
	uint32_t idx;
	uint32_t number;
	char *ring; /* shca_cq_ring, slots */
	uint32_t log2_slots;
	uint32_t stride;
	uint64_t ring_off, ring_len;     /* in the arena */
	uint64_t next;                   /* position that a poll looks at */
	struct shca_cq_pending *pending; /* heap by (visible_at, order) */
	uint32_t npending, pending_room;
	uint64_t order;
	uint64_t holes[SHCA_CQ_HOLES]; /* positions left while their producer writes them */
	uint32_t nholes;
	bool holed; /* there were holes: positions may be passed by */
	struct ibv_wc cur_wc;
	uint64_t cur_ts;
	uint32_t empty_polls;
	_Atomic uint32_t refs;                          /* QPs and SRQs that report here */
	uint32_t comp_events_given, async_events_given; /* event_ack.h */
	struct shca_context_object context_node;
};

/* Owner's side of a receive queue. */
struct shca_rq_local {
	pthread_mutex_t lock;
	struct shca_rq *shared;
	_Atomic uint64_t *ring;
	char *wqes;
	uint32_t *free_list; /* WQE slots that are the owner's; a stack */
	uint32_t nfree;
	uint32_t mask;
	uint64_t ring_off, ring_len, backed; /* in the arena; that much of it has memory */
	bool is_srq;
};

/* What a requester fetches ahead of another process's receive queue. Never dereferenced. */
struct shca_rq_ahead {
	const void *position, *wqe;
};

struct shca_srq {
	struct ibv_srq ibv;
	struct shca_srq_entry *entry;
	uint32_t idx;
	uint32_t number;
	struct shca_rq_local rq;
	struct shca_cq *cq;     /* XRC */
	struct shca_xrcd *xrcd; /* XRC */
	_Atomic uint32_t refs;  /* QPs that receive from it */
	uint32_t events_given;  /* event_ack.h */
	struct shca_context_object context_node;
};

struct shca_qp; /* qp.h */

#endif
