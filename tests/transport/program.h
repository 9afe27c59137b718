/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the users of the endpoints do: per endpoint a stream of sends and a stream of receives,
 * probes and cancels, each carried out in its order. Every message has a number, with which its
 * data begin.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "model.h"

#define PROGRAM_CTXS   2
#define PROGRAM_IDS    256 /* 0 is no message */
#define PROGRAM_PIECES 5

enum op_kind {
	OP_SEND,
	OP_RECV,
	OP_PROBE,  /* if it finds a message, a receive for just that is posted */
	OP_MPROBE, /* if it finds a message, that is received, perhaps later */
	OP_CANCEL,
	OP_FLAGS /* the context's flags (TQ_CTX_*) change to these */
};

struct op {
	enum op_kind kind;
	int at, ctx; /* the endpoint that does it, in which of its contexts */
	union {
		int peer; /* the other endpoint, or TQ_ANY_SOURCE: */
		int to;   /* by its name in a send, */
		int from; /* and in a receive or probe */
	};
	int32_t tag;
	uint64_t len;     /* of the message, or of the buffer */
	unsigned flags;   /* TQ_SEND_*; TQ_CTX_* */
	bool scattered;   /* its buffer isn't contiguous: there is a hole behind each byte, or: */
	unsigned npieces; /* behind each of so many pieces, which are named */
	int receive;      /* OP_CANCEL: the index of the receive in its stream */

	uint8_t id; /* OP_SEND */
	struct tq_core *core;
	bool started, ended;
	bool awaited;   /* must end although others are away */
	bool at_once;   /* it ended when it was started */
	bool cancelled; /* tq_core_cancel() was called; and with success: */
	bool withdrawn;
	bool missed; /* a probe that found nothing */
	struct tq_req *req;
	struct tq_msg *msg; /* mprobe: taken, not received yet */
	struct tq_status status;
	struct tq_status expected; /* what a probe promised, if it did: */
	bool promised;
	uint8_t *mem;
	struct tq_piece pieces[PROGRAM_PIECES];
	uint64_t moved;                /* pack() and unpack(): where the next piece begins */
	uint32_t order;                /* receives: of posting, at the endpoint */
	uint64_t started_at, ended_at; /* steps */
	struct op *match;              /* receive <-> send */
	bool foreign;                  /* it took a message of the hostile endpoint's */
	struct op *next;               /* mprobes to be received */
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
};

/* The rank of an endpoint in a context: not always its number. */
static inline int program_rank(int neps, int ctx, int ep)
{
	return ctx ? neps - 1 - ep : ep;
}

static inline bool op_is_receive(const struct op *op)
{
	return op->kind == OP_RECV || op->kind == OP_MPROBE;
}

/* Would a receive (or probe) take a message with this envelope? */
static inline bool op_matches(const struct op *recv, int ep, int32_t tag)
{
	return (recv->peer == TQ_ANY_SOURCE || recv->peer == ep) &&
	       (recv->tag == tag || (recv->tag == TQ_ANY_TAG && tag >= 0));
}

/* Appends a copy. NULL: no number is left for a message. */
struct op *program_add(struct program *prog, const struct op *op);
void program_free(struct program *prog);

/* ---- memory ---- */

/* Sets the operation's memory up: a message's data, or nothing yet. */
struct tq_buf op_buf(struct op *op);
/* The message is the user's again: it is overwritten. */
void op_sent(struct op *send);
/* Compares what came with the message that it claims to be (op->status); finds op->match if the
 * data tell. Then overwrites it. */
void op_received(struct program *prog, struct op *recv, int neps);
/* What came is anything: nothing is written beside it. */
void op_received_foreign(struct op *recv);
/* A receive that took nothing. */
void op_untouched(const struct op *recv);
/* Nobody has written to it since it ended. */
void op_still(const struct op *op);
/* A sum over the memory of a receive. */
uint64_t op_sum(const struct op *op);

#endif
