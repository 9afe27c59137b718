/* SPDX-License-Identifier: BSD-3-Clause */
#include "many.h"

#include <ftw.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/adapter/address.h"
#include "net/peers/link.h"
#include "on_device.h"
#include "within.h"

#define SKIPPED 77 /* exit status of a case that has printed its result */

static const char *const names[MANY_MOST] = {"B", "A", "A2", "C", "D", "E", "F", "G", "H", "I",
					     "J", "K", "L",  "M", "N", "O", "P", "Q", "R", "S"};
struct tq_ep *many_eps[MANY_MOST];
struct tq_peer *many_peers[MANY_MOST][MANY_MOST];
int many_neps, many_errors;
char many_error[512];
time_t many_deadline = 20;
void (*many_completed)(struct many_op *op);
static const struct many_case *running;      /* the case of this process */
static char dir[] = "/tmp/test_many.XXXXXX"; /* the job's directory */

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("# ", stderr);
	vfprintf(stderr, fmt, args);
	fprintf(stderr, " (%s:%d)\n", file, line);
	va_end(args);
	exit(1);
}

/* ---- endpoints ---- */

static void log_line(void *arg, enum tq_log_level level, const char *text)
{
	/* Service threads of several endpoints may be the callers. */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (level > TQ_LOG_ERROR)
		return;
	pthread_mutex_lock(&lock);
	fprintf(stderr, "# %s: %s\n", (const char *)arg, text);
	snprintf(many_error, sizeof(many_error), "%s", text);
	many_errors++;
	pthread_mutex_unlock(&lock);
}

static void completed(void *user, const struct tq_status *status)
{
	struct many_op *op = user;

	op->status = *status;
	/* The service thread may be the caller. */
	__atomic_store_n(&op->ended, true, __ATOMIC_RELEASE);
	if (many_completed)
		many_completed(op);
}

void many_know(int i, int j)
{
	size_t len;
	const void *address = tq_address(many_eps[j], &len);

	t_true(!tq_peer_add(many_eps[i], address, len, names[j], &many_peers[i][j]), "no peer");
}

int many_open_one(int node, const char *const *params)
{
	const char *intranode = getenv("TEST_INTRANODE");
	struct tq_job job = {.key = 77 + (uint64_t)(intranode ? 0 : node),
			     .dir = dir,
			     .name = names[many_neps],
			     .log = log_line,
			     .log_arg = (void *)(uintptr_t)names[many_neps],
			     .complete = completed};
	struct tq_params *made = tq_params_new();
	char why[200];

	/* The case decides which endpoint polls, so there is no service thread. */
	t_true(!tq_param_set(made, "service_thread", "0", why, sizeof(why)), "%s", why);
	on_device_set(made);
	within_set(made, intranode);
	for (int i = 0; params[i]; i++) {
		char name[64];
		const char *value = strchr(params[i], '=');

		snprintf(name, sizeof(name), "%.*s", (int)(value - params[i]), params[i]);
		t_true(!tq_param_set(made, name, value + 1, why, sizeof(why)), "%s", why);
	}
	t_true(!tq_open(made, &job, NULL, &many_eps[many_neps]), "no endpoint");
	tq_params_free(made);
	return many_neps++;
}

void many_open_on(int n, const int *nodes, const char *const *params)
{
	many_neps = 0;
	while (many_neps < n)
		many_open_one(nodes[many_neps], params);
}

void many_open(int n, bool nodes, const char *const *params)
{
	many_neps = 0;
	while (many_neps < n)
		many_open_one(nodes ? many_neps : 0, params);
}

void many_know_all(void)
{
	for (int i = 0; i < many_neps; i++)
		for (int j = 0; j < many_neps; j++)
			many_know(i, j);
}

void many_context_at(int ep, uint32_t id, int n, struct tq_ctx **ctx)
{
	t_true(!tq_ctx_add(many_eps[ep], id, many_peers[ep], n, ep, 0, &ctx[ep]), "no context");
}

void many_context(uint32_t id, int n, struct tq_ctx **ctx)
{
	for (int i = 0; i < n; i++)
		many_context_at(i, id, n, ctx);
}

