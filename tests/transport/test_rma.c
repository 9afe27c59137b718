/* SPDX-License-Identifier: BSD-3-Clause */
/* tq_rma() and what goes with it: test_rma [PARAMETER=VALUE...], under "softhca run --nodes 2". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duo.h"

#define PAGE 4096u
#define ALL  (TQ_ACCESS_READ | TQ_ACCESS_WRITE)
#define LONG ((size_t)(3 << 20) + 5)

/* Memory here that the other may use, and that of the other. */
struct window {
	unsigned char *mem;
	struct tq_mr *mr;
	uint64_t addr;
	uint32_t key;
};

struct named {
	uint64_t addr;
	uint32_t key;
};

/* An operation's end. */
struct end {
	unsigned ended;
	int error;
};

static bool has_atomics(const struct duo *d)
{
	return tq_rma_atomics(d->ep) != TQ_ATOMICS_NONE;
}

static void window_expose(struct duo *d, struct window *w, size_t size, unsigned access)
{
	struct named mine, other;
	struct duo_op s, r;
	int rc;

	w->mem = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
	t_true(w->mem, "no memory");
	memset(w->mem, 0, size);
	if (has_atomics(d) && access == ALL)
		access |= TQ_ACCESS_ATOMIC;
	rc = tq_mr_expose(d->ep, w->mem, size, access, &w->mr);
	t_true(!rc, "expose: %d", rc);
	mine = (struct named){(uintptr_t)w->mem, tq_mr_key(w->mr)};
	duo_recv(d, !d->me, 1, &other, sizeof(other), &r);
	duo_send(d, !d->me, 1, &mine, sizeof(mine), 0, &s);
	duo_wait(d, &r);
	duo_wait(d, &s);
	w->addr = other.addr;
	w->key = other.key;
}

static void window_open(struct duo *d, struct window *w, size_t size)
{
	window_expose(d, w, size, ALL);
}

static void window_close(struct duo *d, struct window *w)
{
	duo_meet(d);
	tq_mr_deregister(w->mr);
	free(w->mem);
}

static void done(void *user, int error)
{
	struct end *end = user;

	end->error = error;
	__atomic_add_fetch(&end->ended, 1, __ATOMIC_RELEASE);
}

static void await(struct duo *d, struct end *end, unsigned n)
{
	while (__atomic_load_n(&end->ended, __ATOMIC_ACQUIRE) < n)
		tq_progress(d->ep);
}

static void start(struct duo *d, int rank, struct tq_rma rma, struct end *end)
{
	int rc;

	rma.done = done;
	rma.user = end;
	rc = tq_rma(d->peers[rank], &rma);
	t_true(!rc, "rma: %d", rc);
}

/* Starts one and waits for its end, whose error is returned. */
static int go(struct duo *d, int rank, struct tq_rma rma)
{
	struct end end = {0};

	start(d, rank, rma, &end);
	await(d, &end, 1);
	return end.error;
}

static void go_well(struct duo *d, int rank, struct tq_rma rma)
{
	int error = go(d, rank, rma);

	t_true(!error, "an operation ended with %d", error);
}

