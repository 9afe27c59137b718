/* SPDX-License-Identifier: BSD-3-Clause */
#include "ct.h"

#include <stdlib.h>
#include <utlist.h>

#include "handles.h"
#include "lib.h"
#include "ni.h"
#include "wait.h"

struct p4_ct *p4_ct_of(const struct p4_ni *ni, ptl_handle_ct_t handle, bool *ok)
{
	struct p4_ct *ct;

	if (handle == PTL_CT_NONE)
		return NULL;
	ct = p4_handle_get(handle, P4_CT);
	if (!ct || ct->ni != ni)
		*ok = false;
	return ct;
}

static ptl_size_t sum(const struct p4_ct *ct)
{
	return atomic_load_explicit(&ct->success, memory_order_acquire) +
	       atomic_load_explicit(&ct->failure, memory_order_acquire);
}

int p4_ct_find_trigger(const struct p4_ni *ni, ptl_handle_ct_t handle, ptl_size_t threshold,
		       struct p4_ct **ct)
{
	bool ok = true;

	*ct = p4_ct_of(ni, handle, &ok);
	if (!ok || !*ct)
		return PTL_ARG_INVALID;
	/* An operation that is triggered at once needs no place. */
	return ni->ntriggered < ni->limits.max_triggered_ops || sum(*ct) >= threshold
		       ? PTL_OK
		       : PTL_NO_SPACE;
}

/* Puts off what has been triggered. */
static void check(struct p4_ct *ct)
{
	struct p4_trigger *trigger;

	while (!ct->ni->closing && (trigger = ct->triggered) && trigger->threshold <= sum(ct)) {
		DL_DELETE(ct->triggered, trigger);
		ct->ni->ntriggered--;
		ct->ni->nusers++;
		p4_defer(&trigger->work, trigger->work.run);
	}
	p4_wait_notify();
}

void p4_ct_end_start(struct p4_ni *ni)
{
	p4_lock();
	ni->nusers--;
	p4_unlock();
}

void p4_ct_add(struct p4_ct *ct, ptl_size_t success, ptl_size_t failure)
{
	if (!ct)
		return;
	p4_ct_set(ct, atomic_load_explicit(&ct->success, memory_order_relaxed) + success,
		  atomic_load_explicit(&ct->failure, memory_order_relaxed) + failure);
}

void p4_ct_set(struct p4_ct *ct, ptl_size_t success, ptl_size_t failure)
{
	p4_assert_held();
	atomic_store_explicit(&ct->success, success, memory_order_release);
	atomic_store_explicit(&ct->failure, failure, memory_order_release);
	check(ct);
}

void p4_ct_trigger(struct p4_ct *ct, struct p4_trigger *trigger, ptl_size_t threshold)
{
	struct p4_trigger *other;

	p4_assert_held();
	trigger->threshold = threshold;
	ct->ni->ntriggered++;
	/* Most come in the order of their thresholds. */
	for (other = ct->triggered ? ct->triggered->prev : NULL; other; other = other->prev) {
		if (other->threshold <= threshold)
			break;
		if (other == ct->triggered) {
			other = NULL;
			break;
		}
	}
	DL_APPEND_ELEM(ct->triggered, other, trigger);
	check(ct);
}

static void cancel(struct p4_ct *ct)
{
	struct p4_trigger *trigger;

	while ((trigger = ct->triggered)) {
		DL_DELETE(ct->triggered, trigger);
		ct->ni->ntriggered--;
		trigger->drop(trigger);
	}
}

static struct p4_ct *free_cts; /* list; guarded by the library's lock */

/* Returns memory for a counting event. */
static struct p4_ct *get_memory(void)
{
	struct p4_ct *ct = free_cts;

	if (!ct)
		return calloc(1, sizeof(*ct));
	free_cts = ct->next_free;
	return ct;
}

static void put_memory(struct p4_ct *ct)
{
	ct->next_free = free_cts;
	free_cts = ct;
}

void p4_ct_destroy(struct p4_ct *ct)
{
	p4_assert_held();
	cancel(ct);
	ct->ni->ncts--;
	p4_handle_free(ct->handle);
	put_memory(ct);
}

void p4_cts_destroy(void)
{
	struct p4_ct *ct;

	p4_assert_held();
	while ((ct = free_cts)) {
		free_cts = ct->next_free;
		free(ct);
	}
}

