/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of the endpoints' users. Each endpoint has a stream of sends, and a stream of
 * receives, probes and cancels. Each stream is carried out in its order. Every message has a
 * number, with which its data begin.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <tupleq/match.h>

#include "model.h"

#define PROGRAM_CTXS   2
#define PROGRAM_IDS    256 /* number 0 belongs to no message */
#define PROGRAM_PIECES 5
#define PROGRAM_ORDERS 512 /* receives of an endpoint, at most */

enum op_kind {
	OP_SEND,
	OP_RECV,
	OP_PROBE,  /* if it finds a message, a receive for just that one is posted */
	OP_MPROBE, /* if it finds a message, that one is received, perhaps later */
	OP_CANCEL,
	OP_FLAGS /* the context's flags (TQ_CTX_*) become these */
};

struct op {
	enum op_kind kind;
	int at, ctx; /* the endpoint, and the number of its context */
	union {
		int peer; /* the other endpoint, or TQ_ANY_SOURCE */
		int to;   /* another name, for a send */
		int from; /* another name, for a receive or probe */
	};
	int32_t tag;
	uint64_t len;     /* of the message, or of the buffer */
	unsigned flags;   /* TQ_SEND_*; TQ_CTX_* */
	bool scattered;   /* the buffer has holes: after each byte, or after each piece */
	unsigned npieces; /* pieces of a scattered buffer, which are named; 0: bytes */
	int receive;      /* OP_CANCEL: the index of the receive in its stream */

	/* With match bits (entries.h). For entries: */
	uint32_t ignore; /* bits of the tag that don't matter */
	bool stays;      /* takes more than one message */
	bool queue;      /* TQ_ENTRY_QUEUE */
	bool picky;      /* passes over some messages */
	bool listed;
	tq_entry_id entry;
	struct op *owner; /* of a transfer: its entry; NULL: the message had no entry */
	/* For messages: */
	enum tq_disposition disposition;
	bool offered, dropped;
	struct op *store;                     /* has the data, if they were stored */
	uint64_t passed[PROGRAM_ORDERS / 64]; /* bit mask of the entries that passed over it */
	uint64_t taken_at, offered_at;        /* numbers of decisions */
	uint64_t appended_at;                 /* for entries */

	uint8_t id; /* for OP_SEND */
	struct tq_core *core;
	bool started, ended;
	bool awaited;   /* has to end although other endpoints are away */
	bool at_once;   /* ended when it started */
	bool cancelled; /* tq_core_cancel() was called */
	bool withdrawn; /* ended, and takes no part in matching */
	bool missed;    /* a probe that found nothing */
	struct tq_req *req;
	struct tq_msg *msg; /* mprobe: the message, taken and not received yet */
	struct tq_status status;
	struct tq_status expected; /* the status that a probe promised */
	bool promised;             /* `expected` is set */
	uint8_t *mem;
	struct tq_piece pieces[PROGRAM_PIECES];
	uint64_t moved;                /* pack() and unpack(): the place of the next piece */
	uint32_t order;                /* receives: the order of posting at the endpoint */
	uint64_t started_at, ended_at; /* steps of the run */
	struct op *match;              /* the receive of a send, or the send of a receive */
	bool foreign;                  /* the receive took a message of the hostile endpoint */
	struct op *next;               /* mprobes whose messages are still to be received */
};

struct stream {
	struct op **ops;
	int n, room, next;
};

struct program {
	struct stream sends[MODEL_EPS], recvs[MODEL_EPS];
	struct op *ids[PROGRAM_IDS];
	int nids;
	int nctx;
	unsigned ctx_flags;
	bool bits;            /* the contexts have match bits */
	struct op *transfers; /* list (next): memory of single messages (entries.c) */
};

/* Returns the rank of an endpoint in a context, which is not always its number. */
static inline int program_rank(int neps, int ctx, int ep)
{
	return ctx ? neps - 1 - ep : ep;
}

static inline bool op_is_receive(const struct op *op)
{
	return op->kind == OP_RECV || op->kind == OP_MPROBE;
}

/* Returns true if a receive or probe matches a message with this envelope. */
static inline bool op_matches(const struct op *recv, int ep, int32_t tag)
{
	return (recv->peer == TQ_ANY_SOURCE || recv->peer == ep) &&
	       (!((uint32_t)(recv->tag ^ tag) & ~recv->ignore) ||
		(recv->tag == TQ_ANY_TAG && tag >= 0));
}

/* Appends a copy of an operation. Returns NULL if no number is left for a message. */
struct op *program_add(struct program *prog, const struct op *op);
void program_free(struct program *prog);

/* ---- memory ---- */

/* Sets up the operation's memory, with the data if it is a send. */
struct tq_buf op_buf(struct op *op);
/* Overwrites the memory of an operation, which belongs to the user again. */
void op_give_back(struct op *op);
/*
 * Compares the data of a receive with the message that op->status names, and finds op->match if the
 * data show it. Then overwrites the data.
 */
void op_received(struct program *prog, struct op *recv, int neps);
/* Compares the first n bytes of the message with the data of a receive, and overwrites these. */
void op_holds(struct op *recv, const struct op *send, uint64_t n);
/* Checks that a message of the hostile endpoint was not written beside its memory. */
void op_received_foreign(struct op *recv);
/* Checks that a receive that took no message was not written to. */
void op_untouched(const struct op *recv);
/* Checks that the memory was not written to since the operation ended. */
void op_still(const struct op *op);
/* Returns a sum over the memory of a receive. */
uint64_t op_sum(const struct op *op);

#endif
