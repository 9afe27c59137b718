/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link whose round trip takes longer than the intervals at which requests and checks are
 * repeated: test_slow [NAME], under "softhca run --nodes 1 --link latency=100ms".
 */
#include <string.h>
#include <unistd.h>

#include "many.h"

#define ENOUGH_S 10 /* seconds that each case may take */

/* Answers for a connection to a node come after other processes there have been asked. */
static void late_answers(void)
{
	static const char *const params[] = {NULL};
	enum { N = 4 };
	struct many_op sent[N], got[N];
	char data[N][64];
	struct tq_ctx *ctx[N];

	many_needs_lanes();
	many_deadline = ENOUGH_S;
	many_start_together(N, params, ctx);
	for (int i = 1; i < N; i++) {
		many_recv(ctx[i], 0, MANY_TAG, data[i], &got[i]);
		many_send(ctx[0], i, MANY_TAG, "from afar", 0, &sent[i]);
	}
	for (int i = 1; i < N; i++)
		t_true(many_comes(&got[i]) && many_comes(&sent[i]), "message %d didn't come", i);
	t_true(!many_errors, "an error: %s", many_error);
}

/* A flush ends although a keepalive is due before the one before has ended. */
static void keepalive(void)
{
	static const char *const params[] = {"keepalive=20", NULL};
	struct tq_ctx *ctx[2];

	many_needs_lanes();
	many_start_pair(params, ctx);
	alarm(ENOUGH_S);
	t_true(!tq_flush(many_eps[1]), "the flush failed: %s", many_error);
}

const struct many_case many_cases[] = {
	{"answers after others were asked", late_answers},
	{"a keepalive that lasts long", keepalive},
	{NULL, NULL},
};
