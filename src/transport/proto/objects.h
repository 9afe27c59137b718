/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the protocol keeps: requests, unexpected messages, tuples on both sides, pairs, contexts.
 */
#ifndef TQ_PROTO_OBJECTS_H
#define TQ_PROTO_OBJECTS_H

#include <tupleq/tupleq.h>

#include "base/handles.h"
#include "base/hash.h"
#include "base/params.h"
#include "base/states.h"
#include "base/stats.h"
#include "proto/msg.h"
#include "proto/net_ops.h"

/* ---- requests ---- */

enum tq_req_kind { TQ_REQ_SEND, TQ_REQ_RECV, TQ_REQ_RMA };

/* What sends, receives and operations on peers' memory share; first in each. */
struct tq_req {
	enum tq_req_kind kind;
	bool detached; /* it has ended for the user (or has none): no complete() */
	struct tq_core *core;
	void *user;
	struct tq_status status;
	struct tq_req *next; /* in the list of ended requests */
};

/* Registered memory that is several pieces. */
struct tq_pieces {
	int n;
	struct tq_sg sg[TQ_MAX_PIECES];
	void *cookie[TQ_MAX_PIECES];
};

enum tq_send_req_state {
	TQ_SEND_REQ_NEW,
	TQ_SEND_REQ_RTS,     /* announced; an answer will come */
	TQ_SEND_REQ_GRANTED, /* CTS_DIRECT came: waits for room on its tuple's lane */
	TQ_SEND_REQ_DIRECT,  /* posted on a hold lane or the bulk lane */
	TQ_SEND_REQ_WRITING, /* CTS came: RDMA write under way */
	TQ_SEND_REQ_PIECES,  /* CTS_PIECES came: DATA under way */
	TQ_SEND_REQ_AGAIN,   /* DIRECT, and CTS_HELD came: DATA under way, too */
	TQ_SEND_REQ_ENDED,
	TQ_SEND_REQ_STATES
};

struct tq_send_req {
	struct tq_req req;
	enum tq_send_req_state state;
	struct tq_pair *pair;
	struct tq_tx_tuple *tx_tuple; /* NULL: its tag is used once, or it was the first with it */
	int32_t tag;
	uint32_t cseq, seq;
	unsigned flags; /* TQ_SEND_* */
	struct tq_buf buf;
	struct tq_sg sg;          /* registered memory of the message; sg.reg NULL: none (yet) */
	void *cookie;             /* of its registration */
	struct tq_pieces *pieces; /* the memory is these instead; sg.reg is one of theirs */
	bool copied;              /* sg is from the pool of copies */
	bool uncopied;            /* that was empty once */
	bool reported;            /* direct: named in a HELD message */
	bool nodirect;            /* RTS: it said TQ_RTS_NODIRECT, or its tuple wasn't DIRECT */
	bool empty;               /* counted in core->nempty */
	uint32_t handle;          /* RTS: what the receiver knows it by */
	uint32_t recv_req;        /* the receive's handle at the receiver */
	uint64_t offset;          /* PIECES, AGAIN: sent so far */
	uint64_t wanted;          /* PIECES, AGAIN, WRITING: bytes that the receiver wants */
	struct tq_send_req *next, *prev;   /* in its tuple's list of direct sends */
	struct tq_send_req *pnext, *pprev; /* all of a pair that are under way */
	struct tq_send_req *dnext, *dprev; /* core->pieces */
};

enum tq_recv_req_state {
	TQ_RECV_REQ_POSTED, /* in a posted queue of the library */
	TQ_RECV_REQ_SRQ,    /* in its tuple's SRQ: the HCA matches it */
	TQ_RECV_REQ_HELD, /* matched to a held message, in the tuple's SRQ or waiting for room there
			   */
	TQ_RECV_REQ_READING, /* RDMA read under way */
	TQ_RECV_REQ_WRITING, /* CTS sent: WRITTEN will come */
	TQ_RECV_REQ_PIECES,  /* CTS_PIECES or CTS_HELD sent: DATA comes */
	TQ_RECV_REQ_COPY,    /* its data are in `from`, to be copied by a thread of the user's */
	TQ_RECV_REQ_LOST, /* its connection failed; it ends when its SRQ is gone: the HCA has it yet
			   */
	TQ_RECV_REQ_ENDED,
	TQ_RECV_REQ_STATES
};

