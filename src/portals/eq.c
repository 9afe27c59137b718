/* SPDX-License-Identifier: BSD-3-Clause */
#include "eq.h"

#include <stdlib.h>

#include "endpoint.h"
#include "handles.h"
#include "lib.h"
#include "ni.h"
#include "wait.h"

/* Doubles the ring. Returns false without memory. Called with the queue's lock. */
static bool grow(struct p4_eq *eq)
{
	ptl_event_t *ring = malloc(2 * eq->size * sizeof(*ring));

	if (!ring)
		return false;
	for (ptl_size_t i = 0; i < eq->used; i++)
		ring[i] = eq->ring[(eq->first + i) % eq->size];
	free(eq->ring);
	eq->ring = ring;
	eq->size *= 2;
	eq->first = 0;
	return true;
}

void p4_eq_post(struct p4_eq *eq, const ptl_event_t *event, bool keep)
{
	ptl_size_t used;

	pthread_mutex_lock(&eq->lock);
	used = atomic_load_explicit(&eq->used, memory_order_relaxed);
	if (used == eq->size && (!keep || !grow(eq))) {
		eq->first = (eq->first + 1) % eq->size;
		eq->dropped = true;
		used--;
	}
	eq->ring[(eq->first + used) % eq->size] = *event;
	atomic_store_explicit(&eq->used, used + 1, memory_order_release);
	pthread_mutex_unlock(&eq->lock);
	p4_wait_notify();
}

ptl_size_t p4_eq_room(struct p4_eq *eq)
{
	ptl_size_t used = atomic_load_explicit(&eq->used, memory_order_relaxed);

	return used < eq->count ? eq->count - used : 0;
}

struct p4_eq *p4_eq_of(const struct p4_ni *ni, ptl_handle_eq_t handle, bool *ok)
{
	struct p4_eq *eq;

	if (handle == PTL_EQ_NONE)
		return NULL;
	eq = p4_handle_get(handle, P4_EQ);
	if (!eq || eq->ni != ni)
		*ok = false;
	return eq;
}

/* ---- allocating and freeing ---- */

static struct p4_eq *free_eqs; /* list; guarded by the library's lock */

/* Returns memory for a queue, with its lock. */
static struct p4_eq *get_memory(void)
{
	struct p4_eq *eq = free_eqs;

	if (eq) {
		free_eqs = eq->next_free;
		return eq;
	}
	eq = calloc(1, sizeof(*eq));
	if (eq)
		pthread_mutex_init(&eq->lock, NULL);
	return eq;
}

static void put_memory(struct p4_eq *eq)
{
	eq->next_free = free_eqs;
	free_eqs = eq;
}

/* Makes an empty queue. Returns its handle, or PTL_INVALID_HANDLE. */
static ptl_handle_eq_t make(struct p4_ni *ni, ptl_size_t count)
{
	struct p4_eq *eq = get_memory();
	ptl_event_t *ring = malloc(count * sizeof(*ring));
	ptl_handle_eq_t handle = eq && ring ? p4_handle_new(P4_EQ, eq) : PTL_INVALID_HANDLE;

	if (handle == PTL_INVALID_HANDLE) {
		free(ring);
		if (eq)
			put_memory(eq);
		return handle;
	}
	eq->ni = ni;
	eq->reserved = 0;
	pthread_mutex_lock(&eq->lock);
	eq->handle = handle;
	eq->ring = ring;
	eq->count = eq->size = count;
	eq->first = 0;
	eq->dropped = false;
	pthread_mutex_unlock(&eq->lock);
	return handle;
}

void p4_eq_destroy(struct p4_eq *eq)
{
	p4_assert_held();
	eq->ni->neqs--;
	p4_handle_free(eq->handle);
	pthread_mutex_lock(&eq->lock);
	eq->handle = PTL_INVALID_HANDLE;
	free(eq->ring);
	eq->ring = NULL;
	atomic_store_explicit(&eq->used, 0, memory_order_relaxed);
	pthread_mutex_unlock(&eq->lock);
	put_memory(eq);
}

void p4_eqs_destroy(void)
{
	struct p4_eq *eq;

	p4_assert_held();
	while ((eq = free_eqs)) {
		free_eqs = eq->next_free;
		pthread_mutex_destroy(&eq->lock);
		free(eq);
	}
}

/* ---- the user's functions ---- */

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle)
{
	struct p4_ni *ni;
	ptl_handle_eq_t handle;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !eq_handle)
		goto unlock;
	rc = PTL_NO_SPACE;
	if (ni->neqs >= ni->limits.max_eqs || count > SIZE_MAX / 4 / sizeof(ptl_event_t))
		goto unlock;
	handle = make(ni, count ? count : 1);
	if (handle == PTL_INVALID_HANDLE)
		goto unlock;
	ni->neqs++;
	*eq_handle = handle;
	rc = PTL_OK;
unlock:
	p4_unlock();
	return rc;
}

int PtlEQFree(ptl_handle_eq_t eq_handle)
{
	struct p4_eq *eq;

	if (!p4_enter())
		return PTL_NO_INIT;
	eq = p4_handle_get(eq_handle, P4_EQ);
	if (eq)
		p4_eq_destroy(eq);
	p4_unlock();
	/* Ends the waits for it. */
	p4_wait_notify();
	return eq ? PTL_OK : PTL_ARG_INVALID;
}

/* Takes an event. Returns PTL_OK, PTL_EQ_DROPPED, PTL_EQ_EMPTY, or PTL_INTERRUPTED if the queue of
 * that handle was freed since the handle was looked up. */
static int take(struct p4_eq *eq, ptl_handle_eq_t handle, ptl_event_t *event)
{
	int rc = PTL_EQ_EMPTY;

	if (!atomic_load_explicit(&eq->used, memory_order_acquire))
		return rc;
	pthread_mutex_lock(&eq->lock);
	if (eq->handle != handle) {
		rc = PTL_INTERRUPTED;
	} else if (eq->used) {
		*event = eq->ring[eq->first];
		eq->first = (eq->first + 1) % eq->size;
		eq->used--;
		rc = eq->dropped ? PTL_EQ_DROPPED : PTL_OK;
		eq->dropped = false;
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static int take_one(void *object, ptl_handle_any_t handle, unsigned which, void *arg)
{
	(void)which;
	return take(object, handle, arg);
}

int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	      ptl_event_t *event, unsigned int *which)
{
	const struct p4_poll poll = {P4_EQ, eq_handles, size, take_one, event};

	return p4_wait_any(&poll, event, timeout, which);
}

int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	struct p4_eq *eq;
	int rc;

	if (!p4_is_init())
		return PTL_NO_INIT;
	eq = p4_handle_get(eq_handle, P4_EQ);
	if (!eq || !event)
		return PTL_ARG_INVALID;
	rc = take(eq, eq_handle, event);
	if (rc == PTL_EQ_EMPTY) {
		p4_endpoint_progress();
		rc = take(eq, eq_handle, event);
	}
	return rc == PTL_INTERRUPTED ? PTL_ARG_INVALID : rc;
}

int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event)
{
	unsigned which;

	return PtlEQPoll(&eq_handle, 1, PTL_TIME_FOREVER, event, &which);
}
