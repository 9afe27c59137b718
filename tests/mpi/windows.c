/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * windows.c - windows of the four flavours, and one-sided communication on each: data by fence and
 * by flush, accumulates of all ranks with many operations and types, MPI_Fetch_and_op,
 * MPI_Compare_and_swap, and a transfer that is longer than any intermediate buffer. Two ranks or
 * more.
 */
#include "check.h"

enum {
	WORDS = 40000,
	ROUNDS = 30,
	/* Indices of the words that all ranks change at rank 0. */
	SUM = 0,
	TICKET = 1,
	LOCK = 2,
	GUARDED = 3,
	MAXIMUM = 4,
	BITS = 5,
	LAST = 6,
	REAL = 7,
	HALVES = 8, /* two of 32 bits */
	SPLIT = 10, /* the sum is in the second half of this word and the first of the next */
	DATA = 16
};

struct window {
	const char *flavour;
	int64_t *mem;
	MPI_Win win;
	MPI_Aint *base; /* displacement of each rank's memory */
	int unit;
};

/* Returns the displacement of a word in that rank's memory. */
static MPI_Aint at(const struct window *window, int rank, int word)
{
	return window->base[rank] + (MPI_Aint)sizeof(int64_t) * word / window->unit;
}

/* Returns the displacement of the second half of a word. */
static MPI_Aint in_the_middle_of(const struct window *window, int rank, int word)
{
	return at(window, rank, word) + (MPI_Aint)sizeof(int32_t) / window->unit;
}

static int64_t value(int rank, int word)
{
	return (int64_t)rank << 32 | (int64_t)word * 3;
}

static void open_window(struct window *window)
{
	size_t size = sizeof(int64_t) * WORDS;
	MPI_Aint mine;

	window->base = t_alloc(sizeof(MPI_Aint) * (size_t)t_size);
	memset(window->base, 0, sizeof(MPI_Aint) * (size_t)t_size);
	window->unit = sizeof(int32_t);
	if (!strcmp(window->flavour, "allocate")) {
		MPI_Win_allocate((MPI_Aint)size, window->unit, MPI_INFO_NULL, MPI_COMM_WORLD,
				 &window->mem, &window->win);
	} else if (!strcmp(window->flavour, "shared")) {
		MPI_Win_allocate_shared((MPI_Aint)size, window->unit, MPI_INFO_NULL, MPI_COMM_WORLD,
					&window->mem, &window->win);
	} else if (!strcmp(window->flavour, "create")) {
		window->mem = t_alloc(size);
		MPI_Win_create(window->mem, (MPI_Aint)size, window->unit, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &window->win);
	} else if (!strcmp(window->flavour, "dynamic")) {
		window->unit = 1;
		window->mem = t_alloc(size);
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window->win);
		MPI_Win_attach(window->win, window->mem, (MPI_Aint)size);
		MPI_Get_address(window->mem, &mine);
		MPI_Allgather(&mine, 1, MPI_AINT, window->base, 1, MPI_AINT, MPI_COMM_WORLD);
	} else {
		t_fail("there is no flavour \"%s\"", window->flavour);
	}
	memset(window->mem, 0, size);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(struct window *window)
{
	bool is_mine = !strcmp(window->flavour, "create") || !strcmp(window->flavour, "dynamic");

	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(window->flavour, "dynamic"))
		MPI_Win_detach(window->win, window->mem);
	MPI_Win_free(&window->win);
	if (is_mine)
		free(window->mem);
	free(window->base);
}

static void fill(int64_t *p, int n, int rank)
{
	for (int i = 0; i < n; i++)
		p[i] = value(rank, i);
}

static void expect(const int64_t *p, int n, int rank)
{
	for (int i = 0; i < n; i++)
		t_true(p[i] == value(rank, i), "word %d is %lld, not %lld", i, (long long)p[i],
		       (long long)value(rank, i));
}

