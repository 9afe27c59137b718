/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts and peers that come and go leave nothing behind, as the counters show: test_turnover
 * [NAME], under "softhca run --nodes 1".
 */
#include <errno.h>
#include <string.h>

#include "many.h"

/*
 * Returns the limit for a level that had this high value in the first rounds. A level may be higher
 * at one time than at another, but not by the leftovers of many rounds.
 */
static uint64_t about(const char *name, uint64_t high)
{
	/* Spare control buffers of each size, which are made SPARES at a time. A large one holds
	 * eager_max bytes and the message's header, in whole cache lines. */
	enum { SPARES = 16, SMALL = 256, LARGE = 16384 + 64 };

	return strcmp(name, "own_bytes") ? 2 * high + 2 : high + 2 * SPARES * (SMALL + LARGE);
}

static const char *const of_contexts[] = {
	"contexts",       "pairs",           "sender_tuples", "receiver_tuples",
	"tuples",         "unexpected_tags", "handle_slots",  "unexpected_records",
	"requests",       "own_bytes",       "srqs",          "cq_entries",
	"early_messages", "control_buffers"};

enum { OF_CONTEXTS = sizeof(of_contexts) / sizeof(of_contexts[0]) };

/* Uses a context: a tuple that gets a queue, one that gets none, and wildcards. */
static void use(struct tq_ctx **ctx)
{
	struct many_op sent, got;
	char data[64];

	for (int i = 0; i < 3; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	many_send(ctx[0], 1, 1, "early", 0, &sent);
	many_recv(ctx[1], TQ_ANY_SOURCE, 1, data, &got);
	t_true(many_comes(&got) && many_comes(&sent), "a message didn't come");
	many_recv(ctx[0], 1, TQ_ANY_TAG, data, &got);
	many_send(ctx[1], 0, 1, "back", 0, &sent);
	t_true(many_comes(&got) && many_comes(&sent), "a message didn't come");
}

static void contexts(void)
{
	static const char *const params[] = {"promote_after=0", NULL};
	enum { ROUNDS = 400, FIRST = 40 };
	uint64_t first_high[2][OF_CONTEXTS] = {{0}};
	struct tq_ctx *ctx[2], *of[2];

	many_start_apart(2, params, of);
	many_pass(of[0], of[1], 0, 1);
	many_pass(of[1], of[0], 1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		many_context(10 + (uint32_t)round, 2, ctx);
		use(ctx);
		tq_ctx_remove(ctx[round % 2]);
		many_spin(20);
		tq_ctx_remove(ctx[!(round % 2)]);
		many_falls(0, "contexts", 1);
		many_falls(1, "contexts", 1);
		for (int i = 0; i < 2 * OF_CONTEXTS; i++) {
			const char *name = of_contexts[i / 2];

			if (round < FIRST) {
				first_high[i % 2][i / 2] = many_high(i % 2, name);
				continue;
			}
			many_is_within(i % 2, name, about(name, first_high[i % 2][i / 2]));
		}
	}
}

static const char *const of_peers[] = {"peers",
				       "unnamed",
				       "nodes",
				       "lanes",
				       "hold_lanes",
				       "targets",
				       "srqs",
				       "srqs_idle",
				       "own_bytes",
				       "control_buffers",
				       "waiting",
				       "pairs",
				       "registered",
				       "connect_requests",
				       "handle_slots",
				       "cq_entries",
				       "contexts",
				       "sender_tuples",
				       "receiver_tuples",
				       "requests"};

enum { OF_PEERS = sizeof(of_peers) / sizeof(of_peers[0]) };

static const char *const served[] = {"promote_after=0", "service_thread=1", NULL};

/* Has one process come, ask endpoint 0 for a connection before endpoint 0 knows it, and go. */
static void come_and_go(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	char data[64];

	many_open_one(many_neps, served);
	many_know(1, 0);
	many_know(1, 1);
	many_context_at(1, 1, 2, ctx);
	many_send(ctx[1], 0, 3, "who is it?", 0, &sent);
	MANY_UNTIL(many_counter(0, "unnamed"), many_spin(10));
	many_is_within(0, "unnamed", 1);
	many_know(0, 1);
	many_is_within(0, "unnamed", 0);
	many_context_at(0, 1, 2, ctx);
	many_recv(ctx[0], 1, 3, data, &got);
	t_true(many_comes(&got) && many_comes(&sent), "the first one didn't come");
	use(ctx);
	tq_ctx_remove(ctx[0]);
	tq_ctx_remove(ctx[1]);
	many_falls(0, "contexts", 0);
	tq_close(many_eps[1]);
	many_neps = 1;
	tq_peer_remove(many_peers[0][1]);
	many_spin(100);
}

/* Has processes come and go, one at a time. */
static void peers(void)
{
	enum { ROUNDS = 60, FIRST = 10 };
	uint64_t first_high[OF_PEERS] = {0};

	many_open(1, true, served);
	many_know(0, 0);
	for (int round = 0; round < ROUNDS; round++) {
		come_and_go();
		for (int i = 0; i < OF_PEERS; i++) {
			if (round < FIRST)
				first_high[i] = many_high(0, of_peers[i]);
			else
				many_is_within(0, of_peers[i], about(of_peers[i], first_high[i]));
		}
	}
	many_is_within(0, "peers", 1);
	many_is_within(0, "nodes", 1);
	many_is_within(0, "targets", 0);
	t_true(!many_errors, "%d errors were logged", many_errors);
}

/* Checks that the rank of a removed peer in an open context is refused until a peer has it. */
static void open_context(void)
{
	struct tq_status status;
	struct tq_msg *message;
	struct tq_req *req;
	struct tq_ctx *ctx;
	char data[8] = "";
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	int rank;

	many_open(3, true, served);
	many_know(0, 1);
	many_know(0, 2);
	t_true(!tq_ctx_add(many_eps[0], 9, NULL, 0, 0, TQ_CTX_OPEN, &ctx), "no context");
	rank = tq_ctx_join(ctx, many_peers[0][1]);
	t_true(rank == 0, "the first peer's rank is %d", rank);
	tq_peer_remove(many_peers[0][1]);
	t_true(tq_send(ctx, rank, 1, &buf, 0, NULL, &req) == -EINVAL, "a send to nobody");
	t_true(tq_recv(ctx, rank, 1, &buf, NULL, &req, &status) == -EINVAL,
	       "a receive from nobody");
	t_true(tq_recv(ctx, rank, TQ_ANY_TAG, &buf, NULL, &req, &status) == -EINVAL,
	       "a wildcard receive from nobody");
	t_true(tq_probe(ctx, rank, 1, &status) == -EINVAL, "a probe of nobody");
	t_true(tq_mprobe(ctx, rank, 1, &status, &message) == -EINVAL, "a matched probe of nobody");
	t_true(tq_probe(ctx, rank, TQ_ANY_TAG, &status) == -EINVAL, "a wildcard probe of nobody");
	t_true(tq_mprobe(ctx, rank, TQ_ANY_TAG, &status, &message) == -EINVAL,
	       "a matched wildcard probe of nobody");
	t_true(tq_ctx_join(ctx, many_peers[0][2]) == rank, "the next peer has another rank");
}

/* Checks that a peer that is being removed stays until the data of its last message are read. */
static void read_at_the_end(void)
{
	enum { LENGTH = 1 << 20 };
	static const char *const params[] = {NULL};
	static char from[LENGTH], to[LENGTH];
	const struct tq_buf data = {.addr = from, .len = LENGTH};
	struct many_op sent = {0}, got = {0};
	struct tq_ctx *ctx[2];

	many_open(2, true, params);
	many_know_all();
	t_true(!tq_ctx_add(many_eps[0], 9, NULL, 0, 0, TQ_CTX_OPEN, &ctx[0]), "no context");
	t_true(!tq_ctx_join(ctx[0], many_peers[0][1]), "the first peer's rank isn't 0");
	many_context_at(1, 9, 2, ctx);
	/* The second message is read on a connection that is there. */
	for (int i = 0; i < 2; i++) {
		memset(from, 7 + i, LENGTH);
		many_recv_long(ctx[0], TQ_ANY_SOURCE, 3, to, LENGTH, &got);
		t_true(!tq_send(ctx[1], 0, 3, &data, 0, &sent, &sent.req), "no send");
		if (!i)
			t_true(many_comes(&got) && many_comes(&sent), "the first one doesn't come");
	}
	tq_peer_remove(many_peers[0][1]);
	MANY_UNTIL(got.ended, tq_progress(many_eps[0]));
	t_true(got.ended && !got.status.error, "the receive ended with %d", got.status.error);
	t_true(!memcmp(from, to, LENGTH), "the data are wrong");
}

const struct many_case many_cases[] = {
	{"a peer whose data are read while it is removed", read_at_the_end},
	{"a rank of an open context that nobody has", open_context},
	{"contexts that come and go", contexts},
	{"peers that come and go", peers},
	{0},
};
