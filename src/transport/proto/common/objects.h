/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects that sender and receiver share: requests, peers, contexts, and the core. The sender's
 * own are in tx_objects.h, the receiver's in rx_objects.h.
 */
#ifndef TQ_PROTO_OBJECTS_H
#define TQ_PROTO_OBJECTS_H

#include <stdlib.h>
#include <tupleq/match.h>
#include <tupleq/tupleq.h>

#include "base/handles.h"
#include "base/lock.h"
#include "base/params.h"
#include "base/stats.h"
#include "base/util.h"
#include "proto/common/net_ops.h"

/* ---- requests ---- */

enum tq_req_kind {
	TQ_REQ_SEND,
	TQ_REQ_RECV,
	TQ_REQ_RMA,
	TQ_REQ_ENTRY, /* struct tq_entry, a receive in a context with match bits */
	TQ_REQ_KINDS
};

/* The common part of sends, receives and operations on peers' memory; first in each. */
struct tq_req {
	enum tq_req_kind kind;
	bool detached; /* ends without complete(): it has ended for the user, or has none */
	struct tq_core *core;
	void *user;
	struct tq_status status;
	struct tq_req *next; /* in the list of ended requests, or core->free_reqs */
};

/*
 * The messages that a receive or probe is for: those of a rank or of TQ_ANY_SOURCE, with this tag
 * except for the bits in `ignore`. Tags are 64 bits wide here. An MPI tag has its 32 bits and zeros
 * above; the highest of the 32 is set in tags that TQ_ANY_TAG does not match.
 */
struct tq_want {
	int rank;
	uint64_t tag, ignore;
};

/* Registered memory that is several pieces. */
struct tq_pieces {
	int n;
	struct tq_sg sg[TQ_MAX_PIECES];
	void *cookie[TQ_MAX_PIECES];
};

/* ---- who talks to whom ---- */

/* Places for tuples that were looked up lately, on each side of a pair, by their tag modulo this
 * number. A choice: programs use few tags at a time, and each place costs a pointer in each pair.
 */
#define TQ_RECENT 16u

/* A peer in a context. */
struct tq_pair {
	struct tq_ctx *ctx;
	struct tq_peer *peer;
	int rank;
	uint32_t cseq; /* sender: number of the next message */
	struct tq_tx_tuple *tx_tuples;
	uint32_t nqueued; /* of these, not in TQ_TX_TUPLE_CONTROL */
	struct tq_rx_tuple *rx_tuples;
	/* Tuples that were looked up lately, and likely will be again, by tq_pair_recent(tag). */
	struct tq_tx_tuple *recent_tx_tuples[TQ_RECENT];
	struct tq_rx_tuple *recent_rx_tuples[TQ_RECENT];
	struct tq_send_req *send_reqs;    /* list (pair_next): all sends under way */
	struct tq_unexpected *unexpected; /* queue by cseq */
	struct tq_msg *probed;            /* list: messages that matched probes have taken */
	uint32_t nfenced;                 /* tuples being recalled; > 0: in ctx->fenced */
	uint32_t nfenced_user;            /* of these, with a tag that TQ_ANY_TAG matches */
	/* With match bits. As receiver: the bits that the tuples ignore, and the mask's number; 0:
	 * there is no mask yet. */
	uint64_t mask;
	uint16_t mask_life;
	bool mask_due;   /* the sender does not know the mask */
	bool heard;      /* a message has come */
	uint32_t others; /* entries in a row with another mask */
	/* As sender: the mask that the receiver has named; 0: none. */
	uint16_t tx_mask_life;
	uint64_t tx_mask;
	struct tq_recv_req *active;  /* list (active_next): receives with data under way */
	struct tq_pair *next, *prev; /* ctx->fenced */
	struct tq_pair *peer_next, *peer_prev; /* peer->pairs */
};

/* The tuples to the processes of a node that have a hold lane with nothing outstanding. */
struct tq_idle_lanes {
	const void *node;           /* names the node */
	struct tq_tx_tuple *tuples; /* list (lane_next), the least recently used first */
	uint32_t npeers;            /* peers there; the last one takes this with it */
	UT_hash_handle hh;          /* core->idle_lanes, by node */
};

