/* SPDX-License-Identifier: BSD-3-Clause */
#include "wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "endpoint.h"
#include "lib.h"

/* Polls in vain before a thread sleeps. A choice: to wake a thread takes longer than most answers,
 * so one that polls for a while seldom sleeps; but it keeps a CPU from others meanwhile. */
#define SPINS 2000
/* The longest sleep (ms) before a thread looks whether processes whose answers are awaited have
 * closed their interfaces: nothing wakes it for that. A choice: the user learns of such an end so
 * much later, and a thread that sleeps wakes four times a second. */
#define SLEEP_MS 250

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static atomic_uint sleepers;
static uint64_t notifications; /* guarded by `lock` */

void p4_wait_notify(void)
{
	/* The event comes before this look at the sleepers, and a sleeper's look for events after
	 * it has counted itself. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&sleepers, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	notifications++;
	pthread_cond_broadcast(&woken);
	pthread_mutex_unlock(&lock);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sleeps until the next notification after `seen`, or until `until` (ms). Called with `lock`. */
static void sleep_for(uint64_t seen, uint64_t until)
{
	struct timespec due = {(time_t)(until / 1000), (long)(until % 1000) * 1000000};

	while (notifications == seen) {
		if (pthread_cond_clockwait(&woken, &lock, CLOCK_MONOTONIC, &due))
			return;
	}
}

/* A wait, which PtlAbort() may end. */
struct wait {
	bool (*ready)(void *arg);
	void *arg;
	bool abortable;
};

static bool is_aborted(const struct wait *wait)
{
	return wait->abortable && atomic_load(&p4_lib.aborted);
}

/* Sleeps, unless ready() returns true or the wait is aborted. Returns true in these two cases. */
static bool sleep_unless(const struct wait *wait, uint64_t until)
{
	bool is_ready;
	uint64_t seen;

	atomic_fetch_add(&sleepers, 1);
	pthread_mutex_lock(&lock);
	seen = notifications;
	pthread_mutex_unlock(&lock);
	is_ready = is_aborted(wait) || wait->ready(wait->arg);
	if (!is_ready) {
		pthread_mutex_lock(&lock);
		sleep_for(seen, until);
		pthread_mutex_unlock(&lock);
	}
	atomic_fetch_sub(&sleepers, 1);
	return is_ready;
}

static int wait_until(const struct wait *wait, ptl_time_t timeout)
{
	uint64_t until = 0;
	unsigned polls = 0;

	for (;;) {
		if (is_aborted(wait))
			return PTL_ABORTED;
		if (wait->ready(wait->arg))
			return PTL_OK;
		p4_endpoint_progress();
		if (wait->ready(wait->arg))
			return PTL_OK;
		if (!timeout)
			return PTL_EQ_EMPTY;
		if (timeout != PTL_TIME_FOREVER && !until)
			until = now_ms() + timeout;
		if (until && polls % 16 == 0 && now_ms() >= until)
			return PTL_EQ_EMPTY;
		if (++polls >= SPINS && p4_endpoint_has_thread()) {
			/* ready() may take what it finds, so it isn't asked again. */
			uint64_t look = now_ms() + SLEEP_MS;

			if (sleep_unless(wait, until && until < look ? until : look))
				return is_aborted(wait) ? PTL_ABORTED : PTL_OK;
			p4_endpoint_check();
			polls = 0;
		}
	}
}

int p4_wait(bool (*ready)(void *arg), void *arg, ptl_time_t timeout)
{
	const struct wait wait = {ready, arg, true};

	return wait_until(&wait, timeout);
}

void p4_wait_for_end(bool (*ready)(void *arg), void *arg)
{
	const struct wait wait = {ready, arg, false};

	wait_until(&wait, PTL_TIME_FOREVER);
}

/* A wait of p4_wait_any(). */
struct polling {
	const struct p4_poll *poll;
	unsigned which, first;
	int rc;
};

static bool poll_ready(void *arg)
{
	struct polling *polling = arg;
	const struct p4_poll *poll = polling->poll;

	/* Each look begins with another object. */
	for (unsigned i = 0; i < poll->size; i++) {
		unsigned which = (polling->first + i) % poll->size;
		ptl_handle_any_t handle = poll->handles[which];
		void *object = p4_handle_get(handle, poll->kind);

		polling->rc =
			object ? poll->take(object, handle, which, poll->arg) : PTL_INTERRUPTED;
		if (polling->rc == PTL_EQ_EMPTY)
			continue;
		if (object)
			polling->which = which;
		return true;
	}
	polling->first++;
	return false;
}

int p4_wait_any(const struct p4_poll *poll, bool valid, ptl_time_t timeout, unsigned *which)
{
	struct polling polling = {.poll = poll};
	int rc;

	if (!p4_is_init())
		return PTL_NO_INIT;
	if (atomic_load_explicit(&p4_lib.aborted, memory_order_relaxed))
		return PTL_ABORTED;
	if (!valid || !poll->handles || !poll->size || !which)
		return PTL_ARG_INVALID;
	for (unsigned i = 0; i < poll->size; i++) {
		if (!p4_handle_get(poll->handles[i], poll->kind))
			return PTL_ARG_INVALID;
	}
	rc = p4_wait(poll_ready, &polling, timeout);
	if (rc)
		return rc;
	*which = polling.which;
	return polling.rc;
}
