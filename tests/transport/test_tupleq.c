/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all kinds between two processes.
 *
 * test_tupleq [NAME] [PARAMETER=VALUE...], under "softhca run --nodes 2"
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tupleq_queues.h"

#define BIG (4u << 20)

static void check(const unsigned char *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		t_true(data[i] == duo_byte(i, seed), "%zu bytes, message %u: byte %zu is wrong",
		       len, seed, i);
}

static void *memory(size_t len)
{
	void *p = malloc(len + 1);

	t_true(p, "no memory");
	return p;
}

/* ---- sizes ---- */

/*
 * Passes messages of one size to and fro, often enough for the tuple to get its queue. Receives are
 * posted before their messages, after them, or at the same time.
 */
static void ping_pong(struct duo *duo, size_t len, unsigned char *out, unsigned char *in)
{
	struct duo_op s, r;

	for (unsigned i = 0; i < 12; i++) {
		duo_fill(out, len, i + (unsigned)duo->me);
		memset(in, 0xee, len + 1);
		if (i % 3 == 0) {
			duo_recv(duo, !duo->me, 1, in, len, &r);
			duo_meet(duo);
		}
		duo_send(duo, !duo->me, 1, out, len, 0, &s);
		if (i % 3 == 1)
			duo_meet(duo);
		if (i % 3)
			duo_recv(duo, !duo->me, 1, in, len, &r);
		duo_wait(duo, &r);
		duo_wait(duo, &s);
		t_true(!r.status.error && r.status.length == len && r.status.tag == 1 &&
			       r.status.source == !duo->me,
		       "%zu bytes: error %d, length %llu, source %d, tag %d", len, r.status.error,
		       (unsigned long long)r.status.length, r.status.source, r.status.tag);
		check(in, len, i + (unsigned)!duo->me);
		t_true(in[len] == 0xee, "%zu bytes: written beyond the end", len);
	}
}

static void sizes(struct duo *duo)
{
	static const size_t list[] = {0,    1,    63,    64,    255,      256,    4096,
				      4097, 8191, 12345, 65536, 1u << 20, BIG + 3};
	unsigned char *out = memory(BIG + 3), *in = memory(BIG + 3);

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		ping_pong(duo, list[i], out, in);
	free(out);
	free(in);
}

/* ---- matching ---- */

#define TAGS 20

/* More tags wait than there are lanes, and are received in the reverse order. */
static void crossed(struct duo *duo)
{
	static const size_t lens[] = {16, 10000, 100000};
	struct duo_op ops[TAGS];
	unsigned char *data[TAGS];

	for (int t = 0; t < TAGS; t++)
		data[t] = memory(100000);
	for (int round = 0; round < 9; round++) {
		size_t len = lens[round % 3];

		for (int t = 0; t < TAGS; t++) {
			int tag = duo->me ? TAGS - 1 - t : t;

			if (!duo->me) {
				duo_fill(data[tag], len, (unsigned)(tag + round));
				duo_send(duo, 1, tag, data[tag], len, 0, &ops[tag]);
			} else {
				duo_recv(duo, 0, tag, data[tag], len, &ops[tag]);
				duo_wait(duo, &ops[tag]);
				check(data[tag], len, (unsigned)(tag + round));
			}
		}
		for (int t = 0; t < TAGS; t++)
			duo_wait(duo, &ops[t]);
	}
	for (int t = 0; t < TAGS; t++)
		free(data[t]);
}

/* Messages of one sender and tag come in their order, whichever kind of receive takes them. */
static void wildcards(struct duo *duo)
{
	enum { N = 600 };
	static unsigned char data[N][64];
	static struct duo_op ops[N];
	unsigned next[3] = {0};

	for (unsigned i = 0; i < N && duo->me == 0; i++) {
		memcpy(data[i], &i, sizeof(i));
		duo_send(duo, 1, (int)(i % 3), data[i], 64, 0, &ops[i]);
		if (i % 16 == 0)
			duo_wait(duo, &ops[i]);
	}
	for (unsigned i = 0; i < N && duo->me == 1; i++) {
		unsigned got;
		int tag = (int)(i % 3);

		/* Receives of one kind come in runs, so that the tuple has time to get a queue. */
		duo_recv(duo, i / 60 % 3 == 1 ? TQ_ANY_SOURCE : 0,
			 i / 60 % 4 == 2 ? TQ_ANY_TAG : tag, data[i], 64, &ops[i]);
		duo_wait(duo, &ops[i]);
		memcpy(&got, data[i], sizeof(got));
		t_true(!ops[i].status.error && got == 3 * next[got % 3] + got % 3 &&
			       ops[i].status.tag == (int)(got % 3) && ops[i].status.source == 0,
		       "receive %u: message %u with tag %d", i, got, ops[i].status.tag);
		next[got % 3]++;
	}
	for (unsigned i = 0; i < N; i++)
		duo_wait(duo, &ops[i]);
}

