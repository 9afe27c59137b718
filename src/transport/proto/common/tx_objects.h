/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's objects: sends, and its side of tuples. */
#ifndef TQ_PROTO_TX_OBJECTS_H
#define TQ_PROTO_TX_OBJECTS_H

#include "proto/common/objects.h"

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
	bool copied;              /* sg is from the pool of copies */
	bool uncopied;            /* the pool of copies was empty once */
	bool reported;            /* direct: named in a HELD message */
	bool nodirect;            /* RTS: with TQ_RTS_NODIRECT, or of a tuple that wasn't DIRECT */
	bool empty;               /* counted in core->nempty */
	uint32_t handle;          /* RTS: the receiver's name for the send */
	struct tq_sg sg;          /* registered memory of the message; sg.reg NULL: none (yet) */
	struct tq_pieces *pieces; /* the memory, if it is several pieces; sg.reg is one of theirs */
	struct tq_prefix *prefix; /* with match bits, if the message may go direct */
	uint64_t offset;          /* PIECES, AGAIN: bytes sent so far */
	uint64_t wanted;          /* PIECES, AGAIN, WRITING: bytes that the receiver wants */
	/* From here on a new send sets what each has, and nothing else. */
	struct tq_pair *pair;
	struct tq_tx_tuple *tx_tuple; /* NULL: its tag is used once, or it was the first with it */
	uint64_t tag;
	uint32_t cseq, seq;
	unsigned flags; /* TQ_SEND_* */
	struct tq_buf buf;
	void *cookie;                                  /* of the registration of sg */
	uint32_t recv_req;                             /* the receive's handle at the receiver */
	struct tq_send_req *next, *prev;               /* tuple->direct, or tuple->granted */
	struct tq_send_req *pair_next, *pair_prev;     /* pair->send_reqs */
	struct tq_send_req *pieces_next, *pieces_prev; /* core->pieces */
};

enum tq_tx_tuple_state {
	TQ_TX_TUPLE_CONTROL,
	TQ_TX_TUPLE_ASKED,   /* a message of it asked for the queue */
	TQ_TX_TUPLE_OFFERED, /* SRQN came: waits for a lane to switch */
	TQ_TX_TUPLE_DIRECT,
	TQ_TX_TUPLE_RECALLING, /* RECALL came: RECALLED is due when all that was granted is
				  posted */
	TQ_TX_TUPLE_STATES
};

struct tq_tx_tuple {
	struct tq_pair *pair;
	uint64_t tag;
	enum tq_tx_tuple_state state;
	uint32_t handle; /* the receiver's name for the tuple; 0: it has none yet */
	uint32_t seq;    /* number of the next message */
	/* Messages long enough for a queue since the tuple was last refused, recalled or made: it
	 * asks for its queue when they reach `ask_at`. */
	uint32_t sent;
	uint32_t ask_at;
	/* While the tuple has an SRQ: */
	uint32_t rx_tuple, srqn;
	uint64_t max_len;
	uint32_t base;      /* SWITCH's seq */
	uint32_t delivered; /* direct sends completed in this life of the SRQ */
	uint32_t position;  /* RECALLING: the receiver's next position, relative to `base` */
	/* Hold lane that is the tuple's own; may be kept while nothing is outstanding. */
	struct tq_lane *lane;
	struct tq_send_req *direct;  /* queue: direct sends not complete, in seq order */
	struct tq_send_req *granted; /* queue: sends in GRANTED, in seq order */
	bool on_bulk;                /* direct sends are on the bulk lane */
	uint32_t nrts;               /* RTS not resolved */
	bool waiting;                /* OFFERED: in core->want_lane */
	bool idle;                   /* in peer->idle_lanes */
	bool used;                   /* since tq_tx_tuples_trim() last passed over the record */
	bool parked;                 /* not in core->tx_tuple_lru */
	/* tx_tuple_table.c: */
	bool watched;
	uint32_t oldest, looks; /* seq of the oldest direct message, how often it was seen */
	struct tq_tx_tuple *watch_next, *watch_prev;   /* core->watched */
	UT_hash_handle hh;                             /* pair->tx_tuples, by tag */
	struct tq_tx_tuple *record_next, *record_prev; /* core->tx_tuple_lru */
	struct tq_tx_tuple *lane_next, *lane_prev;     /* of `idle` or `waiting`, never both */
};

#endif
