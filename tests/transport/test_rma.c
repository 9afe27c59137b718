/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tq_rma(). With "plain" the adapter has no atomic operations.
 *
 * test_rma [plain] [PARAMETER=VALUE...], under "softhca run --nodes 2"
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rma.h"

static const size_t lens[] = {0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 4096, 65537, 1 << 20, RMA_LONG};

#define LENS (sizeof(lens) / sizeof(lens[0]))

static struct tq_mr *registered(struct duo *duo, void *addr, size_t len)
{
	struct tq_mr *mr;
	int rc = tq_mr_register(duo->ep, addr, len, true, &mr);

	t_true(!rc, "register: %d", rc);
	return mr;
}

/* Has rank 0 write. Rank 1 sees the data when it has a message that was sent after the write's
 * end. */
static void writes(struct duo *duo)
{
	unsigned char *data = malloc(RMA_LONG);
	struct tq_mr *mr = registered(duo, data, RMA_LONG);
	struct rma_window w;

	rma_window_open(duo, &w, RMA_LONG + 1);
	for (unsigned i = 0; i < 2 * LENS; i++) {
		size_t len = lens[i / 2];

		duo_fill(data, len, i);
		if (!duo->me) {
			rma_go_well(duo, 1,
				    (struct tq_rma){.kind = TQ_RMA_WRITE,
						    .local = data,
						    .mr = i % 2 ? mr : NULL,
						    .len = len,
						    .addr = w.addr,
						    .key = w.key});
			memset(data, 0, len);
		}
		duo_pass(duo, 2, (unsigned char[1]){0}, 1, 0);
		if (duo->me) {
			t_true(!memcmp(w.mem, data, len), "%zu bytes: not what was written", len);
			t_true(!w.mem[len], "%zu bytes: written beyond the end", len);
			memset(w.mem, 0, len);
		}
		duo_meet(duo);
	}
	t_true(duo_counter(duo, "rma_writes") == (duo->me ? 0 : 2 * LENS), "%llu writes",
	       (unsigned long long)duo_counter(duo, "rma_writes"));
	rma_window_close(duo, &w);
	tq_mr_deregister(mr);
	free(data);
}

static void reads(struct duo *duo)
{
	unsigned char *data = malloc(RMA_LONG + 1);
	struct tq_mr *mr = registered(duo, data, RMA_LONG);
	struct rma_window w;
	uint64_t bytes = 0;

	rma_window_open(duo, &w, RMA_LONG);
	duo_fill(w.mem, RMA_LONG, (unsigned)duo->me);
	duo_meet(duo);
	for (unsigned i = 0; i < 2 * LENS; i++) {
		size_t len = lens[i / 2];
		unsigned char *mine = malloc(len + 1);

		memset(data, 0xee, len + 1);
		rma_go_well(duo, !duo->me,
			    (struct tq_rma){.kind = TQ_RMA_READ,
					    .local = data,
					    .mr = i % 2 ? mr : NULL,
					    .len = len,
					    .addr = w.addr,
					    .key = w.key});
		duo_fill(mine, len, !duo->me);
		t_true(!memcmp(data, mine, len) && data[len] == 0xee, "%zu bytes: something else",
		       len);
		free(mine);
		bytes += len;
	}
	t_true(duo_counter(duo, "rma_reads") == 2 * LENS &&
		       duo_counter(duo, "rma_read_bytes") == bytes,
	       "reads are miscounted");
	rma_window_close(duo, &w);
	tq_mr_deregister(mr);
	free(data);
}

/* Has rank 1 read rank 0's buffer, or write it, by the key that rank 0 got for that. */
static void lend(struct duo *duo, bool write, unsigned char *data, unsigned char *pattern)
{
	uint64_t lent[2] = {0};
	struct tq_key key;
	int rc;

	rc = tq_key_get(duo->ep, data, RMA_LONG, write, &key);
	t_true(!rc, "no key: %d", rc);
	/* The data are at the writing rank, or at the rank that is read. */
	memset(data, 0, RMA_LONG);
	if (duo->me == write)
		memcpy(data, pattern, RMA_LONG);
	lent[0] = (uintptr_t)data;
	lent[1] = key.key;
	duo_pass(duo, 3, lent, sizeof(lent), 0);
	if (duo->me)
		rma_go_well(duo, 0,
			    (struct tq_rma){.kind = write ? TQ_RMA_WRITE : TQ_RMA_READ,
					    .local = data,
					    .len = RMA_LONG,
					    .addr = lent[0],
					    .key = (uint32_t)lent[1]});
	duo_meet(duo);
	t_true(!memcmp(data, pattern, RMA_LONG), "%s brought something else",
	       write ? "a write" : "a read");
	tq_key_put(duo->ep, &key);
}