static void to_itself(struct duo *duo)
{
	unsigned char *in = memory(50000), *out = memory(50000);
	struct duo_op s, r;

	for (unsigned i = 0; i < 12; i++) {
		size_t len = i % 2 ? 50000 : 100;

		duo_fill(out, len, i);
		duo_send(duo, duo->me, 7, out, len, 0, &s);
		duo_recv(duo, i % 4 ? duo->me : TQ_ANY_SOURCE, 7, in, len, &r);
		duo_wait(duo, &r);
		duo_wait(duo, &s);
		check(in, len, i);
	}
	free(in);
	free(out);
}

static void truncated(struct duo *duo)
{
	unsigned char *data = memory(100000);
	struct duo_op op;

	for (unsigned i = 0; i < 24; i++) {
		size_t len = i % 2 ? 100000 : 200;

		duo_fill(data, len, i);
		if (duo->me == 0) {
			duo_send(duo, 1, 2, data, len, 0, &op);
			duo_wait(duo, &op);
			continue;
		}
		memset(data, 0xee, 100000);
		duo_recv(duo, 0, 2, data, i % 3 ? 100 : 0, &op);
		duo_wait(duo, &op);
		t_true(op.status.error == -EMSGSIZE && op.status.length == len,
		       "error %d, length %llu", op.status.error,
		       (unsigned long long)op.status.length);
		check(data, i % 3 ? 100 : 0, i);
		t_true(data[i % 3 ? 100 : 0] == 0xee, "written beyond the end");
	}
	free(data);
}

static void synchronous(struct duo *duo)
{
	char c = 's';
	struct duo_op op;

	for (int i = 0; i < 12; i++) {
		if (duo->me == 0) {
			duo_send(duo, 1, 3, &c, 1, TQ_SEND_SYNC, &op);
			for (int k = 0; k < 1000; k++)
				tq_progress(duo->ep);
			t_true(!op.ended, "it ended without a receive");
			duo_meet(duo);
		} else {
			duo_meet(duo);
			duo_recv(duo, 0, 3, &c, 1, &op);
		}
		duo_wait(duo, &op);
	}
}

static void probes(struct duo *duo)
{
	unsigned char data[300];
	struct tq_status status;
	struct tq_msg *msg;
	struct duo_op op = {0};
	struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	int rc;

	for (unsigned i = 0; i < 30; i++) {
		size_t len = i * 10;

		if (duo->me == 0) {
			duo_fill(data, len, i);
			duo_send(duo, 1, 4, data, len, 0, &op);
			duo_wait(duo, &op);
			continue;
		}
		while ((rc = tq_probe(duo->ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, &status)) == 0)
			;
		t_true(rc == 1 && status.length == len && status.tag == 4, "probe: %d, %llu", rc,
		       (unsigned long long)status.length);
		while ((rc = tq_mprobe(duo->ctx, 0, 4, &status, &msg)) == 0)
			;
		t_true(rc == 1 && status.length == len, "mprobe: %d, %llu", rc,
		       (unsigned long long)status.length);
		op = (struct duo_op){0};
		rc = tq_mrecv(msg, &buf, &op, &op.req, &op.status);
		t_true(rc >= 0, "mrecv: %d", rc);
		op.ended = rc;
		duo_wait(duo, &op);
		check(data, len, i);
	}
}

static void cancelled(struct duo *duo)
{
	struct duo_op first, second;
	char a = 0, b = 0;
	int rc;

	for (int i = 0; i < 20; i++) {
		char c = (char)i;

		if (duo->me == 0) {
			duo_meet(duo);
			duo_send(duo, 1, 5, &c, 1, 0, &first);
			duo_wait(duo, &first);
			continue;
		}
		duo_recv(duo, i % 2 ? TQ_ANY_SOURCE : 0, 5, &a, 1, &first);
		duo_recv(duo, 0, 5, &b, 1, &second);
		rc = tq_cancel(first.req);
		t_true(!rc, "cancel: %d", rc);
		duo_wait(duo, &first);
		t_true(first.status.error == -ECANCELED, "error %d", first.status.error);
		duo_meet(duo);
		duo_wait(duo, &second);
		t_true(b == c, "message %d came as %d", c, b);
	}
}

/*
 * Receives of one tag are ended together, in queues and behind wildcards. Receives of other tags,
 * and later ones of that tag, are not.
 */
