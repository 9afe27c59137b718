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

static void out_to(struct duo *d, int rank, int32_t tag, size_t len)
{
	struct tq_buf buf;
	struct op *op = next(false, tag, len, &buf);

	started(op, tq_send(d->ctx, rank, tag, &buf, 0, op, &op->duo.req));
}

static void in_from(struct duo *d, int rank, int32_t tag, size_t len)
{
	struct tq_buf buf;
	struct op *op = next(true, tag, len, &buf);

	op->wild = rank == TQ_ANY_SOURCE;
	started(op, tq_recv(d->ctx, rank, tag, &buf, op, &op->duo.req, &op->duo.status));
}

static void out(struct duo *d, int32_t tag, size_t len)
{
	out_to(d, !d->me, tag, len);
}

static void in(struct duo *d, int32_t tag, size_t len)
{
	in_from(d, !d->me, tag, len);
}

/* Waits for an operation. A receive from any source does not end when one of the possible senders
 * is gone. */
static void wait_for(struct duo *d, struct op *op)
{
	const unsigned char *data = memory[op - ops];

	while (!op->duo.ended) {
		tq_progress(d->ep);
		if (op->wild && d->errors && !op->cancelled && !op->duo.ended) {
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
static bool wait_all(struct duo *d)
{
	for (unsigned i = 0; i < nops; i++)
		wait_for(d, &ops[i]);
	nops = 0;
	return !dead;
}

/* ---- traffic ---- */

static bool each_way(struct duo *d)
{
	in(d, 1, SMALL);
	in(d, 2, BIG);
	out(d, 1, SMALL);
	out(d, 2, BIG);
	return wait_all(d);
}

/*
 * Sends unexpected messages. If the tuples have queues, wildcards find these messages held.
 */
static bool late(struct duo *d, bool wild)
{
	out(d, 3, SMALL);
	out(d, 3, SMALL);
	out(d, 3, SMALL);
	out(d, 4, SMALL);
	in(d, 4, SMALL);
	wait_for(d, &ops[nops - 1]);
	in_from(d, wild ? TQ_ANY_SOURCE : !d->me, 3, SMALL);
	in(d, 3, SMALL);
	in(d, 3, SMALL);
	return wait_all(d);
}

static bool wildcard_first(struct duo *d)
{
	in_from(d, TQ_ANY_SOURCE, 5, MEDIUM);
	in(d, 5, MEDIUM);
	out(d, 5, MEDIUM);
	out(d, 5, MEDIUM);
	return wait_all(d);
}

static bool in_pieces(struct duo *d)
{
	in(d, 7, MEDIUM);
	out(d, 7, MEDIUM);
	return wait_all(d);
}

static bool probed(struct duo *d)
{
	struct tq_status status;
	int rc;

	out(d, 6, SMALL);
	do {
		rc = tq_probe(d->ctx, !d->me, 6, &status);
	} while (rc == 0);
	t_true(rc == 1 || rc == -EIO, "probe: %d", rc);
	in(d, 6, SMALL);
	return wait_all(d);
}

bool mix_receive(struct duo *d)
{
	in(d, 1, SMALL);
	return wait_all(d);
}

bool mix_round(struct duo *d, unsigned i)
{
	return each_way(d) && late(d, i % 4 == 3) && each_way(d) &&
	       (i % 4 != 1 || wildcard_first(d)) && in_pieces(d) && (i % 4 != 2 || probed(d));
}

void mix_until_failed(struct duo *d)
{
	for (unsigned i = 0; i < ROUNDS && mix_round(d, i); i++)
		;
	t_true(dead, "it didn't come to the point");
}

/* ---- after a failure ---- */

void mix_check_failed(struct duo *d)
{
	t_true(d->errors == 1, "%u errors were logged", d->errors);
	t_true(strstr(d->error, "the other"), "the error doesn't name the process: %s", d->error);
	in(d, 9, SMALL); /* with other tags, because messages of these may have come before */
	out(d, 9, SMALL);
	for (unsigned i = 0; i < nops; i++)
		t_true(ops[i].duo.ended && ops[i].duo.status.error == -EIO,
		       "an operation with the dead is started");
	nops = 0;
	dead = false;
	in_from(d, d->me, 1, BIG);
	out_to(d, d->me, 1, BIG);
	t_true(wait_all(d), "what doesn't concern it failed");
}
