/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#define GUARD  16   /* bytes behind each buffer */
#define BEFORE 0xee /* fills a receive's memory at first */
#define AFTER  0xcc /* fills the memory of an operation that has ended */

static void stream_add(struct stream *stream, struct op *op)
{
	if (stream->n == stream->room) {
		stream->room = stream->room ? 2 * stream->room : 32;
		stream->ops = realloc(stream->ops, (size_t)stream->room * sizeof(struct op *));
	}
	stream->ops[stream->n++] = op;
}

struct op *program_add(struct program *prog, const struct op *from)
{
	struct op *op;

	if (from->kind == OP_SEND && prog->nids == PROGRAM_IDS - 1)
		return NULL;
	op = malloc(sizeof(*op));
	*op = *from;
	if (op->kind == OP_SEND) {
		op->id = (uint8_t)++prog->nids;
		prog->ids[op->id] = op;
		stream_add(&prog->sends[op->at], op);
	} else {
		stream_add(&prog->recvs[op->at], op);
	}
	return op;
}

static void stream_free(struct stream *stream)
{
	for (int i = 0; i < stream->n; i++) {
		free(stream->ops[i]->mem);
		free(stream->ops[i]);
	}
	free(stream->ops);
}

void program_free(struct program *prog)
{
	for (int i = 0; i < MODEL_EPS; i++) {
		stream_free(&prog->sends[i]);
		stream_free(&prog->recvs[i]);
	}
	while (prog->transfers) {
		struct op *op = prog->transfers;

		LL_DELETE(prog->transfers, op);
		free(op->mem);
		free(op);
	}
}

/* ---- memory ---- */

static uint8_t pattern(const struct op *send, uint64_t k)
{
	return k ? (uint8_t)(send->id * 37u + k * 11 + (k >> 8)) : send->id;
}

static size_t room(const struct op *op)
{
	return (op->scattered ? 2 : 1) * op->len + GUARD;
}

/* Returns the bytes of a piece, which a hole of the same length follows. */
static uint64_t piece(const struct op *op)
{
	return op->npieces && op->len ? (op->len + op->npieces - 1) / op->npieces : 1;
}

static uint8_t *byte(const struct op *op, uint64_t k)
{
	return op->mem + k + (op->scattered ? k / piece(op) * piece(op) : 0);
}

/* Returns true if one of the message's first `n` bytes lies there. */
static bool is_data(const struct op *op, uint64_t at, uint64_t n)
{
	uint64_t p = piece(op);

	if (!op->scattered)
		return at < n;
	return at % (2 * p) < p && at / (2 * p) * p + at % (2 * p) < n;
}

static unsigned name_pieces(struct op *op)
{
	unsigned n = 0;
	uint64_t at, p = piece(op);

	for (at = 0; op->npieces && at < op->len; at += p)
		op->pieces[n++] = (struct tq_piece){
			.addr = byte(op, at),
			.len = op->len - at < p ? op->len - at : p,
		};
	return n;
}

static void moved(struct op *op, uint64_t offset, size_t len)
{
	t_true(!op->core->service, "pack() or unpack() in service mode");
	t_true(!op->ended, "pack() or unpack() of a request that has ended");
	t_true(offset == op->moved || !offset, "pack() or unpack() out of order");
	t_true(offset + len <= op->len, "pack() or unpack() beyond the end");
	op->moved = offset + len;
}

static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	struct op *op = arg;

	moved(op, offset, len);
	for (size_t k = 0; k < len; k++)
		((uint8_t *)to)[k] = *byte(op, offset + k);
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	struct op *op = arg;

	moved(op, offset, len);
	for (size_t k = 0; k < len; k++)
		*byte(op, offset + k) = ((const uint8_t *)from)[k];
}

struct tq_buf op_buf(struct op *op)
{
	static const struct tq_buf_ops ops = {pack, unpack};

	op->mem = malloc(room(op));
	memset(op->mem, BEFORE, room(op));
	if (op->kind == OP_SEND) {
		for (uint64_t k = 0; k < op->len; k++)
			*byte(op, k) = pattern(op, k);
	}
	if (op->scattered)
		return (struct tq_buf){
			.len = op->len,
			.ops = &ops,
			.arg = op,
			.pieces = op->pieces,
			.npieces = name_pieces(op),
		};
	return (struct tq_buf){.addr = op->mem, .len = op->len};
}

void op_give_back(struct op *op)
{
	memset(op->mem, AFTER, room(op));
}

void op_still(const struct op *op)
{
	for (size_t k = 0; op->mem && k < room(op); k++)
		t_true(op->mem[k] == AFTER, "a buffer was written after its operation had ended");
}

void op_untouched(const struct op *recv)
{
	for (size_t k = 0; recv->mem && k < room(recv); k++)
		t_true(recv->mem[k] == BEFORE, "a receive that took no message was written to");
}

uint64_t op_sum(const struct op *op)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < room(op); k++)
		sum = sum * 31 + op->mem[k];
	return sum;
}

/* Finds the message that begins like the received data. */
static struct op *find(struct program *prog, const struct op *recv, int neps)
{
	const struct tq_status *st = &recv->status;
	struct op *send = prog->ids[*byte(recv, 0)];

	t_true(send && send->started, "receive %u at %d has data of no message", recv->order,
	       recv->at);
	t_true(!send->match, "message %u was received twice", send->id);
	t_true(send->peer == recv->at && send->ctx == recv->ctx,
	       "message %u came to the wrong place", send->id);
	t_true(st->source == program_rank(neps, send->ctx, send->at) && st->tag == send->tag,
	       "receive %u at %d has message %u of %d with tag %d, but says source %d, tag %d",
	       recv->order, recv->at, send->id, send->at, send->tag, st->source, st->tag);
	t_true(st->length == send->len, "message %u: %llu bytes, but the receive says %llu",
	       send->id, (unsigned long long)send->len, (unsigned long long)st->length);
	return send;
}

static uint64_t received_bytes(const struct op *recv)
{
	return recv->status.length < recv->len ? recv->status.length : recv->len;
}

static void check_beside(const struct op *recv, uint64_t n)
{
	for (uint64_t k = 0; k < room(recv); k++)
		t_true(is_data(recv, k, n) || recv->mem[k] == BEFORE,
		       "receive %u at %d: written beside its message", recv->order, recv->at);
}

void op_holds(struct op *recv, const struct op *send, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++)
		t_true(*byte(recv, k) == pattern(send, k), "message %u: byte %llu is wrong",
		       send->id, (unsigned long long)k);
	check_beside(recv, n);
	op_give_back(recv);
}

void op_received_foreign(struct op *recv)
{
	recv->foreign = true;
	check_beside(recv, received_bytes(recv));
	op_give_back(recv);
}

void op_received(struct program *prog, struct op *recv, int neps)
{
	uint64_t n = received_bytes(recv);

	if (n) {
		recv->match = find(prog, recv, neps);
		recv->match->match = recv;
	}
	op_holds(recv, recv->match, n);
}
