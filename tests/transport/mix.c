/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic of all kinds of operations, and the checks after a failure. */
#include "mix.h"

#include <errno.h>
#include <string.h>

#define BIG    300000
#define MEDIUM 20000
#define SMALL  16
#define OPS    16
#define ROUNDS 2000 /* far more than are needed to reach any of the points */

/* ---- operations ---- */

static struct op {
	struct duo_op duo; /* first member */
	bool wild, cancelled;
	bool recv;
	int32_t tag;
	size_t len;
} ops[OPS];
static unsigned nops;
static unsigned char memory[OPS][BIG];
static bool dead; /* an operation has ended with -EIO */

/* Packs data, because memory that can't be registered goes in pieces. */
static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	memcpy(to, (unsigned char *)arg + offset, len);
}

static void unpack(void *arg, uint64_t offset, const void *from, size_t len)
{
	memcpy((unsigned char *)arg + offset, from, len);
}

static const struct tq_buf_ops scattered = {.pack = pack, .unpack = unpack};

static struct op *next(bool recv, int32_t tag, size_t len, struct tq_buf *buf)
{
	struct op *op = &ops[nops];

	t_true(nops < OPS, "too many operations");
	*op = (struct op){.recv = recv, .tag = tag, .len = len};
	*buf = (struct tq_buf){.addr = memory[nops++], .len = len};
	memset(buf->addr, recv ? 0xee : tag, len);
	if (tag == 7)
		buf->ops = &scattered, buf->arg = buf->addr;
	return op;
}

static void started(struct op *op, int rc)
{
	t_true(rc == 0 || rc == 1 || rc == -EIO, "an operation was refused: %d", rc);
	op->duo.ended = rc != 0;
	if (rc == -EIO)
		op->duo.status.error = rc;
}

static void out_to(struct duo *duo, int rank, int32_t tag, size_t len)
{
	struct tq_buf buf;
	struct op *op = next(false, tag, len, &buf);

	started(op, tq_send(duo->ctx, rank, tag, &buf, 0, op, &op->duo.req));
}

static void in_from(struct duo *duo, int rank, int32_t tag, size_t len)
{
	struct tq_buf buf;
	struct op *op = next(true, tag, len, &buf);

	op->wild = rank == TQ_ANY_SOURCE;
	started(op, tq_recv(duo->ctx, rank, tag, &buf, op, &op->duo.req, &op->duo.status));
}

static void out(struct duo *duo, int32_t tag, size_t len)
{
	out_to(duo, !duo->me, tag, len);
}

static void in(struct duo *duo, int32_t tag, size_t len)
{
	in_from(duo, !duo->me, tag, len);
}

/* Waits for an operation. A receive from any source does not end when one of the possible senders
 * is gone. */
static void wait_for(struct duo *duo, struct op *op)
{
	const unsigned char *data = memory[op - ops];

	while (!op->duo.ended) {
		tq_progress(duo->ep);
		if (op->wild && duo->errors && !op->cancelled && !op->duo.ended) {
			op->cancelled = true;
			tq_cancel(op->duo.req);
		}
	}
	if (op->duo.status.error == -EIO) {
		dead = true;
		return;
	}
	if (op->cancelled && op->duo.status.error == -ECANCELED)
		return;
	t_true(!op->duo.status.error, "tag %d ended with %d", op->tag, op->duo.status.error);
	if (op->recv)
		t_true(op->duo.status.length == op->len && data[0] == op->tag &&
			       data[op->len - 1] == op->tag,
		       "tag %d: wrong data", op->tag);
}

/* Waits for all operations. Returns false if the other process is dead. */
static bool wait_all(struct duo *duo)
{
	for (unsigned i = 0; i < nops; i++)
		wait_for(duo, &ops[i]);
	nops = 0;
	return !dead;
}

/* ---- traffic ---- */

static bool each_way(struct duo *duo)
{
	in(duo, 1, SMALL);
	in(duo, 2, BIG);
	out(duo, 1, SMALL);
	out(duo, 2, BIG);
	return wait_all(duo);
}

/*
 * Sends unexpected messages. If the tuples have queues, wildcards find these messages held.
 */
static bool late(struct duo *duo, bool wild)
{
	out(duo, 3, SMALL);
	out(duo, 3, SMALL);
	out(duo, 3, SMALL);
	out(duo, 4, SMALL);
	in(duo, 4, SMALL);
	wait_for(duo, &ops[nops - 1]);
	in_from(duo, wild ? TQ_ANY_SOURCE : !duo->me, 3, SMALL);
	in(duo, 3, SMALL);
	in(duo, 3, SMALL);
	return wait_all(duo);
}

static bool wildcard_first(struct duo *duo)
{
	in_from(duo, TQ_ANY_SOURCE, 5, MEDIUM);
	in(duo, 5, MEDIUM);
	out(duo, 5, MEDIUM);
	out(duo, 5, MEDIUM);
	return wait_all(duo);
}

static bool in_pieces(struct duo *duo)
{
	in(duo, 7, MEDIUM);
	out(duo, 7, MEDIUM);
	return wait_all(duo);
}

static bool probed(struct duo *duo)
{
	struct tq_status status;
	int rc;

	out(duo, 6, SMALL);
	do {
		rc = tq_probe(duo->ctx, !duo->me, 6, &status);
	} while (rc == 0);
	t_true(rc == 1 || rc == -EIO, "probe: %d", rc);
	in(duo, 6, SMALL);
	return wait_all(duo);
}

bool mix_receive(struct duo *duo)
{
	in(duo, 1, SMALL);
	return wait_all(duo);
}

bool mix_round(struct duo *duo, unsigned i)
{
	return each_way(duo) && late(duo, i % 4 == 3) && each_way(duo) &&
	       (i % 4 != 1 || wildcard_first(duo)) && in_pieces(duo) && (i % 4 != 2 || probed(duo));
}

void mix_until_failed(struct duo *duo)
{
	for (unsigned i = 0; i < ROUNDS && mix_round(duo, i); i++)
		;
	t_true(dead, "it didn't come to the point");
}

/* ---- after a failure ---- */

void mix_check_failed(struct duo *duo)
{
	t_true(duo->errors == 1, "%u errors were logged", duo->errors);
	t_true(strstr(duo->error, "the other"), "the error doesn't name the process: %s",
	       duo->error);
	in(duo, 9, SMALL); /* with other tags, because messages of these may have come before */
	out(duo, 9, SMALL);
	for (unsigned i = 0; i < nops; i++)
		t_true(ops[i].duo.ended && ops[i].duo.status.error == -EIO,
		       "an operation with the dead is started");
	nops = 0;
	dead = false;
	in_from(duo, duo->me, 1, BIG);
	out_to(duo, duo->me, 1, BIG);
	t_true(wait_all(duo), "what doesn't concern it failed");
}
