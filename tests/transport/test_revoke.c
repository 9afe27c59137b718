/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts that are revoked, and peers that are given up: test_revoke [PARAMETER=VALUE...], under
 * "softhca run --nodes 2".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "duo.h"

enum { TAGS = 6, EACH = 20, ERROR = -ESHUTDOWN, MINE = -7, OTHER = 9 };

/* Lengths of messages that go in each way: without data, eagerly or direct, and by rendezvous. */
static const size_t lens[] = {0, 8, 3000, 40000, 300000};

#define LENS    (sizeof(lens) / sizeof(lens[0]))
#define LONGEST 300000

/* Passes messages, until each tag has its queue. */
static void promote(struct duo *d)
{
	char c = 0;

	for (int n = 0; n < 4 * TAGS; n++)
		duo_pass(d, n % TAGS, &c, 1, 0);
}

static int start_recv(struct duo *d, int rank, int32_t tag)
{
	static char data[8];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_status status;
	struct tq_req *req;

	return tq_recv(d->ctx, rank, tag, &buf, NULL, &req, &status);
}

static int start_send(struct duo *d, int32_t tag)
{
	static char data[8];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_req *req;

	return tq_send(d->ctx, !d->me, tag, &buf, 0, NULL, &req);
}

static void must_end(struct duo *d, struct duo_op *op, int error)
{
	duo_wait(d, op);
	t_true(op->status.error == error, "a receive ended with %d", op->status.error);
}

/* Posts receives of each kind and revokes the context: they end, and later operations fail. */
static void receives(struct duo *d)
{
	static struct duo_op posted[TAGS], any_source, any_tag, mine;
	static char data[TAGS + 3][8];
	struct tq_status status;

	promote(d);
	for (int i = 0; i < TAGS; i++)
		duo_recv(d, !d->me, i, data[i], 8, &posted[i]);
	duo_recv(d, !d->me, MINE, data[TAGS], 8, &mine);
	duo_recv(d, TQ_ANY_SOURCE, 2 * TAGS, data[TAGS + 1], 8, &any_source);
	duo_recv(d, !d->me, TQ_ANY_TAG, data[TAGS + 2], 8, &any_tag);
	tq_ctx_revoke(d->ctx, false, ERROR);
	for (int i = 0; i < TAGS; i++)
		must_end(d, &posted[i], ERROR);
	must_end(d, &mine, ERROR);
	must_end(d, &any_source, ERROR);
	must_end(d, &any_tag, ERROR);
	t_true(start_recv(d, !d->me, 1) == ERROR, "a receive is started");
	t_true(start_recv(d, TQ_ANY_SOURCE, TQ_ANY_TAG) == ERROR, "a wildcard is started");
	t_true(start_recv(d, !d->me, MINE) == ERROR, "a receive of a negative tag is started");
	t_true(start_send(d, 1) == ERROR, "a send is started");
	t_true(tq_probe(d->ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, &status) == ERROR, "a probe looks");
}

static struct duo_op sends[2][TAGS * EACH];

/* Starts sends in all ways, with queues and without. */
static void send_all(struct duo *d, int part, const char *data)
{
	for (int i = 0; i < TAGS * EACH && !d->me; i++)
		duo_send(d, 1, i % (2 * TAGS), data, lens[i / TAGS % LENS],
			 i % 7 ? 0 : TQ_SEND_SYNC, &sends[part][i]);
}

/*
 * Has rank 0 send messages before rank 1 revokes the context, and after. Rank 1 drops them all, and
 * all sends end.
 */
static void drop(struct duo *d, bool removes)
{
	char *data = calloc(1, LONGEST);

	promote(d);
	send_all(d, 0, data);
	duo_meet(d);
	if (d->me)
		tq_ctx_revoke(d->ctx, false, ERROR);
	if (d->me && removes)
		tq_ctx_remove(d->ctx);
	duo_meet(d);
	send_all(d, 1, data);
	for (int i = 0; i < 2 * TAGS * EACH && !d->me; i++) {
		struct duo_op *op = &sends[i / (TAGS * EACH)][i % (TAGS * EACH)];

		duo_wait(d, op);
		t_true(!op->status.error, "a send ended with %d", op->status.error);
	}
	duo_meet(d);
	if (!d->me)
		t_true(!tq_flush(d->ep), "the messages can't be delivered");
	duo_meet(d);
	if (d->me)
		t_true(duo_counter(d, "recv_revoked") == 2 * TAGS * EACH, "%llu were dropped",
		       (unsigned long long)duo_counter(d, "recv_revoked"));
	free(data);
}

static void messages(struct duo *d)
{
	drop(d, false);
}

static void removed(struct duo *d)
{
	struct tq_ctx *ctx;

	drop(d, true);
	if (!d->me)
		return;
	t_true(tq_ctx_add(d->ep, DUO_CTX, d->peers, 2, 1, 0, &ctx) == -EINVAL,
	       "the id can be used again");
	/* The end of the test removes a context. */
	t_true(!tq_ctx_add(d->ep, DUO_CTX + 1, d->peers, 2, 1, 0, &d->ctx), "no context");
}

/* Revokes the negative tags: others go on. */
static void negative(struct duo *d)
{
	struct duo_op mine = {0}, other = {0};
	char data[8] = "", out[8] = "abcdefg";

	promote(d);
	duo_recv(d, !d->me, MINE, data, 8, &mine);
	duo_recv(d, TQ_ANY_SOURCE, TQ_ANY_TAG, data, 8, &other);
	tq_ctx_revoke(d->ctx, true, ERROR);
	must_end(d, &mine, ERROR);
	t_true(start_recv(d, !d->me, MINE) == ERROR, "a receive is started");
	t_true(start_send(d, MINE) == ERROR, "a send is started");
	t_true(!other.ended, "the other receive has ended");
	duo_meet(d);
	t_true(start_send(d, OTHER) == 1, "no message is sent");
	duo_wait(d, &other);
	t_true(!other.status.error && other.status.tag == OTHER, "no message has come");
	duo_pass(d, 1, out, 8, 0);
	/* Then all tags. */
	tq_ctx_revoke(d->ctx, false, 2 * ERROR);
	t_true(start_recv(d, !d->me, MINE) == 2 * ERROR && start_send(d, 1) == 2 * ERROR,
	       "the error isn't the last one");
}

/* Rank 0 gives rank 1 up, which is still there: what is under way with it ends. */
static void given_up(struct duo *d)
{
	static struct duo_op sent, posted;
	static char data[8];
	char *large = calloc(1, LONGEST);

	promote(d);
	if (!d->me) {
		duo_recv(d, 1, 1, data, sizeof(data), &posted);
		duo_send(d, 1, 1, large, LONGEST, 0, &sent);
		tq_peer_give_up(d->peers[1], "the test says so");
		must_end(d, &posted, -EIO);
		must_end(d, &sent, -EIO);
		t_true(strstr(d->error, "the test says so"), "the log says: %s", d->error);
		t_true(start_send(d, 1) == -EIO, "a send is started");
	}
	duo_meet(d);
	free(large);
	duo_close(d);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		duo_param(argv[i]);
	duo_run("revoked: receives end", receives);
	duo_run("revoked: messages are dropped", messages);
	duo_run("revoked: messages are dropped after the context was removed", removed);
	duo_run("revoked: negative tags", negative);
	duo_run("a peer that is given up", given_up);
	return duo_failed() != 0;
}
