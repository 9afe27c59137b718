/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues and counting events that are freed while another thread waits for them. */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "stub.h"

#define ROUNDS 200

/* A thread that waits. */
struct waiter {
	pthread_t thread;
	ptl_handle_any_t handle;
	atomic_bool runs;
	int rc;
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	ptl_event_t event;

	atomic_store(&waiter->runs, true);
	waiter->rc = PtlEQWait(waiter->handle, &event);
	return NULL;
}

static void *wait_for_count(void *arg)
{
	struct waiter *waiter = arg;
	ptl_ct_event_t count;

	atomic_store(&waiter->runs, true);
	waiter->rc = PtlCTWait(waiter->handle, 1, &count);
	return NULL;
}

static void start(struct waiter *waiter, void *(*fn)(void *arg))
{
	atomic_store(&waiter->runs, false);
	t_rc(pthread_create(&waiter->thread, NULL, fn, waiter), 0);
	while (!atomic_load(&waiter->runs))
		;
}

/* Expects that the waiter has taken nothing: the object was freed before or in its wait. */
static void expect_nothing(struct waiter *waiter)
{
	t_rc(pthread_join(waiter->thread, NULL), 0);
	t_true(waiter->rc == PTL_INTERRUPTED || waiter->rc == PTL_ARG_INVALID, "returned %d",
	       waiter->rc);
}

/* The event belongs to a queue that was allocated after the wait had begun. */
static void queues(void **state)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(NULL, 0, 0);
	ptl_pt_index_t pt;

	(void)state;
	me.options &= ~PTL_ME_EVENT_LINK_DISABLE;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct waiter waiter;
		ptl_handle_me_t entry;
		ptl_handle_eq_t eq;
		ptl_event_t event;

		t_ptl_ok(PtlEQAlloc(side.ni, 1, &waiter.handle));
		start(&waiter, wait_for_event);
		t_ptl_ok(PtlEQFree(waiter.handle));
		t_ptl_ok(PtlEQAlloc(side.ni, 1 + i % 4, &eq));
		t_ptl_ok(PtlPTAlloc(side.ni, 0, eq, STUB_PT + 1, &pt));
		t_ptl_ok(PtlMEAppend(side.ni, pt, &me, PTL_OVERFLOW_LIST, NULL, &entry));
		expect_nothing(&waiter);
		t_ptl_ok(PtlEQGet(eq, &event));
		t_ptl_ok(PtlMEUnlink(entry));
		t_ptl_ok(PtlPTFree(side.ni, pt));
		t_ptl_ok(PtlEQFree(eq));
	}
	stub_close(&side);
}

static void counts(void **state)
{
	const ptl_ct_event_t one = {.success = 1};
	struct stub_side side = stub_open();

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct waiter waiter;
		ptl_handle_ct_t ct;

		t_ptl_ok(PtlCTAlloc(side.ni, &waiter.handle));
		start(&waiter, wait_for_count);
		t_ptl_ok(PtlCTFree(waiter.handle));
		t_ptl_ok(PtlCTAlloc(side.ni, &ct));
		t_ptl_ok(PtlCTInc(ct, one));
		expect_nothing(&waiter);
		t_ptl_ok(PtlCTFree(ct));
	}
	stub_close(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues),
		cmocka_unit_test(counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
