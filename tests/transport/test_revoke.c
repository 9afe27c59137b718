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
static void promote(struct duo *duo)
{
	char c = 0;

	for (int n = 0; n < 4 * TAGS; n++)
		duo_pass(duo, n % TAGS, &c, 1, 0);
}

static int start_recv(struct duo *duo, int rank, int32_t tag)
{
	static char data[8];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_status status;
	struct tq_req *req;

	return tq_recv(duo->ctx, rank, tag, &buf, NULL, &req, &status);
}

static int start_send(struct duo *duo, int32_t tag)
{
	static char data[8];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_req *req;

	return tq_send(duo->ctx, !duo->me, tag, &buf, 0, NULL, &req);
}

static void must_end(struct duo *duo, struct duo_op *op, int error)
{
	duo_wait(duo, op);
	t_true(op->status.error == error, "a receive ended with %d", op->status.error);
}

/* Posts receives of each kind and revokes the context: they end, and later operations fail. */
static void receives(struct duo *duo)
{
	static struct duo_op posted[TAGS], any_source, any_tag, mine;
	static char data[TAGS + 3][8];
	struct tq_status status;

	promote(duo);
	for (int i = 0; i < TAGS; i++)
		duo_recv(duo, !duo->me, i, data[i], 8, &posted[i]);
	duo_recv(duo, !duo->me, MINE, data[TAGS], 8, &mine);
	duo_recv(duo, TQ_ANY_SOURCE, 2 * TAGS, data[TAGS + 1], 8, &any_source);
	duo_recv(duo, !duo->me, TQ_ANY_TAG, data[TAGS + 2], 8, &any_tag);
	tq_ctx_revoke(duo->ctx, false, ERROR);
	for (int i = 0; i < TAGS; i++)
		must_end(duo, &posted[i], ERROR);
	must_end(duo, &mine, ERROR);
	must_end(duo, &any_source, ERROR);
	must_end(duo, &any_tag, ERROR);
	t_true(start_recv(duo, !duo->me, 1) == ERROR, "a receive is started");
	t_true(start_recv(duo, TQ_ANY_SOURCE, TQ_ANY_TAG) == ERROR, "a wildcard is started");
	t_true(start_recv(duo, !duo->me, MINE) == ERROR, "a receive of a negative tag is started");
	t_true(start_send(duo, 1) == ERROR, "a send is started");
	t_true(tq_probe(duo->ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, &status) == ERROR, "a probe looks");
}

static struct duo_op sends[2][TAGS * EACH];

/* Starts sends in all ways, with queues and without. */
static void send_all(struct duo *duo, int part, const char *data)
{
	for (int i = 0; i < TAGS * EACH && !duo->me; i++)
		duo_send(duo, 1, i % (2 * TAGS), data, lens[i / TAGS % LENS],
			 i % 7 ? 0 : TQ_SEND_SYNC, &sends[part][i]);
}

/*
 * Has rank 0 send messages before rank 1 revokes the context, and after. Rank 1 drops them all, and
 * all sends end.
 */
static void drop(struct duo *duo, bool removes)
{
	char *data = calloc(1, LONGEST);

	promote(duo);
	send_all(duo, 0, data);
	duo_meet(duo);
	if (duo->me)
		tq_ctx_revoke(duo->ctx, false, ERROR);
	if (duo->me && removes)
		tq_ctx_remove(duo->ctx);
	duo_meet(duo);
	send_all(duo, 1, data);
	for (int i = 0; i < 2 * TAGS * EACH && !duo->me; i++) {
		struct duo_op *op = &sends[i / (TAGS * EACH)][i % (TAGS * EACH)];

		duo_wait(duo, op);
		t_true(!op->status.error, "a send ended with %d", op->status.error);
	}
	duo_meet(duo);
	if (!duo->me)
		t_true(!tq_flush(duo->ep), "the messages can't be delivered");
	duo_meet(duo);
	if (duo->me)
		t_true(duo_counter(duo, "recv_revoked") == 2 * TAGS * EACH, "%llu were dropped",
		       (unsigned long long)duo_counter(duo, "recv_revoked"));
	t_true(!duo_counter(duo, "recv_truncated"), "dropped messages count as truncated");
	free(data);
}

