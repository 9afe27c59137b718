/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's objects: receives, messages that come before them, and its side of tuples. */
#ifndef TQ_PROTO_RX_OBJECTS_H
#define TQ_PROTO_RX_OBJECTS_H

#include "proto/common/objects.h"
#include "proto/common/policy.h"

enum tq_recv_req_state {
	TQ_RECV_REQ_POSTED,  /* in a posted queue of the library */
	TQ_RECV_REQ_SRQ,     /* in its tuple's SRQ: the HCA matches it */
	TQ_RECV_REQ_HELD,    /* matched to a held message: in the SRQ, or waiting for room there */
	TQ_RECV_REQ_READING, /* RDMA read under way */
	TQ_RECV_REQ_WRITING, /* CTS sent: WRITTEN will come */
	TQ_RECV_REQ_PIECES,  /* CTS_PIECES or CTS_HELD sent: DATA comes */
	TQ_RECV_REQ_COPY,    /* its data are in `from`, or `from` is an RTS that says where in its
				sender's memory, for a thread of the user's to copy */
	TQ_RECV_REQ_LOST,    /* its sender failed; ends with its SRQ, because the HCA may write to
				its buffer until then */
	TQ_RECV_REQ_ENDED,
	TQ_RECV_REQ_STATES
};

struct tq_recv_req {
	struct tq_req req;
	enum tq_recv_req_state state;
	bool bounced;      /* true if sg is the library's memory, to be unpacked */
	bool pooled;       /* true if that memory is from the pool of copies */
	bool pieces_asked; /* HELD: CTS_HELD was sent, so the lane's copy is unused */
	bool sender_away;  /* TQ_RTS_AWAY */
	int cancelling;    /* the error to end with when a recall brings it back; 0: none */
	uint32_t handle;   /* the receive's name in CTS, CTS_PIECES and CTS_HELD */
	struct tq_sg sg;
	struct tq_pieces *pieces; /* the memory, if it is several pieces; sg.reg is one of theirs */
	struct tq_rx_tuple *rx_tuple; /* exact receives; HELD: of the message */
	struct tq_pair *pair;         /* of the message that it matched */
	uint64_t got;                 /* PIECES, COPY of an RTS: bytes that came */
	struct tq_unexpected *from;   /* COPY; PIECES: a queue (tuple_next), not copied yet */
	struct tq_msg *msg;           /* a matched probe's, for which the data are drained */
	/* Called instead of the end, if not NULL. */
	void (*at_end)(struct tq_recv_req *recv, int error);
	/* Called, if not NULL, when the sender is lost. The end comes when the queue is gone. */
	void (*at_lost)(struct tq_recv_req *recv, int error);
	/* From here on tq_recv_req_new() sets what each receive has, and nothing else. */
	bool starting; /* the call that makes the receive has not returned: its result says if the
			  receive has ended, and complete() is not called */
	struct tq_ctx *ctx;
	struct tq_want want;
	uint64_t order; /* of posting, in its context */
	struct tq_buf buf;
	void *cookie;                    /* of the registration of sg */
	uint32_t send_req;               /* the send's handle at the sender; HELD: its seq */
	uint64_t wanted;                 /* min(message, buffer), once the message is known */
	struct tq_recv_req *next, *prev; /* in the queue that it is in */
	struct tq_recv_req *active_next, *active_prev; /* pair->active: HELD, READING, WRITING,
							  PIECES */
	struct tq_recv_req *core_next, *core_prev;     /* core->copies, or core->lost */
};

/* An entry of a context with match bits; or the transfer of one message to one that stays. */
struct tq_entry {
	struct tq_recv_req recv;
	tq_entry_id id; /* 0: not in the list */
	/* Memory for what is in front of the data, if the entry was in a queue. */
	struct tq_prefix *prefix;
	bool may_be_queued; /* TQ_ENTRY_QUEUE */
	bool listed;
	/* The end, whose user may see it after its context is gone. */
	const struct tq_match_ops *ops;
	void *arg;
	/* The message that it took: */
	struct tq_peer *sender; /* NULL: none yet */
	bool queue;             /* matched by the HCA */
	uint64_t bits;
	void *taken; /* struct tq_envelope.taken */
	uint8_t header[TQ_HEADER_MAX];
};

enum tq_unexpected_kind {
	TQ_UNEXPECTED_EAGER,
	TQ_UNEXPECTED_RTS,
	TQ_UNEXPECTED_HELD,    /* in the sender's lane, for the tuple's SRQ */
	TQ_UNEXPECTED_STORED,  /* with match bits: the user has the data */
	TQ_UNEXPECTED_DRAINING /* with match bits: was held; the data are on their way (entry.c) */
};