void many_context_of(uint32_t id, int n, const int *who, struct tq_ctx **ctx)
{
	for (int i = 0; i < n; i++) {
		struct tq_peer *peer[MANY_MOST];

		for (int j = 0; j < n; j++)
			peer[j] = many_peers[who[i]][who[j]];
		t_true(!tq_ctx_add(many_eps[who[i]], id, peer, n, i, 0, &ctx[i]), "no context");
	}
}

void many_start_on(int n, const int *nodes, const char *const *params, struct tq_ctx **ctx)
{
	many_open_on(n, nodes, params);
	many_know_all();
	many_context(1, n, ctx);
}

void many_start_apart(int n, const char *const *params, struct tq_ctx **ctx)
{
	int nodes[MANY_MOST];

	for (int i = 0; i < n; i++)
		nodes[i] = i;
	many_start_on(n, nodes, params, ctx);
}

void many_start_pair(const char *const *params, struct tq_ctx **ctx)
{
	static const char *const defaults[] = {NULL};

	many_start_apart(2, params ? params : defaults, ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
}

void many_start_together(int n, const char *const *params, struct tq_ctx **ctx)
{
	static const int nodes[MANY_MOST];

	many_start_on(n, nodes, params, ctx);
}

void many_needs_lanes(void)
{
	if (getenv("TEST_INTRANODE"))
		many_skip("there are no lanes and no other node with TEST_INTRANODE");
}

static unsigned counter_number(const char *name)
{
	const struct tq_counter_desc *desc;
	unsigned i;

	for (i = 0; (desc = tq_counter_desc(i)); i++) {
		if (!strcmp(desc->name, name))
			return i;
	}
	t_true(false, "no counter %s", name);
	return i;
}

uint64_t many_counter(int ep, const char *name)
{
	return tq_counter(many_eps[ep], counter_number(name));
}

uint64_t many_high(int ep, const char *name)
{
	return tq_counter_high(many_eps[ep], counter_number(name));
}

void many_is_within(int ep, const char *name, uint64_t limit)
{
	t_true(many_counter(ep, name) <= limit, "%s of %d: %llu, of which the limit is %llu", name,
	       ep, (unsigned long long)many_counter(ep, name), (unsigned long long)limit);
}

void many_was_within(int ep, const char *name, uint64_t limit)
{
	t_true(many_high(ep, name) <= limit, "%s of %d: it was %llu, and the limit is %llu", name,
	       ep, (unsigned long long)many_high(ep, name), (unsigned long long)limit);
}

void many_falls(int ep, const char *name, uint64_t limit)
{
	MANY_UNTIL(many_counter(ep, name) <= limit, many_spin(10));
	many_is_within(ep, name, limit);
}

/* ---- operations ---- */

void many_spin(int rounds)
{
	while (rounds--) {
		for (int i = 0; i < many_neps; i++)
			tq_progress(many_eps[i]);
	}
}

static uint64_t wakeups(void)
{
	uint64_t n = 0;

	for (int i = 0; i < many_neps; i++)
		n += many_counter(i, "service_wakeups");
	return n;
}

/* Counts a millisecond without a wake-up, or begins to count anew. */
static void sleep_on(uint64_t *before, int *still)
{
	uint64_t now;

	usleep(1000);
	now = wakeups();
	*still = now == *before ? *still + 1 : 0;
	*before = now;
}

void many_sleep(int ms)
{
	uint64_t before = 0;
	int still = 0;

	MANY_UNTIL(still >= ms, sleep_on(&before, &still));
	t_true(still >= ms, "a service thread goes on");
}

bool many_comes(const struct many_op *op)
{
	MANY_UNTIL(__atomic_load_n(&op->ended, __ATOMIC_ACQUIRE), many_spin(100));
	return op->ended;
}

void many_send(struct tq_ctx *ctx, int rank, int32_t tag, const char *text, unsigned flags,
	       struct many_op *op)
{
	struct tq_buf buf = {.addr = (void *)(uintptr_t)text, .len = strlen(text) + 1};
	int rc;

	*op = (struct many_op){0};
	rc = tq_send(ctx, rank, tag, &buf, flags, op, &op->req);
	t_true(rc >= 0, "send: %s", strerror(-rc));
	if (rc == 1)
		op->ended = true;
}

void many_recv(struct tq_ctx *ctx, int rank, int32_t tag, char data[64], struct many_op *op)
{
	many_recv_long(ctx, rank, tag, data, 64, op);
}

void many_recv_long(struct tq_ctx *ctx, int rank, int32_t tag, char *data, size_t size,
		    struct many_op *op)
{
	struct tq_buf buf = {.addr = data, .len = size};
	int rc;

	memset(data, 0, size);
	*op = (struct many_op){0};
	rc = tq_recv(ctx, rank, tag, &buf, op, &op->req, &op->status);
	t_true(rc >= 0, "receive: %s", strerror(-rc));
	if (rc == 1)
		op->ended = true;
}

void many_pass(struct tq_ctx *from, struct tq_ctx *to, int from_rank, int to_rank)
{
	struct many_op sent, got;
	char data[64];

	many_recv(to, from_rank, MANY_TAG, data, &got);
	many_spin(50);
	many_send(from, to_rank, MANY_TAG, "in time", 0, &sent);
	t_true(many_comes(&got) && many_comes(&sent) && !strcmp(data, "in time"),
	       "a message didn't come");
	many_spin(300);
}

struct tq_rings *many_inbox(int ep, size_t *len)
{
	size_t size;
	const struct tq_address *address = tq_address(many_eps[ep], &size);
	void *mem;

	t_true(!tq_segment_attach(tq_get64(address->inbox), len, &mem), "endpoint %d has no inbox",
	       ep);
	return mem;
}

struct tq_ring *many_ring(struct tq_rings *rings, uint32_t number)
{
	return tq_rings_at(rings, number, MANY_RING_SIZE);
}

uint32_t many_take_slots(void)
{
	struct tq_cq *scq = &many_eps[0]->net.scq;
	uint32_t taken = scq->size - scq->used - scq->kept;

	scq->used += taken;
	return taken;
}

void many_give_slots(uint32_t taken)
{
	many_eps[0]->net.scq.used -= taken;
}

/* ---- cases ---- */

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void many_skip(const char *fmt, ...)
{
	va_list args;

	printf("ok %s # SKIP ", running->name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(SKIPPED);
}

/* Runs a case in a process of its own, and prints the result. Returns false if the case fails. */
static bool run_case(const struct many_case *many_case)
{
	int status = -1;
	pid_t pid;

	strcpy(strrchr(dir, '.'), ".XXXXXX");
	t_true(mkdtemp(dir), "no directory");
	pid = fork();
	if (pid == 0) {
		alarm((unsigned)(4 * many_deadline));
		running = many_case;
		many_case->run();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	nftw(dir, forget, 8, FTW_DEPTH | FTW_PHYS);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		return true;
	printf("%s %s\n", status ? "not ok" : "ok", many_case->name);
	fflush(stdout);
	return status == 0;
}

int main(int argc, char **argv)
{
	const struct many_case *many_case;
	const char *deadline = getenv("MANY_DEADLINE");
	char words[200] = "";
	int failed = 0, ran = 0;
	bool exact = false;

	if (deadline)
		many_deadline = atoi(deadline);
	for (int i = 1; i < argc; i++) {
		strncat(words, i > 1 ? " " : "", sizeof(words) - strlen(words) - 1);
		strncat(words, argv[i], sizeof(words) - strlen(words) - 1);
	}
	for (many_case = many_cases; many_case->name; many_case++)
		exact = exact || !strcmp(many_case->name, words);
	for (many_case = many_cases; many_case->name; many_case++) {
		if (exact ? strcmp(many_case->name, words) != 0 : !strstr(many_case->name, words))
			continue;
		ran++;
		failed += !run_case(many_case);
	}
	if (!ran)
		fprintf(stderr, "no case is called so: %s\n", words);
	return failed || !ran;
}