struct tq_recv_req {
	struct tq_req req;
	enum tq_recv_req_state state;
	struct tq_ctx *ctx;
	int rank;       /* or TQ_ANY_SOURCE */
	int32_t tag;    /* or TQ_ANY_TAG */
	uint64_t order; /* of posting, in its context */
	struct tq_buf buf;
	struct tq_sg sg;
	void *cookie;
	struct tq_pieces *pieces;        /* the memory is these instead; sg.reg is one of theirs */
	bool bounced;                    /* sg is memory of the library: to be unpacked */
	bool pooled;                     /* of these, sg is from the pool of copies */
	int cancelling;                  /* not 0: it ends so when its recall brings it back */
	bool again;                      /* HELD: CTS_HELD sent; its lane's copy is not wanted */
	struct tq_rx_tuple *rx_tuple;    /* exact receives; HELD: of the message */
	struct tq_pair *pair;            /* of the message that it matched */
	uint32_t handle;                 /* CTS, CTS_PIECES: what the sender knows it by */
	uint32_t send_req;               /* the send's handle at the sender; HELD: its seq */
	uint64_t got;                    /* PIECES: bytes that came */
	uint64_t wanted;                 /* min(message, buffer) */
	struct tq_unexpected *from;      /* COPY; PIECES: a queue (tnext), not copied yet */
	struct tq_msg *msg;              /* a matched probe's: its data are drained for that */
	bool starting;                   /* tq_core_recv() is at it: it ends without complete() */
	struct tq_recv_req *next, *prev; /* in the queue that it is in */
	struct tq_recv_req *pnext, *pprev; /* pair->active: HELD, READING, WRITING, PIECES */
	struct tq_recv_req *cnext, *cprev; /* core->copies, core->lost */
};

/* ---- the receiver's side ---- */

enum tq_unexpected_kind {
	TQ_UNEXPECTED_EAGER,
	TQ_UNEXPECTED_RTS,
	TQ_UNEXPECTED_HELD /* in the sender's lane, for the tuple's SRQ */
};

struct tq_unexpected_tag;

/* A message that came before its receive. In its pair's list by cseq, and in its tuple's. */
struct tq_unexpected {
	enum tq_unexpected_kind kind;
	struct tq_pair *pair;
	struct tq_rx_tuple *rx_tuple;
	int32_t tag;
	uint32_t cseq, seq;
	uint64_t length;
	/* RTS */
	uint64_t addr;
	uint32_t rkey, send_req;
	uint8_t flags;
	/* EAGER: `length` bytes: of a control buffer that was kept, or (owned) of our own memory,
	 * counted in unexpected_bytes; neither: of the message that is being processed. PIECES: at
	 * offset `addr` of the message */
	const void *data;
	struct tq_bounce *bounce;
	bool owned;
	bool counted; /* among its peer's, and (EAGER) the record in unexpected_bytes */
	struct tq_unexpected *next, *prev;   /* of its pair */
	struct tq_unexpected *tnext, *tprev; /* of its tuple */
	struct tq_unexpected *anext, *aprev; /* of its context, by arrival: for TQ_ANY_SOURCE */
	struct tq_unexpected *gnext, *gprev; /* the same, with one tag */
	struct tq_unexpected_tag *same;      /* of that tag */
};

/* Unexpected messages of a context with one tag. */
struct tq_unexpected_tag {
	int32_t tag;
	struct tq_unexpected *first; /* queue by arrival (gnext) */
	UT_hash_handle hh;           /* ctx->unexpected_tags */
};

/* How often something is so, of late: when TQ_SHARE_AGE times are counted they count half. */
struct tq_share {
	uint32_t yes, no;
};

#define TQ_SHARE_AGE  256u
#define TQ_SHARE_PART 16u /* once in so many times is often */

static inline void tq_share_count(struct tq_share *s, bool yes)
{
	if (yes)
		s->yes++;
	else
		s->no++;
	if (s->yes + s->no >= TQ_SHARE_AGE) {
		s->yes /= 2;
		s->no /= 2;
	}
}

static inline bool tq_share_is_often(const struct tq_share *s)
{
	return s->yes * TQ_SHARE_PART >= s->yes + s->no;
}

/* Returns true if the queue of a tuple with this share of messages that didn't gain from it is to
 * be given back: so many must have been, and often. */