/* A message that came before its receive. */
struct tq_unexpected {
	enum tq_unexpected_kind kind;
	struct tq_pair *pair;
	struct tq_rx_tuple *rx_tuple;
	uint64_t tag;
	uint32_t cseq, seq;
	uint64_t length;
	/* RTS */
	uint64_t addr;
	uint32_t rkey, send_req;
	uint8_t flags;
	/* EAGER: `length` bytes in a control buffer that was kept (bounce), in memory of the
	 * library (owned), counted in unexpected_bytes, or else in the message that is being
	 * processed. A piece: the bytes at offset `addr` of the message. */
	const void *data;
	struct tq_bounce *bounce;
	bool owned;
	bool counted; /* among its peer's, and (EAGER) the record in unexpected_bytes */
	bool queued;
	bool blocked;    /* the receive `passed` waits for the end of a fence */
	bool offered;    /* unexpected() has been asked */
	uint64_t passed; /* order of the first receive that may yet be asked about the message */
	void *taken;     /* struct tq_envelope.taken */
	/* DRAINING: what gets the data, and the entry that has taken the message; NULL: none yet.
	 */
	struct tq_entry *drain, *taker;
	struct tq_unexpected *next, *prev;             /* pair->unexpected */
	struct tq_unexpected *tuple_next, *tuple_prev; /* tuple->unexpected, or ->held */
	struct tq_unexpected *ctx_next, *ctx_prev;     /* ctx->unexpected */
	struct tq_unexpected *tag_next, *tag_prev;     /* tag_record->first */
	struct tq_unexpected_tag *tag_record;          /* the unexpected messages with its tag */
	uint8_t header[TQ_HEADER_MAX];                 /* ctx->header_len bytes */
};

/* Unexpected messages of a context with one tag. */
struct tq_unexpected_tag {
	uint64_t tag;
	struct tq_unexpected *first; /* queue by arrival (tag_next) */
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

/* The reason for which a tuple has no queue; counters.def has a counter for each. */
enum tq_no_queue {
	TQ_NO_QUEUE_NEW, /* none of the others */
	TQ_NO_QUEUE_EARLY,
	TQ_NO_QUEUE_WILDCARD,
	TQ_NO_QUEUE_LIMIT,
	TQ_NO_QUEUE_BUFFER
};

/* A (context, source, tag) at the receiver. In CONTROL without anything queued its record may be
 * forgotten at any time. */
struct tq_rx_tuple {
	struct tq_pair *pair;
	uint64_t tag;
	enum tq_rx_tuple_state state;
	struct tq_recv_req *posted; /* queue, in posting order: receives that are not in the SRQ */
	struct tq_unexpected *unexpected; /* queue, in cseq order (tuple_next) */
	/* OFFERED and later, until the SRQ goes: */
	uint32_t handle;
	uint32_t tx_tuple; /* the sender's handle */
	struct tq_srq *srq;
	struct tq_recv_req *in_srq; /* queue: receives posted there for DIRECT, not completed */
	uint32_t base;              /* SWITCH's seq */
	uint32_t pos;       /* next position: seq of the message that the next receive takes */
	uint32_t delivered; /* direct completions seen in this life of the SRQ */
	uint32_t nsrq;      /* receives in the SRQ, in_srq and HELD */
	bool switched;      /* SWITCH was processed */
	bool exact;         /* its messages are as long as their receives */
	struct tq_recv_req *room;   /* queue: TQ_RECV_REQ_HELD that wait for room in SRQ or CQ */
	uint32_t nheld;             /* unexpected HELD messages, and receives that have taken one */
	struct tq_unexpected *held; /* RECALLING: HELD messages that came (tuple_next) */
	uint32_t held_came;         /* and how many */
	bool recalled;              /* RECALLED has come: */
	uint32_t due;               /* deliveries that it counts */
	/* rx_policy.c: */
	enum tq_no_queue no_queue;
	struct tq_share early;     /* direct messages with a NOTICE that came before their receive,
				      in this life of the SRQ */
	uint32_t quiet;            /* messages since the last wildcard or probe */
	uint32_t backoff;          /* messages in quiet that the tuple has to receive */
	uint64_t seen;             /* ctx->wild_at at its last message */
	uint64_t used_at;          /* core->nmessages when it was last used */
	struct tq_tuple_info info; /* for reports */
	UT_hash_handle hh;         /* pair->rx_tuples, by tag */
	struct tq_rx_tuple *next, *prev;               /* ctx->queued */
	struct tq_rx_tuple *room_next, *room_prev;     /* core->room */
	struct tq_rx_tuple *lru_next, *lru_prev;       /* core->lru */
	struct tq_rx_tuple *record_next, *record_prev; /* core->rx_tuple_lru, or if parked
							  core->rx_tuple_parked */
	bool parked;
};

#endif