static void lends(struct duo *duo)
{
	unsigned char *data = malloc(RMA_LONG), *pattern = malloc(RMA_LONG);
	struct tq_key key;

	for (unsigned i = 0; i < 20; i++) {
		duo_fill(pattern, RMA_LONG, i);
		lend(duo, i % 2, data, pattern);
	}
	t_true(tq_key_get(duo->ep, data, 0, true, &key) == -EINVAL, "a key of nothing");
	t_true(tq_key_get(duo->ep, NULL, RMA_PAGE, true, &key) == -ENOMEM, "a key of no memory");
	free(data);
	free(pattern);
}

static struct tq_rma add(const struct rma_window *window, uint64_t *old, uint64_t n)
{
	return (struct tq_rma){.kind = TQ_RMA_FETCH_ADD,
			       .local = old,
			       .addr = window->addr,
			       .key = window->key,
			       .operand = n};
}

static struct tq_rma swap(const struct rma_window *window, uint64_t *old, uint64_t compare,
			  uint64_t value)
{
	return (struct tq_rma){.kind = TQ_RMA_COMPARE_SWAP,
			       .local = old,
			       .addr = window->addr,
			       .key = window->key,
			       .operand = value,
			       .compare = compare};
}

/* Gives both ranks the window of rank 0. */
static void common(const struct duo *duo, struct rma_window *window)
{
	if (duo->me)
		return;
	window->addr = (uintptr_t)window->mem;
	window->key = tq_mr_key(window->mr);
}

enum { ADDS = 500, ADD_STEP = 3 };

/* Checks that no value was found by two of both ranks' adds. */
static void check_found_once(struct duo *duo, const uint64_t mine[ADDS])
{
	bool found[2 * ADDS] = {false};
	uint64_t theirs[ADDS];
	struct duo_op sent, received;

	duo_recv(duo, !duo->me, 4, theirs, sizeof(theirs), &received);
	duo_send(duo, !duo->me, 4, mine, sizeof(theirs), 0, &sent);
	duo_wait(duo, &received);
	duo_wait(duo, &sent);
	for (int i = 0; i < 2 * ADDS; i++) {
		uint64_t value = i < ADDS ? mine[i] : theirs[i - ADDS];

		t_true(!found[value / ADD_STEP], "two adds found %llu", (unsigned long long)value);
		found[value / ADD_STEP] = true;
	}
}

/* Has both ranks add to a word of rank 0: none is lost, each rank finds growing values, and no two
 * adds find the same one. */
static void adds(struct duo *duo)
{
	uint64_t old[ADDS], last = 0, sum;
	struct rma_end end = {0};
	struct rma_window w;

	rma_window_open(duo, &w, RMA_PAGE);
	common(duo, &w);
	duo_meet(duo);
	for (int i = 0; i < ADDS; i++)
		rma_start(duo, 0, add(&w, &old[i], ADD_STEP), &end);
	rma_await(duo, &end, ADDS);
	t_true(!end.error, "an operation ended with %d", end.error);
	for (int i = 0; i < ADDS; i++) {
		t_true(old[i] % ADD_STEP == 0 && old[i] < 2ull * ADDS * ADD_STEP &&
			       (!i || old[i] > last),
		       "add %d found %llu", i, (unsigned long long)old[i]);
		last = old[i];
	}
	check_found_once(duo, old);
	duo_meet(duo);
	rma_go_well(duo, 0, add(&w, &sum, 0));
	t_true(sum == 2ull * ADDS * ADD_STEP, "the sum is %llu", (unsigned long long)sum);
	t_true(duo_counter(duo, "rma_atomics") == ADDS + 1, "atomics are miscounted");
	rma_window_close(duo, &w);
}

/* Has both ranks take a lock in the memory of rank 0, and read and write the data that it
 * guards. */
static void locks(struct duo *duo)
{
	enum { N = 200 };
	uint64_t old, value = 0;
	struct rma_window w;

	rma_window_open(duo, &w, RMA_PAGE);
	common(duo, &w);
	duo_meet(duo);
	for (int i = 0; i < N; i++) {
		struct tq_rma rma = {.kind = TQ_RMA_READ,
				     .local = &value,
				     .len = sizeof(value),
				     .addr = w.addr + 64,
				     .key = w.key};

		do
			rma_go_well(duo, 0, swap(&w, &old, 0, (uint64_t)duo->me + 1));
		while (old);
		rma_go_well(duo, 0, rma);
		value++;
		rma.kind = TQ_RMA_WRITE;
		rma_go_well(duo, 0, rma);
		rma_go_well(duo, 0, swap(&w, &old, (uint64_t)duo->me + 1, 0));
		t_true(old == (uint64_t)duo->me + 1, "the lock was %llu", (unsigned long long)old);
	}
	duo_meet(duo);
	if (!duo->me)
		t_true(((uint64_t *)(void *)w.mem)[8] == 2 * N, "%llu of %d",
		       (unsigned long long)((uint64_t *)(void *)w.mem)[8], 2 * N);
	rma_window_close(duo, &w);
}

