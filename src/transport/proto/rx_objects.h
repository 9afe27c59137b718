/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's objects: receives, messages that come before them, and its side of tuples. */
#ifndef TQ_PROTO_RX_OBJECTS_H
#define TQ_PROTO_RX_OBJECTS_H

#include "proto/objects.h"
#include "proto/pays.h"

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
	struct tq_pieces *pieces;     /* the memory is these instead; sg.reg is one of theirs */
	bool bounced;                 /* sg is memory of the library: to be unpacked */
	bool pooled;                  /* of these, sg is from the pool of copies */
	int cancelling;               /* not 0: it ends so when its recall brings it back */
	bool again;                   /* HELD: CTS_HELD sent; its lane's copy is not wanted */
	struct tq_rx_tuple *rx_tuple; /* exact receives; HELD: of the message */
	struct tq_pair *pair;         /* of the message that it matched */
	uint32_t handle;              /* CTS, CTS_PIECES: what the sender knows it by */
	uint32_t send_req;            /* the send's handle at the sender; HELD: its seq */
	uint64_t got;                 /* PIECES: bytes that came */
	uint64_t wanted;              /* min(message, buffer) */
	struct tq_unexpected *from;   /* COPY; PIECES: a queue (tnext), not copied yet */
	struct tq_msg *msg;           /* a matched probe's: its data are drained for that, */
	void (*drained)(struct tq_recv_req *recv,
			int error);        /* which is told instead of the user */
	bool starting;                     /* tq_core_recv() is at it: it ends without complete() */
	struct tq_recv_req *next, *prev;   /* in the queue that it is in */
	struct tq_recv_req *pnext, *pprev; /* pair->active: HELD, READING, WRITING, PIECES */
	struct tq_recv_req *cnext, *cprev; /* core->copies, core->lost */
};

enum tq_unexpected_kind {
	TQ_UNEXPECTED_EAGER,
	TQ_UNEXPECTED_RTS,
	TQ_UNEXPECTED_HELD /* in the sender's lane, for the tuple's SRQ */
};

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

#endif