static inline bool tq_share_exceeds(const struct tq_share *s, const struct tq_params *params)
{
	return params->giveback_after && s->yes >= (uint64_t)params->giveback_after &&
	       tq_share_is_often(s);
}

enum tq_rx_tuple_state {
	TQ_RX_TUPLE_CONTROL,
	TQ_RX_TUPLE_OFFERED,   /* SRQN sent; SWITCH will come */
	TQ_RX_TUPLE_DIRECT,    /* receives are posted to the SRQ */
	TQ_RX_TUPLE_RECALLING, /* RECALL sent: fenced until RECALLED came, and every delivery that
			      it counts */
	TQ_RX_TUPLE_STATES
};

/* Why a tuple has no queue; counters.def has a counter for each. */
enum tq_no_queue {
	TQ_NO_QUEUE_NEW, /* nothing stands against it */
	TQ_NO_QUEUE_EARLY,
	TQ_NO_QUEUE_WILDCARD,
	TQ_NO_QUEUE_LIMIT,
	TQ_NO_QUEUE_BUFFER
};

/* A (context, source, tag) at the receiver. In CONTROL without anything queued it may go at any
 * time. */
struct tq_rx_tuple {
	struct tq_pair *pair;
	int32_t tag;
	enum tq_rx_tuple_state state;
	struct tq_recv_req *posted; /* queue, in posting order: receives that are not in the SRQ */
	struct tq_unexpected *unexpected; /* queue, in cseq order (tnext) */
	/* OFFERED and later, until the SRQ goes: */
	uint32_t handle;
	uint32_t tx_tuple; /* the sender's handle */
	struct tq_srq *srq;
	struct tq_recv_req *in_srq; /* queue: posted there on the tuple's account, not completed */
	uint32_t base;              /* SWITCH's seq */
	uint32_t pos;       /* next position: seq of the message that the next receive takes */
	uint32_t delivered; /* direct completions seen in this life of the SRQ */
	uint32_t nsrq;      /* receives in the SRQ, in_srq and HELD */
	bool switched;      /* SWITCH was processed */
	bool exact;         /* its messages are as long as their receives */
	struct tq_recv_req
		*room; /* queue: TQ_RECV_REQ_HELD that wait for room in the SRQ or the CQ */
	struct tq_rx_tuple *rnext, *rprev; /* core->room: those with such */
	uint32_t nheld;             /* unexpected HELD messages, and receives in TQ_RECV_REQ_HELD */
	struct tq_unexpected *held; /* RECALLING: HELD messages that came, until RECALLED (tnext) */
	uint32_t held_came;
	bool recalled; /* RECALLED has come: */
	uint32_t due;  /* deliveries that it counts */
	/* policy */
	enum tq_no_queue no_queue;
	bool gave_back;            /* the last recall was as its queue didn't pay */
	struct tq_share early;     /* eager messages that came before their receive */
	struct tq_share late;      /* and, in this life of the SRQ, direct ones with a NOTICE */
	uint32_t quiet;            /* messages since a wildcard or probe was about */
	uint32_t backoff;          /* how many of them are asked for */
	uint64_t seen;             /* ctx->wild_at at its last message */
	uint64_t used_at;          /* core->nmessages when it was last used */
	struct tq_tuple_info info; /* for reports */
	UT_hash_handle hh;         /* pair->rx_tuples, by tag */
	struct tq_rx_tuple *next, *prev;   /* ctx->queued: those with an SRQ on offer or in use */
	struct tq_rx_tuple *lnext, *lprev; /* core->lru of those */
	struct tq_rx_tuple *anext, *aprev; /* core->rx_tuple_lru, or core->rx_tuple_parked if */
	bool parked;
};

/* ---- the sender's side ---- */

enum tq_tx_tuple_state {
	TQ_TX_TUPLE_CONTROL,
	TQ_TX_TUPLE_ASKED,   /* a message of it asked for the queue */
	TQ_TX_TUPLE_OFFERED, /* SRQN came: waits for a lane to switch */
	TQ_TX_TUPLE_DIRECT,
	TQ_TX_TUPLE_RECALLING, /* RECALL came: RECALLED is due when sends before its position are
			      complete */
	TQ_TX_TUPLE_STATES
};