static void by_fence(struct window *window)
{
	int n = WORDS - DATA;
	int64_t *data = t_alloc(sizeof(*data) * (size_t)n);

	t_begin("windows: %s, fence", window->flavour);
	fill(data, n, t_rank);
	MPI_Win_fence(0, window->win);
	MPI_Put(data, n, MPI_INT64_T, t_right, at(window, t_right, DATA), n, MPI_INT64_T,
		window->win);
	MPI_Win_fence(0, window->win);
	expect(window->mem + DATA, n, t_left);
	memset(data, 0, sizeof(*data) * (size_t)n);
	MPI_Win_fence(0, window->win);
	MPI_Get(data, n, MPI_INT64_T, t_left, at(window, t_left, DATA), n, MPI_INT64_T,
		window->win);
	MPI_Win_fence(0, window->win);
	expect(data, n, (t_left + t_size - 1) % t_size);
	t_end();
	free(data);
}

static void by_flush(struct window *window)
{
	int64_t data[8], back[8];

	t_begin("windows: %s, flush", window->flavour);
	MPI_Win_lock_all(0, window->win);
	for (int i = 0; i < ROUNDS; i++) {
		fill(data, 8, i);
		MPI_Put(data, 8, MPI_INT64_T, t_right, at(window, t_right, DATA + 8 * i), 8,
			MPI_INT64_T, window->win);
		MPI_Win_flush(t_right, window->win);
		MPI_Get(back, 8, MPI_INT64_T, t_right, at(window, t_right, DATA + 8 * i), 8,
			MPI_INT64_T, window->win);
		MPI_Win_flush_local(t_right, window->win);
		expect(back, 8, i);
	}
	MPI_Win_unlock_all(window->win);
	t_end();
}

static void atomics(struct window *window)
{
	int64_t one = 1, old, last = -1, zero = 0, mine = t_rank + 1, n;

	t_begin("windows: %s, accumulate, fetch and compare", window->flavour);
	MPI_Win_lock_all(0, window->win);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, at(window, 0, SUM), 1, MPI_INT64_T,
			       MPI_SUM, window->win);
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at(window, 0, TICKET), MPI_SUM,
				 window->win);
		MPI_Win_flush(0, window->win);
		t_true(old > last, "ticket %lld after %lld", (long long)old, (long long)last);
		last = old;
		/* Take a lock by compare-and-swap, around reading and writing back. */
		do {
			MPI_Compare_and_swap(&mine, &zero, &old, MPI_INT64_T, 0,
					     at(window, 0, LOCK), window->win);
			MPI_Win_flush(0, window->win);
		} while (old);
		MPI_Get(&n, 1, MPI_INT64_T, 0, at(window, 0, GUARDED), 1, MPI_INT64_T, window->win);
		MPI_Win_flush(0, window->win);
		n++;
		MPI_Put(&n, 1, MPI_INT64_T, 0, at(window, 0, GUARDED), 1, MPI_INT64_T, window->win);
		MPI_Win_flush(0, window->win);
		MPI_Compare_and_swap(&zero, &mine, &old, MPI_INT64_T, 0, at(window, 0, LOCK),
				     window->win);
		MPI_Win_flush(0, window->win);
		t_eq(old, mine);
	}
	MPI_Win_unlock_all(window->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
		t_eq(window->mem[SUM], ROUNDS * t_size * (t_size + 1) / 2);
		t_eq(window->mem[TICKET], ROUNDS * t_size);
		t_eq(window->mem[GUARDED], ROUNDS * t_size);
		MPI_Win_unlock(0, window->win);
	}
	t_end();
}

/* Checks operations and types that no adapter executes: all ranks apply them to the memory of rank
 * 0.
 */