static void fill(unsigned char *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static const size_t lens[] = {0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 4096, 65537, 1 << 20, LONG};

#define LENS (sizeof(lens) / sizeof(lens[0]))

static struct tq_mr *registered(struct duo *d, void *addr, size_t len)
{
	struct tq_mr *mr;
	int rc = tq_mr_register(d->ep, addr, len, true, &mr);

	t_true(!rc, "register: %d", rc);
	return mr;
}

/* Rank 0 writes; rank 1 sees it when it has a message that was sent after the write's end. */
static void writes(struct duo *d)
{
	unsigned char *data = malloc(LONG);
	struct tq_mr *mr = registered(d, data, LONG);
	struct window w;

	window_open(d, &w, LONG + 1);
	for (unsigned i = 0; i < 2 * LENS; i++) {
		size_t len = lens[i / 2];

		fill(data, len, i);
		if (!d->me) {
			go_well(d, 1,
				(struct tq_rma){.kind = TQ_RMA_WRITE,
						.local = data,
						.mr = i % 2 ? mr : NULL,
						.len = len,
						.addr = w.addr,
						.key = w.key});
			memset(data, 0, len);
		}
		duo_pass(d, 2, (unsigned char[1]){0}, 1, 0);
		if (d->me) {
			t_true(!memcmp(w.mem, data, len), "%zu bytes: not what was written", len);
			t_true(!w.mem[len], "%zu bytes: written beyond the end", len);
			memset(w.mem, 0, len);
		}
		duo_meet(d);
	}
	t_true(duo_counter(d, "rma_writes") == (d->me ? 0 : 2 * LENS), "%llu writes",
	       (unsigned long long)duo_counter(d, "rma_writes"));
	window_close(d, &w);
	tq_mr_deregister(mr);
	free(data);
}

static void reads(struct duo *d)
{
	unsigned char *data = malloc(LONG + 1);
	struct tq_mr *mr = registered(d, data, LONG);
	struct window w;
	uint64_t bytes = 0;

	window_open(d, &w, LONG);
	fill(w.mem, LONG, (unsigned)d->me);
	duo_meet(d);
	for (unsigned i = 0; i < 2 * LENS; i++) {
		size_t len = lens[i / 2];
		unsigned char *mine = malloc(len + 1);

		memset(data, 0xee, len + 1);
		go_well(d, !d->me,
			(struct tq_rma){.kind = TQ_RMA_READ,
					.local = data,
					.mr = i % 2 ? mr : NULL,
					.len = len,
					.addr = w.addr,
					.key = w.key});
		fill(mine, len, !d->me);
		t_true(!memcmp(data, mine, len) && data[len] == 0xee, "%zu bytes: something else",
		       len);
		free(mine);
		bytes += len;
	}
	t_true(duo_counter(d, "rma_reads") == 2 * LENS && duo_counter(d, "rma_read_bytes") == bytes,
	       "reads are miscounted");
	window_close(d, &w);
	tq_mr_deregister(mr);
	free(data);
}

static struct tq_rma add(const struct window *w, uint64_t *old, uint64_t n)
{
	return (struct tq_rma){.kind = TQ_RMA_FETCH_ADD,
			       .local = old,
			       .addr = w->addr,
			       .key = w->key,
			       .operand = n};
}

static struct tq_rma swap(const struct window *w, uint64_t *old, uint64_t compare, uint64_t value)
{
	return (struct tq_rma){.kind = TQ_RMA_COMPARE_SWAP,
			       .local = old,
			       .addr = w->addr,
			       .key = w->key,
			       .operand = value,
			       .compare = compare};
}

/* The window of rank 0 as both see it. */
static void common(const struct duo *d, struct window *w)
{
	if (d->me)
		return;
	w->addr = (uintptr_t)w->mem;
	w->key = tq_mr_key(w->mr);
}

/* Both add to a word of rank 0: nothing is lost, and no two find the same there. */
static void adds(struct duo *d)
{
	enum { N = 500, STEP = 3 };
	uint64_t old[N], last = 0, sum;
	struct end end = {0};
	struct window w;

	window_open(d, &w, PAGE);
	common(d, &w);
	duo_meet(d);
	for (int i = 0; i < N; i++)
		start(d, 0, add(&w, &old[i], STEP), &end);
	await(d, &end, N);
	t_true(!end.error, "an operation ended with %d", end.error);
	for (int i = 0; i < N; i++) {
		t_true(old[i] % STEP == 0 && old[i] < 2ull * N * STEP && (!i || old[i] > last),
		       "add %d found %llu", i, (unsigned long long)old[i]);
		last = old[i];
	}
	duo_meet(d);
	go_well(d, 0, add(&w, &sum, 0));
	t_true(sum == 2ull * N * STEP, "the sum is %llu", (unsigned long long)sum);
	t_true(duo_counter(d, "rma_atomics") == N + 1, "atomics are miscounted");
	window_close(d, &w);
}

/* A lock of both in the memory of rank 0, and what it guards, which is read and written. */
static void locks(struct duo *d)
{
	enum { N = 200 };
	uint64_t old, value = 0;
	struct window w;

	window_open(d, &w, PAGE);
	common(d, &w);
	duo_meet(d);
	for (int i = 0; i < N; i++) {
		struct tq_rma rma = {.kind = TQ_RMA_READ,
				     .local = &value,
				     .len = sizeof(value),
				     .addr = w.addr + 64,
				     .key = w.key};

		do
			go_well(d, 0, swap(&w, &old, 0, (uint64_t)d->me + 1));
		while (old);
		go_well(d, 0, rma);
		value++;
		rma.kind = TQ_RMA_WRITE;
		go_well(d, 0, rma);
		go_well(d, 0, swap(&w, &old, (uint64_t)d->me + 1, 0));
		t_true(old == (uint64_t)d->me + 1, "the lock was %llu", (unsigned long long)old);
	}
	duo_meet(d);
	if (!d->me)
		t_true(((uint64_t *)(void *)w.mem)[8] == 2 * N, "%llu of %d",
		       (unsigned long long)((uint64_t *)(void *)w.mem)[8], 2 * N);
	window_close(d, &w);
}

/* More than any queue takes; a flush ends all. */
static void many(struct duo *d)
{
	enum { N = 3000 };
	static uint64_t from[N], to[N];
	struct end end = {0};
	struct window w;

	window_open(d, &w, sizeof(from));
	for (int i = 0; i < N; i++) {
		from[i] = (uint64_t)i << 8 | (unsigned)d->me;
		start(d, !d->me,
		      (struct tq_rma){.kind = TQ_RMA_WRITE,
				      .local = &from[i],
				      .len = 8,
				      .addr = w.addr + (uint64_t)i * 8,
				      .key = w.key},
		      &end);
	}
	t_true(duo_counter(d, "rma") > 0, "nothing is under way");
	t_true(!tq_rma_flush(d->ep, d->peers[!d->me]), "flush");
	t_true(end.ended == N && !end.error, "%u of %d after the flush", end.ended, N);
	t_true(!duo_counter(d, "rma"), "something is under way after the flush");
	for (int i = 0; i < N; i++)
		start(d, !d->me,
		      (struct tq_rma){.kind = TQ_RMA_READ,
				      .local = &to[i],
				      .len = 8,
				      .addr = w.addr + (uint64_t)i * 8,
				      .key = w.key},
		      &end);
	t_true(!tq_rma_flush(d->ep, NULL), "flush of all");
	t_true(end.ended == 2 * N, "%u of %d after the flush of all", end.ended, 2 * N);
	t_true(!memcmp(from, to, sizeof(from)), "not what was written");
	window_close(d, &w);
}

struct chain {
	struct duo *d;
	struct tq_rma rma;
	int left;
	int error;
};

static void next_of_chain(void *user, int error)
{
	struct chain *c = user;

	c->error = error;
	if (error || !--c->left)
		return;
	c->error = tq_rma(c->d->peers[!c->d->me], &c->rma);
}

/* Each is started by the end of the one before. */
static void chained(struct duo *d)
{
	uint64_t value = 77;
	struct chain c = {.d = d, .left = 300};
	struct window w;

	window_open(d, &w, PAGE);
	c.rma = (struct tq_rma){.kind = TQ_RMA_WRITE,
				.local = &value,
				.len = sizeof(value),
				.addr = w.addr,
				.key = w.key,
				.done = next_of_chain,
				.user = &c};
	t_true(!tq_rma(d->peers[!d->me], &c.rma), "rma");
	t_true(!tq_rma_flush(d->ep, d->peers[!d->me]), "flush");
	while (c.left && !c.error)
		tq_progress(d->ep);
	t_true(!c.error, "an operation ended with %d", c.error);
	window_close(d, &w);
}

static void to_itself(struct duo *d)
{
	uint64_t value = 5, old = 0;
	struct window w;

	window_open(d, &w, LONG);
	w.addr = (uintptr_t)w.mem;
	w.key = tq_mr_key(w.mr);
	go_well(d, d->me,
		(struct tq_rma){.kind = TQ_RMA_WRITE,
				.local = &value,
				.len = sizeof(value),
				.addr = w.addr,
				.key = w.key});
	if (has_atomics(d)) {
		go_well(d, d->me, add(&w, &old, 1));
		t_true(old == 5, "found %llu", (unsigned long long)old);
		value++;
	}
	old = 0;
	go_well(d, d->me,
		(struct tq_rma){.kind = TQ_RMA_READ,
				.local = &old,
				.len = sizeof(old),
				.addr = w.addr,
				.key = w.key});
	t_true(old == value, "read %llu", (unsigned long long)old);
	window_close(d, &w);
}

static void misuse(struct duo *d)
{
	uint64_t value = 0;
	struct window w;
	struct tq_rma rma = {.kind = TQ_RMA_WRITE, .local = &value, .len = 8, .done = done};
	struct tq_peer *peer = d->peers[!d->me];
	struct tq_mr *mr;

	window_open(d, &w, PAGE);
	rma.addr = w.addr;
	rma.key = w.key;
	rma.done = NULL;
	t_true(tq_rma(peer, &rma) == -EINVAL, "no done()");
	rma.done = done;
	rma.kind = (enum tq_rma_kind)17;
	t_true(tq_rma(peer, &rma) == -EINVAL, "no such kind");
	rma.kind = TQ_RMA_READ;
	rma.local = NULL;
	rma.len = PAGE;
	t_true(tq_rma(peer, &rma) == -ENOMEM, "no memory here");
	rma.local = &value;
	rma.kind = TQ_RMA_FETCH_ADD;
	rma.addr++;
	t_true(tq_rma(peer, &rma) == (has_atomics(d) ? -EINVAL : -EOPNOTSUPP), "not aligned");
	t_true(tq_mr_expose(d->ep, w.mem, PAGE, 8, &mr) == -EINVAL, "no such right");
	t_true(tq_mr_expose(d->ep, NULL, PAGE, ALL, &mr) < 0, "no memory to expose");
	if (!has_atomics(d))
		t_true(tq_mr_expose(d->ep, w.mem, PAGE, TQ_ACCESS_ATOMIC, &mr) == -EOPNOTSUPP,
		       "atomic operations without any");
	t_true(!duo_counter(d, "rma"), "something was started");
	window_close(d, &w);
}

/* What is under way when a peer is removed ends well. */
static void removed(struct duo *d)
{
	unsigned char *data = calloc(1, LONG);
	struct end end = {0};
	struct window w;

	window_open(d, &w, LONG);
	if (!d->me) {
		for (int i = 0; i < 4; i++)
			start(d, 1,
			      (struct tq_rma){.kind = TQ_RMA_WRITE,
					      .local = data,
					      .len = LONG,
					      .addr = w.addr,
					      .key = w.key},
			      &end);
		tq_ctx_remove(d->ctx);
		tq_peer_remove(d->peers[1]);
		await(d, &end, 4);
		t_true(!end.error, "an operation ended with %d", end.error);
		duo_end();
	}
	duo_gone(d);
	duo_end();
}

/* An operation is refused: it ends with an error, whose sentence names the peer, and so does what
 * was under way with it. */
static void refused(struct duo *d, const struct window *w, enum tq_rma_kind kind)
{
	static uint64_t value[8];
	struct end end = {0};
	int rc;

	for (int i = 0; i < 8; i++)
		start(d, 1,
		      (struct tq_rma){.kind = kind,
				      .local = &value[i],
				      .len = sizeof(value[i]),
				      .addr = w->addr,
				      .key = w->key},
		      &end);
	rc = tq_rma_flush(d->ep, d->peers[1]);
	t_true(rc == -EIO, "flush: %d", rc);
	t_true(end.ended == 8 && end.error == -EIO, "%u of 8 ended, with %d", end.ended, end.error);
	t_true(strstr(d->error, "the other"), "\"%s\" doesn't name the peer", d->error);
	t_true(tq_rma(d->peers[1], &(struct tq_rma){.kind = kind,
						    .local = value,
						    .len = 8,
						    .addr = w->addr,
						    .key = w->key,
						    .done = done,
						    .user = &end}) == -EIO,
	       "the peer is still there");
	t_true(tq_peer_error(d->peers[1]) == -EIO, "no error of the peer");
	t_true(strstr(d->error, "registered"), "\"%s\" doesn't name the cause", d->error);
}

static void key_gone(struct duo *d)
{
	struct window w;

	window_open(d, &w, PAGE);
	if (d->me)
		tq_mr_deregister(w.mr);
	duo_meet(d);
	if (d->me) {
		duo_gone(d);
		duo_end();
	}
	refused(d, &w, TQ_RMA_WRITE);
	duo_end();
}

static void no_right(struct duo *d)
{
	struct window w;

	window_expose(d, &w, PAGE, TQ_ACCESS_READ);
	if (d->me) {
		duo_gone(d);
		t_true(!w.mem[0], "written without the right");
		duo_end();
	}
	go_well(d, 1,
		(struct tq_rma){.kind = TQ_RMA_READ,
				.local = w.mem,
				.len = PAGE,
				.addr = w.addr,
				.key = w.key});
	w.mem[0] = 1;
	refused(d, &w, has_atomics(d) ? TQ_RMA_FETCH_ADD : TQ_RMA_WRITE);
	duo_end();
}

/* Nobody but this thread makes progress. */
static bool has_no_service;

static void dead_peer(struct duo *d)
{
	unsigned char *data = calloc(1, LONG);
	struct end end = {0};
	struct window w;
	unsigned n = 0;
	int rc;

	window_open(d, &w, LONG);
	duo_meet(d);
	if (d->me)
		duo_end();
	duo_gone(d);
	do {
		struct tq_rma rma = {.kind = n % 2 ? TQ_RMA_READ : TQ_RMA_WRITE,
				     .local = data,
				     .len = n % 3 ? 8 : LONG,
				     .addr = w.addr,
				     .key = w.key,
				     .done = done,
				     .user = &end};

		rc = tq_rma(d->peers[1], &rma);
		n += !rc;
	} while (!rc && n < 20);
	t_true(!rc || rc == -EIO, "rma: %d", rc);
	rc = tq_rma_flush(d->ep, NULL);
	t_true(end.ended == n && end.error == -EIO, "%u of %u ended, with %d", end.ended, n,
	       end.error);
	/* The service thread may have seen the failure before the flush began. */
	t_true(rc == -EIO || (!rc && !has_no_service), "flush: %d", rc);
	t_eq(tq_rma_flush(d->ep, d->peers[1]), -EIO);
	t_true(strstr(d->error, "the other"), "\"%s\" doesn't name the peer", d->error);
	duo_end();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "plain"))
			continue;
		if (!strcmp(argv[i], "service_thread=0"))
			has_no_service = true;
		duo_param(argv[i]);
	}
	duo_run("writes", writes);
	duo_run("reads", reads);
	if (argc < 2 || strcmp(argv[1], "plain")) {
		duo_run("adds", adds);
		duo_run("locks", locks);
	}
	duo_run("many", many);
	duo_run("chained", chained);
	duo_run("to itself", to_itself);
	duo_run("misuse", misuse);
	duo_run("removed", removed);
	duo_run("key gone", key_gone);
	duo_run("no right", no_right);
	duo_run("dead peer", dead_peer);
	return duo_failed() != 0;
}