struct tq_tx_tuple {
	struct tq_pair *pair;
	int32_t tag;
	enum tq_tx_tuple_state state;
	uint32_t handle; /* what the receiver knows it by; 0: it was never told */
	uint32_t seq;    /* of its next message */
	uint32_t sent; /* messages since it was last refused, recalled or made: asks when it reaches
			  `ask_at` */
	uint32_t ask_at;
	bool long_counts; /* TQ_RECALL_LONG */
	/* while it has an SRQ */
	uint32_t rx_tuple, srqn;
	uint64_t max_len;
	uint32_t base;      /* SWITCH's seq */
	uint32_t delivered; /* direct sends completed in this life of the SRQ */
	uint32_t position;  /* RECALLING */
	/* Hold lane that is its own; may be kept while nothing is outstanding. */
	struct tq_lane *lane;
	struct tq_send_req *direct; /* queue: direct sends not complete, in seq order */
	bool on_bulk;            /* those are on the bulk lane (CTS-DIRECT without a hold lane) */
	uint32_t nrts;           /* RTS not resolved */
	struct tq_share no_lane; /* messages that found no lane: decides to give it back */
	bool gave_back;
	bool waiting;                      /* OFFERED: in core->want_lane */
	bool idle;                         /* in the peer's idle_lanes */
	bool used;                         /* since core->tx_tuple_lru was last looked through */
	bool parked;                       /* not in core->tx_tuple_lru */
	struct tq_send_req *granted;       /* CTS-DIRECT came, not posted yet: in seq order */
	UT_hash_handle hh;                 /* pair->tx_tuples, by tag */
	struct tq_tx_tuple *lnext, *lprev; /* core->tx_tuple_lru */
	struct tq_tx_tuple *inext, *iprev; /* peer->idle_lanes, or core->want_lane */
};

/* ---- who talks to whom ---- */

#define TQ_RECENT 16u

/* A peer in a context. */
struct tq_pair {
	struct tq_ctx *ctx;
	struct tq_peer *peer;
	int rank;
	uint32_t cseq; /* sender: of the next message */
	struct tq_tx_tuple *tx_tuples;
	struct tq_rx_tuple *rx_tuples;
	/* Looked up lately, and likely to be again: tq_recent(tag); NULL: none. */
	struct tq_tx_tuple *recent_tx_tuples[TQ_RECENT];
	struct tq_rx_tuple *recent_rx_tuples[TQ_RECENT];
	struct tq_send_req *send_reqs;    /* all sends under way (pnext) */
	struct tq_unexpected *unexpected; /* queue by cseq */
	uint32_t nfenced;                 /* tuples being recalled; > 0: in ctx->fenced */
	uint32_t nfenced_user;            /* of these, with a tag that TQ_ANY_TAG matches */
	uint64_t wild_at;                 /* ctx->wild_at at the last TQ_ANY_TAG from here */
	struct tq_recv_req *active;       /* receives whose data are under way (pnext) */
	struct tq_pair *next, *prev;      /* ctx->fenced */
	struct tq_pair *pnext;            /* peer->pairs */
};

struct tq_peer {
	struct tq_core *core;
	void *link; /* the network's */
	/* The network's, for all peers of a node: tuples to there that have a lane with nothing
	 * outstanding, the least recently used first. */
	struct tq_tx_tuple **idle_lanes;
	const char *name;
	int failed;  /* -errno */
	bool self;   /* this process */
	bool probed; /* in vain, by its rank */
	/* What it has here, and a correct one has only so much of: */
	uint32_t orphan_rts;       /* orphans (ctx.c) that are RTS, */
	uint64_t orphan_bytes;     /* and of those that are EAGER */
	uint32_t unexpected_rts;   /* the same of its unexpected messages, */
	uint64_t unexpected_bytes; /* with their records */
	uint32_t nheld;            /* messages that it holds */
	uint32_t nasked;           /* tuples to there in TQ_TX_TUPLE_ASKED */
	uint64_t nrma;             /* operations on its memory that are under way */
	struct tq_pair *pairs;
	bool failing;         /* marked by tq_peer_fail(): what is under way has yet to end */
	struct tq_peer *next; /* core->failing */
};

