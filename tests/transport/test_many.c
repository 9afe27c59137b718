/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several endpoints of libtupleq in one process, one thread that polls whom it wants: what depends
 * on who is on whose node, and on who looks when. test_many [NAME], under "softhca run --nodes 1".
 */
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ep/ep.h"

#define MOST     4
#define TAG      5
#define DEADLINE 20 /* seconds that anything may take */

struct op {
	bool ended;
	struct tq_status status;
	struct tq_req *req;
};

static const char *const names[MOST] = {"B", "A", "A2", "C"};
static struct tq_ep *eps[MOST];
static struct tq_peer *peers[MOST][MOST]; /* [i][j]: j, as i knows it */
static int neps;
static char dir[] = "/tmp/test_many.XXXXXX"; /* the job's */

static void must(bool cond, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void must(bool cond, const char *fmt, ...)
{
	va_list args;

	if (cond)
		return;
	va_start(args, fmt);
	fputs("# ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* ---- endpoints ---- */

static void log_line(void *arg, enum tq_log_level level, const char *text)
{
	if (level <= TQ_LOG_ERROR)
		fprintf(stderr, "# %s: %s\n", (const char *)arg, text);
}

static void completed(void *user, const struct tq_status *status)
{
	struct op *op = user;

	op->status = *status;
	op->ended = true;
}

static void know(int i, int j)
{
	size_t len;
	const void *address = tq_address(eps[j], &len);

	must(!tq_peer_add(eps[i], address, len, names[j], &peers[i][j]), "no peer");
}

/* n endpoints, on a node (that is, in a job) each or all on one, with "NAME=VALUE"s. */
static void open_all(int n, bool nodes, const char *const *params)
{
	char why[200];

	for (neps = 0; neps < n; neps++) {
		struct tq_job job = {.key = 77 + (nodes ? (uint64_t)neps : 0),
				     .dir = dir,
				     .name = names[neps],
				     .log = log_line,
				     .log_arg = (void *)(uintptr_t)names[neps],
				     .complete = completed};
		struct tq_params *p = tq_params_new();

		for (int i = 0; params[i]; i++) {
			char name[64];
			const char *value = strchr(params[i], '=');

			snprintf(name, sizeof(name), "%.*s", (int)(value - params[i]), params[i]);
			must(!tq_param_set(p, name, value + 1, why, sizeof(why)), "%s", why);
		}
		must(!tq_open(p, &job, NULL, &eps[neps]), "no endpoint");
		tq_params_free(p);
	}
}

static void know_all(void)
{
	for (int i = 0; i < neps; i++)
		for (int j = 0; j < neps; j++)
			know(i, j);
}

/* A context between n endpoints, whose ranks they are in that order; for the first `made` of them.
 */
static void context(uint32_t id, int n, const int *who, struct tq_ctx **ctx)
{
	for (int i = 0; i < n; i++) {
		struct tq_peer *p[MOST];

		for (int j = 0; j < n; j++)
			p[j] = peers[who[i]][who[j]];
		must(!tq_ctx_add(eps[who[i]], id, p, n, i, 0, &ctx[i]), "no context");
	}
}

static uint64_t counter(int ep, const char *name)
{
	const struct tq_counter_desc *d;

	for (unsigned i = 0; (d = tq_counter_desc(i)); i++) {
		if (!strcmp(d->name, name))
			return tq_counter(eps[ep], i);
	}
	must(false, "no counter %s", name);
	return 0;
}

/* ---- what they do ---- */

static void spin(int rounds)
{
	while (rounds--) {
		for (int i = 0; i < neps; i++)
			tq_progress(eps[i]);
	}
}

static bool comes(const struct op *op)
{
	time_t end = time(NULL) + DEADLINE;

	while (!op->ended && time(NULL) < end)
		spin(100);
	return op->ended;
}

static void start_send(struct tq_ctx *ctx, int rank, int32_t tag, const char *text, unsigned flags,
		       struct op *op)
{
	struct tq_buf buf = {.addr = (void *)(uintptr_t)text, .len = strlen(text) + 1};
	int rc;

	*op = (struct op){0};
	rc = tq_send(ctx, rank, tag, &buf, flags, op, &op->req);
	must(rc >= 0, "send: %s", strerror(-rc));
	op->ended |= rc == 1;
}

static void start_recv(struct tq_ctx *ctx, int rank, int32_t tag, char data[64], struct op *op)
{
	struct tq_buf buf = {.addr = data, .len = 64};
	int rc;

	memset(data, 0, 64);
	*op = (struct op){0};
	rc = tq_recv(ctx, rank, tag, &buf, op, &op->req, &op->status);
	must(rc >= 0, "receive: %s", strerror(-rc));
	op->ended |= rc == 1;
}

/* One whose receive is in time. */
static void pass(struct tq_ctx *from, struct tq_ctx *to, int from_rank, int to_rank)
{
	struct op sent, got;
	char data[64];

	start_recv(to, from_rank, TAG, data, &got);
	spin(50);
	start_send(from, to_rank, TAG, "in time", 0, &sent);
	must(comes(&got) && comes(&sent) && !strcmp(data, "in time"), "a message didn't come");
	spin(300);
}

/* ---- cases ---- */

/*
 * A forgets B, which holds a message for A and keeps its lane, as A2 has the TGT QP of that open,
 * too. The message is not to come to the next tuple that has a queue of A's.
 */
static void held_for_who_forgot(void)
{
	static const char *const params[] = {"hold_lanes=1", "promote_after=0", "giveback_after=0",
					     NULL};
	static const int all[] = {0, 1, 2}, two[] = {3, 1};
	struct tq_ctx *ctx[3], *later[2];
	struct op sent, got;
	uint64_t direct;
	char data[64];

	open_all(4, false, params);
	know_all();
	context(1, 3, all, ctx);
	context(2, 2, two, later);
	for (int i = 0; i < 10; i++)
		pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < 10; i++)
		pass(ctx[0], ctx[2], 0, 2);
	for (int i = 0; i < 3; i++)
		pass(ctx[0], ctx[1], 0, 1);
	direct = counter(0, "sent_direct");
	start_send(ctx[0], 1, TAG, "of B", 0, &sent);
	must(counter(0, "sent_direct") == direct + 1, "it isn't held");
	spin(500);
	tq_ctx_remove(ctx[1]);
	spin(1000);
	tq_peer_remove(peers[1][0]);
	for (int i = 0; i < 8; i++) {
		start_recv(later[1], 0, TAG, data, &got);
		for (int k = 0; k < 20; k++) {
			tq_progress(eps[1]);
			tq_progress(eps[3]);
			usleep(500);
		}
		start_send(later[0], 1, TAG, "of C", 0, &sent);
		for (long k = 0; k < 1000000 && !got.ended; k++) {
			tq_progress(eps[1]);
			tq_progress(eps[3]);
		}
		must(got.ended, "a message of C didn't come");
		must(!strcmp(data, "of C"), "from C came \"%s\"", data);
	}
}

/* Their receives pending, contexts are freed (as communicators may be): messages that then come
 * get no queue, which nobody would recall. */
static void freed_early(void)
{
	static const char *const params[] = {"giveback_after=0", NULL};
	static const int both[] = {0, 1};
	static char data[10][64];
	struct op got[10], sent;

	open_all(2, true, params);
	know_all();
	for (uint32_t id = 100; id < 120; id++) {
		struct tq_ctx *ctx[2];

		context(id, 2, both, ctx);
		for (int k = 0; k < 10; k++)
			start_recv(ctx[1], 0, TAG, data[k], &got[k]);
		tq_ctx_remove(ctx[1]);
		for (int k = 0; k < 10; k++) {
			start_send(ctx[0], 1, TAG, "late", 0, &sent);
			must(comes(&sent), "a send doesn't end");
			spin(200);
		}
		tq_ctx_remove(ctx[0]);
		for (int k = 0; k < 10; k++)
			must(comes(&got[k]), "a message didn't come");
	}
	for (time_t end = time(NULL) + DEADLINE; counter(1, "tuples") && time(NULL) < end;)
		spin(100);
	must(!counter(1, "tuples"), "%d queues of contexts that are gone stay",
	     (int)counter(1, "tuples"));
}

/* As if what is sent to others had all of B's send completion queue, or no more. */
static void take_all(uint32_t *taken)
{
	struct tq_cq *scq = &eps[0]->net.scq;

	*taken = scq->size - scq->used - scq->kept;
	scq->used += *taken;
}

static void give_back(uint32_t taken)
{
	eps[0]->net.scq.used -= taken;
}

/*
 * A message has gone by RTS, as the send completion queue was full, and its receive is granted when
 * it is full again: it goes when the tuple's lane, in which nothing is signalled, has said what has
 * ended.
 */
static void granted_when_full(void)
{
	static const char *const params[] = {"giveback_after=0", "promote_after=0",
					     "service_thread=0", NULL};
	static const int both[] = {0, 1};
	struct op got[2], sent, last;
	struct tq_ctx *ctx[2];
	char data[2][64];
	uint64_t rts;
	uint32_t taken;

	open_all(2, true, params);
	know_all();
	context(1, 2, both, ctx);
	/* The first ones are timed, and so signalled, and then one in 16. */
	for (int i = 0; i < 83; i++)
		pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < 2; i++)
		start_recv(ctx[1], 0, TAG, data[i], &got[i]);
	spin(400);
	rts = counter(0, "sent_rts");
	start_send(ctx[0], 1, TAG, "first", 0, &sent);
	take_all(&taken);
	start_send(ctx[0], 1, TAG, "second", TQ_SEND_SYNC, &last);
	must(counter(0, "sent_rts") == rts + 1, "the queue wasn't full");
	give_back(taken);
	while (!counter(1, "cts_direct")) {
		tq_progress(eps[0]);
		for (int i = 0; i < 100; i++)
			tq_progress(eps[1]);
	}
	take_all(&taken);
	for (int i = 0; i < 1000; i++)
		tq_progress(eps[0]);
	give_back(taken);
	must(comes(&last) && comes(&got[1]), "it is never posted");
}

/* A process that has not added B yet doesn't hold up what B sends to another of its node. */
static void slow_mate(void)
{
	static const char *const params[] = {NULL};
	static const int all[] = {0, 1, 2};
	struct tq_ctx *ctx[3];
	struct op first, second, got[2];
	struct tq_peer *p[3];
	char data[2][64];

	open_all(3, false, params);
	for (int j = 0; j < 3; j++) {
		know(0, j);
		know(2, j);
	}
	for (int i = 0; i < 3; i += 2) {
		for (int j = 0; j < 3; j++)
			p[j] = peers[i][all[j]];
		must(!tq_ctx_add(eps[i], 1, p, 3, i, 0, &ctx[i]), "no context");
	}
	start_send(ctx[0], 1, TAG, "to A", 0, &first);
	spin(100);
	start_recv(ctx[2], 0, TAG, data[1], &got[1]);
	start_send(ctx[0], 2, TAG, "to A2", 0, &second);
	must(comes(&got[1]), "what another process of the node is sent waits for it");
	for (int j = 0; j < 3; j++) {
		know(1, j);
		p[j] = peers[1][j];
	}
	must(!tq_ctx_add(eps[1], 1, p, 3, 1, 0, &ctx[1]), "no context");
	start_recv(ctx[1], 0, TAG, data[0], &got[0]);
	must(comes(&got[0]) && !strcmp(data[0], "to A"), "and that one gets nothing");
}

/* A message that waits for credit is counted once, however often it is looked at. */
static void counts_waits(void)
{
	static const char *const params[] = {"service_thread=0", "protocol=rget", "credits=2",
					     NULL};
	static const int both[] = {0, 1};
	struct op sent, got;
	struct tq_ctx *ctx[2];
	uint64_t before;
	char data[64];

	open_all(2, true, params);
	know_all();
	context(1, 2, both, ctx);
	pass(ctx[0], ctx[1], 0, 1);
	before = counter(0, "no_credit");
	for (int i = 0; i < 20; i++)
		start_send(ctx[0], 1, TAG, "waits", 0, &sent);
	for (int i = 0; i < 100000; i++)
		tq_progress(eps[0]);
	must(counter(0, "no_credit") > before && counter(0, "no_credit") <= before + 20,
	     "%d of 20 messages waited", (int)(counter(0, "no_credit") - before));
	for (int i = 0; i < 20; i++) {
		start_recv(ctx[1], 0, TAG, data, &got);
		must(comes(&got), "a message didn't come");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"held for one who forgot its sender", held_for_who_forgot},
	{"freed before its messages came", freed_early},
	{"granted when the completion queue is full", granted_when_full},
	{"a slow process on the same node", slow_mate},
	{"waits for credit", counts_waits},
};

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* In a process of its own, which ends without closing: what is held stays so. */
static bool passes(void (*run)(void))
{
	int status = -1;
	pid_t pid;

	strcpy(strrchr(dir, '.'), ".XXXXXX");
	must(mkdtemp(dir), "no directory");
	pid = fork();
	if (pid == 0) {
		alarm(4 * DEADLINE);
		run();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	nftw(dir, forget, 8, FTW_DEPTH | FTW_PHYS);
	return status == 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool ok;

		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		ok = passes(cases[i].run);
		printf("%s %s\n", ok ? "ok" : "not ok", cases[i].name);
		fflush(stdout);
		failed += !ok;
	}
	return failed != 0;
}
