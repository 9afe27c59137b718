/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_cq_heap.c - the heap of completions that wait for their time: order, and what it costs to
 * take completions out of its middle.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "hca/queues/cq_heap.h"

enum {
	MANY = 200000,
	/* CPU time (ms) that a rebuild of MANY entries may take: it takes some milliseconds, with
	 * sanitizers a few times that. A quadratic one takes ten seconds. */
	LIMIT_MS = 1000,
};

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void push(struct shca_cq *cq, uint64_t at, uint32_t number)
{
	struct shca_cqe cqe = {.visible_at = at, .wqe = number};

	t_true(shca_cq_heap_push(cq, &cqe), "no memory");
}

/* Checks that completions come by time, and those of one time as they were added. */
static void test_order(void **state)
{
	static const uint64_t at[] = {5, 3, 5, 1, 3, 5, 1};
	static const uint32_t order[] = {3, 6, 1, 4, 0, 2, 5};
	struct shca_cq cq = {0};

	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		push(&cq, at[i], i);
	for (uint32_t i = 0; i < 7; i++) {
		t_eq(cq.npending, 7 - i);
		t_eq(cq.pending[0].cqe->wqe, order[i]);
		shca_cq_heap_pop(&cq);
	}
	shca_cq_heap_free(&cq);
}

/* Takes each tenth entry out of the array, as the destruction of a QP does. Returns the number of
 * entries that are left. */
static uint32_t take_some_out(struct shca_cq *cq)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cq->npending; i++) {
		if (i % 10)
			cq->pending[kept++] = cq->pending[i];
		else
			free(cq->pending[i].cqe);
	}
	return kept;
}

/* Checks that a heap of many completions, added in any order of times, is soon in order again. */
static void test_rebuild(void **state)
{
	struct shca_cq cq = {0};
	uint64_t last = 0;
	uint32_t kept;
	double began;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		push(&cq, i * 0x9e3779b1u, i);
	kept = take_some_out(&cq);
	began = cpu_ms();
	shca_cq_heap_rebuild(&cq, kept);
	t_true(cpu_ms() - began < LIMIT_MS, "the rebuild took %.0f ms", cpu_ms() - began);
	t_eq(cq.npending, kept);
	for (uint32_t i = 0; i < kept; i++) {
		t_true(cq.pending[0].visible_at >= last, "entry %u is earlier than the one before",
		       i);
		last = cq.pending[0].visible_at;
		shca_cq_heap_pop(&cq);
	}
	shca_cq_heap_free(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_rebuild),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