struct tq_ctx {
	struct tq_core *core;
	uint32_t id;
	int rank, npeers;
	int nfailed; /* ranks below it have failed */
	unsigned flags;
	struct tq_pair **pairs; /* by rank; NULL: not used yet */
	struct tq_peer **peers;
	uint64_t order;                   /* of the next receive */
	struct tq_recv_req *wild;         /* queue: receives with a wildcard */
	struct tq_unexpected *unexpected; /* queue by arrival (anext) */
	struct tq_unexpected_tag *unexpected_tags;
	struct tq_pair *fenced;
	struct tq_rx_tuple *queued;
	bool wild_gone;     /* a wildcard has matched: fenced pairs are to be looked at again */
	uint32_t nrecvs;    /* receives and matched messages that have not ended */
	uint64_t wild_at;   /* counts wildcards and probes with one */
	uint64_t wild_both; /* wild_at at the last with two */
	struct tq_wildtag *wildtags; /* tags that came with TQ_ANY_SOURCE lately */
	bool named;                  /* in core->ctxs */
	bool removed;                /* in core->removed (rnext) */
	struct tq_ctx *rnext;
	UT_hash_handle hh;
};

/* A message for a context that is not here yet. */
struct tq_orphan;

#define TQ_ONCE_BITS 11
#define TQ_FREE_MAX  4096u

struct tq_core {
	const struct tq_net_ops *ops;
	void *net;
	const struct tq_net_limits *limits;
	const struct tq_params *params;
	struct tq_stats *stats;
	/* The thread that calls is the library's: user data are not touched and pack()/unpack() not
	 * called. */
	bool service;
	struct tq_ctx *ctxs;     /* hash by id */
	struct tq_ctx *last_ctx; /* looked up last; NULL: none */
	struct tq_handles send_reqs, recv_reqs, tx_tuples, rx_tuples;
	struct tq_req *ended, **ended_tail; /* tq_core_ended() */
	struct tq_recv_req
		*copies;          /* TQ_RECV_REQ_COPY, and other work that is the user's threads' */
	struct tq_recv_req *lost; /* TQ_RECV_REQ_LOST */
	struct tq_send_req *pieces; /* TQ_SEND_REQ_PIECES, TQ_SEND_REQ_AGAIN */
	struct tq_rx_tuple *room; /* tuples with held receives that wait for room in an SRQ or CQ */
	struct tq_bounce *arriving; /* control buffer of the message that is being processed */
	struct tq_peer *failing;    /* list */
	struct tq_rx_tuple *lru;    /* tuples with an SRQ, least recently used first */
	uint32_t ntuples;
	/*
	 * Records of tuples, as receiver and as sender. A record in the first list may be
	 * forgotten, or was not found to be needed yet; after each poll the list has at most
	 * params->tuple_records. A record that is found to be needed is parked until it isn't.
	 */
	struct tq_rx_tuple *rx_tuple_lru, *rx_tuple_parked;
	uint32_t nrx_tuples, nrx_tuples_parked;
	uint64_t nmessages; /* received by any way */
	struct tq_tx_tuple *tx_tuple_lru;
	uint32_t ntx_tuples, ntx_tuples_parked;
	uint32_t ntx_tuples_queued; /* not in TQ_TX_TUPLE_CONTROL */
	uint32_t dice;
	struct tq_tx_tuple *want_lane; /* OFFERED */
	struct tq_ctx *removed;        /* by their users; they stay for what is under way */
	bool changed; /* something happened that may have been the last in one of them */
	bool broken;  /* by tq_core_broken() */
	struct tq_orphan *orphans;
	/* What goes on when sends complete; the service thread waits for that, too. */
	uint32_t nrecalling;  /* tx_tuples in RECALLING */
	uint32_t ngranted;    /* sends in GRANTED */
	uint64_t outstanding; /* sends (detached ones too) whose data may still be needed */
	bool backpressured;
	/* The user's callback of struct tq_job; set by the core's owner. */
	void *(*send_pending)(void *user);
	tq_trace *trace; /* NULL: nobody traces */
	/* Kept for the next ones, at most TQ_FREE_MAX of each. */
	struct tq_send_req *free_send_reqs;
	struct tq_recv_req *free_recv_reqs;
	struct tq_unexpected *free_unexpected;
	struct tq_rma_req *free_rma_reqs;
	uint32_t nfree_send_reqs, nfree_recv_reqs, nfree_unexpected, nfree_rma_reqs;
	uint64_t nrma;   /* operations on peers' memory that are under way */
	uint32_t nempty; /* sends that have ended for their users, and take nothing of a pool */
	/* Tuples that had one message: tx_tuple_table.c. Last, as it keeps apart what each message
	 * needs. */
	uint32_t once[1u << TQ_ONCE_BITS][2];
};

#endif