static void operations(struct window *window)
{
	int64_t mine = t_rank + 1, bit = (int64_t)1 << (t_rank % 60), old;
	int32_t half = t_rank + 1, old_half, halves[2];
	double real = 0.5;

	t_begin("windows: %s, operations that are not the adapter's", window->flavour);
	MPI_Win_lock_all(0, window->win);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&mine, &old, MPI_INT64_T, 0, at(window, 0, MAXIMUM), MPI_MAX,
				 window->win);
		MPI_Accumulate(&bit, 1, MPI_INT64_T, 0, at(window, 0, BITS), 1, MPI_INT64_T,
			       MPI_BOR, window->win);
		MPI_Accumulate(&real, 1, MPI_DOUBLE, 0, at(window, 0, REAL), 1, MPI_DOUBLE, MPI_SUM,
			       window->win);
		MPI_Fetch_and_op(&mine, &old, MPI_INT64_T, 0, at(window, 0, LAST), MPI_REPLACE,
				 window->win);
		MPI_Fetch_and_op(&half, &old_half, MPI_INT32_T, 0, at(window, 0, HALVES), MPI_SUM,
				 window->win);
		MPI_Win_flush(0, window->win);
		t_true(old >= 0 && old <= t_size, "a rank left %lld", (long long)old);
	}
	MPI_Win_unlock_all(window->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
		t_eq(window->mem[MAXIMUM], t_size);
		t_eq(window->mem[BITS], ((int64_t)1 << (t_size < 60 ? t_size : 60)) - 1);
		t_true(window->mem[LAST] > 0 && window->mem[LAST] <= t_size,
		       "the last one left %lld", (long long)window->mem[LAST]);
		memcpy(&real, &window->mem[REAL], sizeof(real));
		t_true(real == 0.5 * ROUNDS * t_size, "the sum is %f", real);
		memcpy(halves, &window->mem[HALVES], sizeof(halves));
		t_eq(halves[0], ROUNDS * t_size * (t_size + 1) / 2);
		t_eq(halves[1], 0);
		MPI_Win_unlock(0, window->win);
	}
	t_end();
}

/* Checks operations at an address that isn't a multiple of 8, which no adapter executes. */
static void misaligned(struct window *window)
{
	MPI_Aint where = in_the_middle_of(window, 0, SPLIT);
	int64_t mine = t_rank + 1, old, sum;

	t_begin("windows: %s, 64-bit sums at a misaligned address", window->flavour);
	MPI_Win_lock_all(0, window->win);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, where, 1, MPI_INT64_T, MPI_SUM,
			       window->win);
		MPI_Fetch_and_op(&mine, &old, MPI_INT64_T, 0, where, MPI_SUM, window->win);
		MPI_Win_flush(0, window->win);
	}
	MPI_Win_unlock_all(window->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
		memcpy(&sum, (char *)&window->mem[SPLIT] + sizeof(int32_t), sizeof(sum));
		t_eq(sum, ROUNDS * t_size * (t_size + 1));
		MPI_Win_unlock(0, window->win);
	}
	t_end();
}

static void exclusive(struct window *window)
{
	int64_t n;

	t_begin("windows: %s, exclusive lock", window->flavour);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window->win);
		MPI_Get(&n, 1, MPI_INT64_T, 0, at(window, 0, DATA), 1, MPI_INT64_T, window->win);
		MPI_Win_flush(0, window->win);
		n++;
		MPI_Put(&n, 1, MPI_INT64_T, 0, at(window, 0, DATA), 1, MPI_INT64_T, window->win);
		MPI_Win_unlock(0, window->win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window->win);
		t_eq(window->mem[DATA], ROUNDS * t_size);
		MPI_Win_unlock(0, window->win);
	}
	t_end();
}

static void test_flavour(const char *flavour)
{
	struct window window = {.flavour = flavour};

	open_window(&window);
	exclusive(&window);
	by_fence(&window);
	by_flush(&window);
	atomics(&window);
	operations(&window);
	misaligned(&window);
	close_window(&window);
}

/* windows [FLAVOUR...]: the flavours to test; all without an argument. */
int main(int argc, char **argv)
{
	static const char *const flavours[] = {"create", "allocate", "dynamic", "shared"};

	t_init(&argc, &argv, 2);
	for (int i = 1; i < argc; i++)
		test_flavour(argv[i]);
	for (int i = 0; argc == 1 && i < 4; i++)
		test_flavour(flavours[i]);
	return t_finish();
}
