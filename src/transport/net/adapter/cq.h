/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two completion queues: of receives (rcq) and of sends (scq). Each work request that is posted
 * has its slot reserved before; cq.c knows nothing of what it stands for.
 */
#ifndef TQ_NET_CQ_H
#define TQ_NET_CQ_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/adapter/address.h"

struct tq_net;
struct tq_work;

/* Handles a completion. Gives the slot back, or posts again in it. */
typedef void tq_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc);

/* The object to which a completion's wr_id points: each kind of work request embeds one. */
struct tq_work {
	tq_done *done;
};

struct tq_cq {
	struct ibv_cq *cq;
	uint32_t size; /* slots */
	uint32_t used; /* reserved slots */
	uint32_t most; /* slots that it may grow to */
	int ask;       /* completions that the next poll asks for */
	/* scq: */
	uint32_t awaited; /* completions that somebody waits for: each poll looks */
	uint32_t starved; /* reserves of copies that are empty until sends end: each poll looks */
	uint32_t skipped; /* polls without a look at it */
	bool look;        /* a queue is filling up, or full: the next poll looks at it */
	uint32_t held;    /* used slots of hold lanes */
	uint32_t kept;    /* free slots that are kept for the next marker of each hold lane */
	/* rcq: */
	struct tq_net *net; /* for the counters of its size; NULL: scq, which doesn't grow */
	bool empty;         /* the last poll left nothing in it */
	bool sweeping;      /* there may be completions of SRQs in it that are destroyed */
};

int tq_cqs_open(struct tq_net *net);
void tq_cqs_close(struct tq_net *net);

/* Makes room for n more slots. Returns false if the queue has as many as it may or can have. */
bool tq_cq_grow(struct tq_cq *cq, uint32_t n);
/* Reserves n slots. Returns false if there is no room. Inline, as each message comes through here
 * several times. */
static inline bool tq_cq_reserve(struct tq_cq *cq, uint32_t n)
{
	if (n > cq->size - cq->used - cq->kept && !tq_cq_grow(cq, n))
		return false;
	cq->used += n;
	return true;
}
/* Returns true if the send queue can keep a slot for the next marker of a further hold lane. */
static inline bool tq_cq_can_keep_marker(const struct tq_cq *scq)
{
	return scq->kept < scq->size / 8 && scq->kept < scq->size - scq->used;
}
/* Gives n reserved slots back. */
static inline void tq_cq_release(struct tq_cq *cq, uint32_t n)
{
	assert(n <= cq->used);
	cq->used -= n;
}

/* Polls the receive queue, and the send queue if there is a reason to. Returns the number of
 * completions. */
int tq_cq_poll(struct tq_net *net, int budget);
/* Polls the send queue. */
int tq_cq_poll_sends(struct tq_net *net, int budget);
/* Polls away the completions of SRQs that were destroyed while a peer may still have sent to them.
 * Returns the number of completions. */
int tq_cq_sweep(struct tq_net *net);

#endif