struct tq_peer {
	struct tq_core *core;
	struct tq_link *link;
	struct tq_idle_lanes *idle_lanes;
	int failed;      /* 0, or -EIO since tq_core_on_peer_failed() */
	bool self;       /* is this process */
	bool probed;     /* by its rank, in vain, since the last tq_core_take_awaited() */
	uint32_t nasked; /* tuples to there in TQ_TX_TUPLE_ASKED */
	uint64_t nrma;   /* operations on its memory that are under way */
	/* Objects that the peer has here; a correct peer has a limited number of each: */
	uint32_t orphan_rts;       /* orphans (dispatch.c) that are RTS */
	uint64_t orphan_bytes;     /* and bytes of those that are EAGER */
	uint32_t unexpected_rts;   /* unexpected messages that are RTS */
	uint64_t unexpected_bytes; /* and bytes of those that are EAGER, with their records */
	uint32_t nheld;            /* messages that it holds */
	struct tq_pair *pairs;     /* list (peer_next) */
	struct tq_pair *joined;    /* that tq_core_ctx_join() has found last; NULL: none */
	bool failing;              /* marked by tq_peer_fail(): what is under way has yet to end */
	struct tq_peer *next;      /* core->failing */
};

#define TQ_CTX_BITS (1u << 31) /* in flags: the context has match bits */

struct tq_ctx {
	struct tq_core *core;
	uint32_t id;
	int rank, npeers;
	int nfailed; /* ranks below it have failed */
	unsigned flags;
	struct tq_pair **pairs; /* by rank; NULL: not used yet */
	struct tq_peer **peers; /* by rank; NULL: gone, in a context that is open or was removed */
	uint64_t eager_below;   /* shorter messages may go eagerly */
	uint64_t asks_from;     /* messages of this length, and longer ones, ask for a queue */
	uint64_t order;         /* number of the next receive */
	struct tq_recv_req *wild;                  /* queue: receives with a wildcard */
	struct tq_unexpected *unexpected;          /* queue by arrival (ctx_next) */
	struct tq_unexpected_tag *unexpected_tags; /* hash by tag */
	struct tq_pair *fenced;                    /* list: pairs with tuples being recalled */
	struct tq_rx_tuple *queued;                /* list: tuples with a queue, or an offer */
	bool wild_gone;   /* a wildcard, or a cancelled receive, has gone: match fenced pairs */
	uint32_t nrecvs;  /* receives and matched messages that have not ended */
	uint64_t wild_at; /* number of receives and probes with a wildcard so far */
	struct tq_wilds *wilds; /* the last of them; NULL: there was none */
	/* The error of operations with a revoked tag; 0: not revoked. [1] is for negative tags. */
	int revoked[2];
	bool named;   /* in core->contexts */
	bool removed; /* in core->removed */
	struct tq_ctx *removed_next;
	/* With TQ_CTX_BITS: */
	const struct tq_match_ops *match_ops;
	void *match_arg;
	uint32_t header_len;
	/* Bytes in front of the data of direct messages; 0 without TQ_CTX_BITS. */
	uint32_t prefix_len;
	uint32_t nqueue_matched; /* entries that the HCA has matched and that were not released */
	UT_hash_handle hh;
};

/* ---- the whole ---- */

/* A message for a context that is not here yet. */
struct tq_orphan;

/* Objects of a kind that are kept for the next ones. A choice: those that are needed again and
 * again cost no malloc(), and what stays after a burst is bounded (1 MiB of objects of 256 bytes).
 */
#define TQ_FREE_MAX 4096u

/* The lengths that follow from the parameters and the network's limits (policy.h). */
struct tq_settings {
	bool has_tuples;                 /* messages may go to tuple queues */
	uint64_t eager_limit, eager_max; /* tq_eager_limit(), tq_eager_max() */
};