/* Starts more operations than any queue takes. A flush ends all. */
static void many(struct duo *duo)
{
	enum { N = 3000 };
	static uint64_t from[N], to[N];
	struct rma_end end = {0};
	struct rma_window w;

	rma_window_open(duo, &w, sizeof(from));
	for (int i = 0; i < N; i++) {
		from[i] = (uint64_t)i << 8 | (unsigned)duo->me;
		rma_start(duo, !duo->me,
			  (struct tq_rma){.kind = TQ_RMA_WRITE,
					  .local = &from[i],
					  .len = 8,
					  .addr = w.addr + (uint64_t)i * 8,
					  .key = w.key},
			  &end);
	}
	t_true(duo_counter(duo, "rma") > 0, "nothing is under way");
	t_true(!tq_rma_flush(duo->ep, duo->peers[!duo->me]), "flush");
	t_true(end.ended == N && !end.error, "%u of %d after the flush", end.ended, N);
	t_true(!duo_counter(duo, "rma"), "something is under way after the flush");
	for (int i = 0; i < N; i++)
		rma_start(duo, !duo->me,
			  (struct tq_rma){.kind = TQ_RMA_READ,
					  .local = &to[i],
					  .len = 8,
					  .addr = w.addr + (uint64_t)i * 8,
					  .key = w.key},
			  &end);
	t_true(!tq_rma_flush(duo->ep, NULL), "flush of all");
	t_true(end.ended == 2 * N, "%u of %d after the flush of all", end.ended, 2 * N);
	t_true(!memcmp(from, to, sizeof(from)), "not what was written");
	rma_window_close(duo, &w);
}

struct chain {
	struct duo *duo;
	struct tq_rma rma;
	int left;
	int error;
};

static void next_of_chain(void *user, int error)
{
	struct chain *chain = user;

	chain->error = error;
	if (error || !--chain->left)
		return;
	chain->error = tq_rma(chain->duo->peers[!chain->duo->me], &chain->rma);
}

/* Has each operation started by the end of the one before. */
static void chained(struct duo *duo)
{
	uint64_t value = 77;
	struct chain c = {.duo = duo, .left = 300};
	struct rma_window w;

	rma_window_open(duo, &w, RMA_PAGE);
	c.rma = (struct tq_rma){.kind = TQ_RMA_WRITE,
				.local = &value,
				.len = sizeof(value),
				.addr = w.addr,
				.key = w.key,
				.done = next_of_chain,
				.user = &c};
	t_true(!tq_rma(duo->peers[!duo->me], &c.rma), "rma");
	t_true(!tq_rma_flush(duo->ep, duo->peers[!duo->me]), "flush");
	while (c.left && !c.error)
		tq_progress(duo->ep);
	t_true(!c.error, "an operation ended with %d", c.error);
	rma_window_close(duo, &w);
}

static void to_itself(struct duo *duo)
{
	uint64_t value = 5, old = 0;
	struct rma_window w;

	rma_window_open(duo, &w, RMA_LONG);
	w.addr = (uintptr_t)w.mem;
	w.key = tq_mr_key(w.mr);
	rma_go_well(duo, duo->me,
		    (struct tq_rma){.kind = TQ_RMA_WRITE,
				    .local = &value,
				    .len = sizeof(value),
				    .addr = w.addr,
				    .key = w.key});
	if (rma_has_atomics(duo)) {
		rma_go_well(duo, duo->me, add(&w, &old, 1));
		t_true(old == 5, "found %llu", (unsigned long long)old);
		value++;
	}
	old = 0;
	rma_go_well(duo, duo->me,
		    (struct tq_rma){.kind = TQ_RMA_READ,
				    .local = &old,
				    .len = sizeof(old),
				    .addr = w.addr,
				    .key = w.key});
	t_true(old == value, "read %llu", (unsigned long long)old);
	rma_window_close(duo, &w);
}

int main(int argc, char **argv)
{
	bool alone = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "plain"))
			continue;
		if (!strcmp(argv[i], "service_thread=0"))
			alone = true;
		duo_param(argv[i]);
	}
	duo_run("writes", writes);
	duo_run("reads", reads);
	duo_run("lends", lends);
	if (argc < 2 || strcmp(argv[1], "plain")) {
		duo_run("adds", adds);
		duo_run("locks", locks);
	}
	duo_run("many", many);
	duo_run("chained", chained);
	duo_run("to itself", to_itself);
	rma_faults(alone);
	return duo_failed() != 0;
}