/* ---- the user's functions ---- */

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle)
{
	struct p4_ni *ni;
	struct p4_ct *ct;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !ct_handle)
		goto unlock;
	rc = PTL_NO_SPACE;
	ct = ni->ncts < ni->limits.max_cts ? get_memory() : NULL;
	if (!ct)
		goto unlock;
	ct->ni = ni;
	ct->handle = p4_handle_new(P4_CT, ct);
	if (ct->handle == PTL_INVALID_HANDLE) {
		put_memory(ct);
		goto unlock;
	}
	p4_ct_set(ct, 0, 0);
	ni->ncts++;
	*ct_handle = ct->handle;
	rc = PTL_OK;
unlock:
	p4_unlock();
	return rc;
}

/* Locks, and returns the counting event of a handle. Without one sets *rc, and returns NULL without
 * the lock. */
static struct p4_ct *enter(ptl_handle_ct_t handle, int *rc)
{
	struct p4_ct *ct;

	*rc = PTL_NO_INIT;
	if (!p4_enter())
		return NULL;
	ct = p4_handle_get(handle, P4_CT);
	if (!ct)
		p4_unlock();
	*rc = ct ? PTL_OK : PTL_ARG_INVALID;
	return ct;
}

int PtlCTFree(ptl_handle_ct_t ct_handle)
{
	int rc;
	struct p4_ct *ct = enter(ct_handle, &rc);

	if (!ct)
		return rc;
	p4_ct_destroy(ct);
	p4_unlock();
	p4_wait_notify();
	return PTL_OK;
}

int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle)
{
	int rc;
	struct p4_ct *ct = enter(ct_handle, &rc);

	if (!ct)
		return rc;
	cancel(ct);
	p4_unlock();
	return PTL_OK;
}

int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct)
{
	int rc;
	struct p4_ct *ct = enter(ct_handle, &rc);

	if (!ct)
		return rc;
	p4_ct_set(ct, new_ct.success, new_ct.failure);
	p4_unlock_run();
	return PTL_OK;
}

int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment)
{
	int rc;
	struct p4_ct *ct;

	if (increment.success && increment.failure)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	ct = enter(ct_handle, &rc);
	if (!ct)
		return rc;
	p4_ct_add(ct, increment.success, increment.failure);
	p4_unlock_run();
	return PTL_OK;
}

/* Reads the counting event of a handle. Returns false if it was freed since the handle was looked
 * up: the value may be that of a later one, whose handle is new before it is set. */
static bool read_value(const struct p4_ct *ct, ptl_handle_ct_t handle, ptl_ct_event_t *value)
{
	value->success = atomic_load_explicit(&ct->success, memory_order_acquire);
	value->failure = atomic_load_explicit(&ct->failure, memory_order_acquire);
	return p4_handle_get(handle, P4_CT) == ct;
}

int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event)
{
	const struct p4_ct *ct;

	if (!p4_is_init())
		return PTL_NO_INIT;
	ct = p4_handle_get(ct_handle, P4_CT);
	return ct && event && read_value(ct, ct_handle, event) ? PTL_OK : PTL_ARG_INVALID;
}

/* The values that PtlCTPoll() waits for, and the one that it finds. */
struct values {
	const ptl_size_t *tests;
	ptl_ct_event_t *event;
};

static int take_value(void *object, ptl_handle_any_t handle, unsigned which, void *arg)
{
	const struct values *values = arg;
	ptl_ct_event_t now;

	if (!read_value(object, handle, &now))
		return PTL_INTERRUPTED;
	/* A failure ends each wait. */
	if (now.success < values->tests[which] && !now.failure)
		return PTL_EQ_EMPTY;
	*values->event = now;
	return PTL_OK;
}

int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	      ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which)
{
	struct values values = {tests, event};
	const struct p4_poll poll = {P4_CT, ct_handles, size, take_value, &values};
	int rc = p4_wait_any(&poll, tests && event, timeout, which);

	return rc == PTL_EQ_EMPTY ? PTL_CT_NONE_REACHED : rc;
}

int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event)
{
	unsigned which;

	return PtlCTPoll(&ct_handle, &test, 1, PTL_TIME_FOREVER, event, &which);
}