static void ended(struct duo *duo)
{
	enum { N = 6 };
	struct duo_op ops[N], other;
	char data[N], last = 0;
	int k;

	for (int i = 0; i < 20; i++) {
		char c = (char)i;

		if (duo->me == 0) {
			duo_meet(duo);
			duo_send(duo, 1, 8, &c, 1, 0, &other);
			duo_wait(duo, &other);
			duo_send(duo, 1, 9, &c, 1, 0, &other);
			duo_wait(duo, &other);
			continue;
		}
		for (k = 0; k < N; k++)
			duo_recv(duo, k == 3 && i % 2 ? TQ_ANY_SOURCE : 0, 8, &data[k], 1, &ops[k]);
		duo_recv(duo, 0, 9, &last, 1, &other);
		tq_end_receives(duo->ep, DUO_CTX, 8, -EMSGSIZE);
		for (k = 0; k < N; k++) {
			duo_wait(duo, &ops[k]);
			t_true(ops[k].status.error == -EMSGSIZE, "receive %d: error %d", k,
			       ops[k].status.error);
		}
		tq_end_receives(duo->ep, DUO_CTX + 1000, 9, -EMSGSIZE);
		duo_meet(duo);
		duo_recv(duo, 0, 8, &data[0], 1, &ops[0]);
		duo_wait(duo, &ops[0]);
		duo_wait(duo, &other);
		t_true(!other.status.error && data[0] == c && last == c,
		       "message %d came as %d and %d", c, data[0], last);
	}
}

/* ---- failures ---- */

static void dead_peer(struct duo *duo)
{
	static char data[1000000];
	struct duo_op op, recv;
	int rc = 0;

	for (int i = 0; i < 12; i++) {
		if (duo->me)
			duo_recv(duo, 0, 8, data, sizeof(data), &op);
		else
			duo_send(duo, 1, 8, data, sizeof(data), 0, &op);
		duo_wait(duo, &op);
	}
	/* Posted while rank 1 lives: its death may be known as soon as it has ended. */
	if (!duo->me)
		duo_recv(duo, 1, 9, data, sizeof(data), &recv);
	duo_meet(duo);
	if (duo->me)
		duo_end();
	duo_gone(duo);
	/*
	 * The queues of a process that died may outlive it by a moment, and messages that they take
	 * get no answer. So the messages are short ones, which need none.
	 */
	while (rc != -EIO) {
		struct tq_buf buf = {.addr = data, .len = 1};

		op = (struct duo_op){0};
		rc = tq_send(duo->ctx, 1, 8, &buf, 0, &op, &op.req);
		if (rc == 0) {
			duo_wait(duo, &op);
			rc = op.status.error;
		}
		tq_progress(duo->ep);
	}
	duo_wait(duo, &recv);
	t_true(recv.status.error == -EIO, "a receive from it ends with %d", recv.status.error);
	/* Operations that don't concern the dead process go on. */
	duo_recv(duo, 0, 1, data, 1, &recv);
	duo_send(duo, 0, 1, data, 1, 0, &op);
	duo_wait(duo, &recv);
	duo_end();
}

int main(int argc, char **argv)
{
	bool tuples = true;
	const char *only = NULL;
	int params = 0;
	const struct {
		const char *name;
		duo_fn *fn;
	} tests[] = {
		{"sizes", sizes},
		{"crossed tags", crossed},
		{"wildcards", wildcards},
		{"to itself", to_itself},
		{"truncated", truncated},
		{"synchronous", synchronous},
		{"probes", probes},
		{"cancelled", cancelled},
		{"ended", ended},
		{"promoted", queues_promoted},
		{"overtaking", queues_overtaking},
		{"computing", queues_computing},
		{"dead peer", dead_peer},
	};

	for (int i = 1; i < argc; i++) {
		if (!strchr(argv[i], '=')) {
			only = argv[i];
			continue;
		}
		params = duo_param(argv[i]);
		if (!strcmp(argv[i], "protocol=rget") || !strcmp(argv[i], "protocol=rput"))
			tuples = false;
	}
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool queued = tests[i].fn == queues_promoted || tests[i].fn == queues_overtaking;

		/* Runs only by name, where each send is complete when it is posted. */
		if (tests[i].fn == queues_computing && !only)
			continue;
		if ((!tuples && queued) || (only && !strstr(tests[i].name, only)))
			continue;
		/* On a busy machine any message may take as long as one that is held. */
		if (queued)
			duo_param("giveback_after=0");
		/* Short messages through shared memory ask for no queue. */
		if (queued && getenv("TEST_INTRANODE"))
			duo_param("promote_after=0");
		duo_run(tests[i].name, tests[i].fn);
		duo_params_keep(params);
	}
	return duo_failed() != 0;
}