struct tq_core {
	const struct tq_net_ops *ops;
	struct tq_net *net;
	struct tq_settings settings;
	const struct tq_net_limits *limits;
	const struct tq_params *params;
	struct tq_stats *stats;
	/* The lock under which all calls are made; NULL: there are no threads. Set by the core's
	 * owner. */
	const struct tq_lock *lock;
	/* The calling thread is the library's: user data are not touched (but buffers of
	 * TQ_SEND_BUFFERED are read), and pack() and unpack() not called. */
	bool service;
	struct tq_ctx *contexts; /* hash by id */
	struct tq_ctx *last_ctx; /* looked up last; NULL: none */
	bool has_bits;           /* there is or was a context with match bits */
	struct tq_handles send_reqs, recv_reqs, tx_tuples, rx_tuples, entries;
	struct tq_req *ended, **ended_tail; /* tq_core_ended() */
	bool served; /* one of these is the service thread's with TQ_THREAD_SERVED */
	/* List (core_next), work for the user's threads: receives in TQ_RECV_REQ_COPY, and those in
	 * TQ_RECV_REQ_PIECES with pieces that were kept. */
	struct tq_recv_req *copies;
	struct tq_recv_req *lost;   /* list (core_next): TQ_RECV_REQ_LOST */
	struct tq_send_req *pieces; /* list (pieces_next): TQ_SEND_REQ_PIECES, TQ_SEND_REQ_AGAIN */
	struct tq_rx_tuple *room;   /* list (room_next): with held receives that wait for room */
	struct tq_bounce *arriving; /* control buffer of the message that is being processed */
	struct tq_peer *failing;    /* list */
	struct tq_rx_tuple *lru;    /* list (lru_next): OFFERED or DIRECT, longest unused first */
	uint32_t ntuples;           /* tuples with an SRQ */
	/*
	 * Records of tuples, as receiver and as sender. A record in the first list may be
	 * forgotten, or was not found to be needed yet; after each poll the list has at most
	 * params->tuple_records. A record that is found to be needed is parked until it isn't.
	 */
	struct tq_rx_tuple *rx_tuple_lru, *rx_tuple_parked; /* lists (record_next) */
	uint32_t nrx_tuples, nrx_tuples_parked;
	uint64_t nmessages;               /* received by any way */
	struct tq_tx_tuple *tx_tuple_lru; /* list (record_next) */
	uint32_t ntx_tuples, ntx_tuples_parked;
	uint32_t ntx_tuples_queued;       /* not in TQ_TX_TUPLE_CONTROL */
	struct tq_tx_tuple *want_lane;    /* list (lane_next): OFFERED, without a lane */
	struct tq_tx_tuple *watched;      /* list (watch_next): tx_tuple_table.c */
	bool reminds;                     /* tq_core_on_reminded() will be called */
	struct tq_idle_lanes *idle_lanes; /* hash by node */
	/* Contexts that their users have removed, and that stay for what is under way. */
	struct tq_ctx *removed;
	bool changed; /* something happened that may have been the last in one of those */
	bool broken;  /* by tq_core_on_broken() */
	struct tq_orphan *orphans;
	/* Work that goes on when sends complete; the service thread waits for that, too. */
	uint32_t nrecalling;  /* tx_tuples in RECALLING */
	uint32_t ngranted;    /* sends in GRANTED */
	uint32_t nunwatched;  /* sends of which tq_send_req_is_unwatched() is true */
	uint64_t outstanding; /* sends (detached ones too) whose data may still be needed */
	bool backpressured;
	/* The user's callback of struct tq_job; set by the core's owner. */
	void *(*send_pending)(void *user);
	tq_trace *trace; /* NULL: nobody traces */
	/* Objects kept for the next ones, at most TQ_FREE_MAX of each. */
	struct tq_req *free_reqs[TQ_REQ_KINDS];
	uint32_t nfree_reqs[TQ_REQ_KINDS];
	struct tq_unexpected *free_unexpected;
	uint32_t nfree_unexpected;
	struct {
		struct tq_prefix *free; /* list */
		struct tq_prefix *sink;
		struct tq_prefix_slab *slabs; /* list */
	} prefixes;
	uint64_t nrma;   /* operations on peers' memory that are under way */
	uint32_t nempty; /* sends that have ended for their users, and take nothing of a pool */
};

/* ---- operations on peers' memory ---- */

struct tq_rma_req {
	struct tq_req req;
	struct tq_peer *peer;
	enum tq_rma_kind kind;
	struct tq_sg sg; /* local memory; reg NULL: inline */
	bool owns_reg;   /* sg.reg was made by the library for this operation, with `cookie` */
	void *cookie;    /* for tq_net_ops.unregister() */
	void (*done)(void *user, int error);
};

/* ---- the memory of requests, and those that have ended, on their way to the user ---- */

/* Returns memory for a request of that kind and size, in which nothing is set; NULL: no memory.
 * tq_core_release() takes it back. Inline, as each message comes through here. */
static inline void *tq_req_new(struct tq_core *core, enum tq_req_kind kind, size_t size)
{
	struct tq_req *req = core->free_reqs[kind];

	if (req) {
		LL_DELETE(core->free_reqs[kind], req);
		core->nfree_reqs[kind]--;
		return req;
	}
	req = malloc(size);
	if (req)
		TQ_LEVEL(core->stats, requests, 1);
	return req;
}

/* Ends a request: puts it on the list of ended ones, or frees a detached one. */
void tq_req_end(struct tq_req *req, int error);
/* Keeps a request's memory for the next one, or frees it. */
void tq_req_free(struct tq_req *req);

/* ---- for ep/ ---- */

static inline bool tq_core_has_ended(const struct tq_core *core)
{
	return core->ended;
}
/* Takes the list of ended requests (by next; status is filled in). Each one goes back by
 * tq_core_release(). */
struct tq_req *tq_core_ended(struct tq_core *core);
/* Takes the requests that ended, but not by a failed connection; the others stay in the list. */
struct tq_req *tq_core_ended_unfailed(struct tq_core *core);
/* Frees a request that has ended, or was never started. */
void tq_core_release(struct tq_req *req);

#endif