static void messages(struct duo *duo)
{
	drop(duo, false);
}

static void removed(struct duo *duo)
{
	drop(duo, true);
	if (!duo->me)
		return;
	/* The end of the test removes a context. */
	t_true(!tq_ctx_add(duo->ep, DUO_CTX + 1, duo->peers, 2, 1, 0, &duo->ctx), "no context");
}

/* Gives the id of a revoked context to another one, on both sides, several times. */
static void id_again(struct duo *duo)
{
	static struct duo_op posted;
	static char data[8];
	struct tq_ctx *ctx;

	for (int i = 0; i < 4; i++) {
		promote(duo);
		duo_recv(duo, !duo->me, 1, data, sizeof(data), &posted);
		duo_meet(duo);
		tq_ctx_revoke(duo->ctx, false, ERROR);
		must_end(duo, &posted, ERROR);
		t_true(tq_ctx_add(duo->ep, DUO_CTX, duo->peers, 2, duo->me, 0, &ctx) == -EINVAL,
		       "the id is given away before the context was removed");
		tq_ctx_remove(duo->ctx);
		t_true(!tq_ctx_add(duo->ep, DUO_CTX, duo->peers, 2, duo->me, 0, &duo->ctx),
		       "the id can't be used again");
		duo_meet(duo);
	}
	promote(duo);
}

/* Revokes the negative tags: others go on. */
static void negative(struct duo *duo)
{
	struct duo_op mine = {0}, other = {0};
	char data[8] = "", out[8] = "abcdefg";

	promote(duo);
	duo_recv(duo, !duo->me, MINE, data, 8, &mine);
	duo_recv(duo, TQ_ANY_SOURCE, TQ_ANY_TAG, data, 8, &other);
	tq_ctx_revoke(duo->ctx, true, ERROR);
	must_end(duo, &mine, ERROR);
	t_true(start_recv(duo, !duo->me, MINE) == ERROR, "a receive is started");
	t_true(start_send(duo, MINE) == ERROR, "a send is started");
	t_true(!other.ended, "the other receive has ended");
	duo_meet(duo);
	t_true(start_send(duo, OTHER) == 1, "no message is sent");
	duo_wait(duo, &other);
	t_true(!other.status.error && other.status.tag == OTHER, "no message has come");
	duo_pass(duo, 1, out, 8, 0);
	/* Then all tags. */
	tq_ctx_revoke(duo->ctx, false, 2 * ERROR);
	t_true(start_recv(duo, !duo->me, MINE) == 2 * ERROR && start_send(duo, 1) == 2 * ERROR,
	       "the error isn't the last one");
}

/* Rank 0 gives up rank 1, which is still there: operations under way with rank 1 end. */
static void given_up(struct duo *duo)
{
	static struct duo_op sent, posted;
	static char data[8];
	char *large = calloc(1, LONGEST);

	promote(duo);
	if (!duo->me) {
		duo_recv(duo, 1, 1, data, sizeof(data), &posted);
		duo_send(duo, 1, 1, large, LONGEST, 0, &sent);
		tq_peer_give_up(duo->peers[1], "the test says so");
		must_end(duo, &posted, -EIO);
		must_end(duo, &sent, -EIO);
		t_true(strstr(duo->error, "the test says so"), "the log says: %s", duo->error);
		t_true(start_send(duo, 1) == -EIO, "a send is started");
	}
	duo_meet(duo);
	free(large);
	duo_close(duo);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		duo_param(argv[i]);
	duo_run("revoked: receives end", receives);
	duo_run("revoked: messages are dropped", messages);
	duo_run("revoked: messages are dropped after the context was removed", removed);
	duo_run("revoked: the id is used again", id_again);
	duo_run("revoked: negative tags", negative);
	duo_run("a peer that is given up", given_up);
	return duo_failed() != 0;
}
