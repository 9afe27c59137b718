/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_cond.c - which threads wait for which condition.
 */
#define _GNU_SOURCE 1
#include "next_cond.h"

#include <sys/syscall.h>
#include <unistd.h>

/* The waits that nobody has signalled. A lock of its own guards the list, because the C library's
 * locks are virtual. A thread holds that lock for some instructions only. */
static struct shca_cond_wait *first, *last;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void take_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		syscall(SYS_sched_yield);
}

static void release_lock(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* A forked child has none of its parent's other threads. */
static void forget(void)
{
	first = last = NULL;
	release_lock();
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, forget);
}

void shca_cond_begin(struct shca_cond_wait *wait, const pthread_cond_t *cond)
{
	*wait = (struct shca_cond_wait){.cond = cond};
	take_lock();
	wait->previous = last;
	if (last)
		last->next = wait;
	else
		first = wait;
	last = wait;
	release_lock();
}

static void unlink_wait(struct shca_cond_wait *wait)
{
	if (wait->previous)
		wait->previous->next = wait->next;
	else
		first = wait->next;
	if (wait->next)
		wait->next->previous = wait->previous;
	else
		last = wait->previous;
}

/* Its thread may go on, and end the wait, as soon as it finds that signalled. */
static void signal_wait(struct shca_cond_wait *wait, bool alone)
{
	unlink_wait(wait);
	wait->alone = alone;
	atomic_store(&wait->signalled, true);
}

bool shca_cond_end(struct shca_cond_wait *wait)
{
	bool signalled;

	take_lock();
	signalled = atomic_load(&wait->signalled);
	if (!signalled)
		unlink_wait(wait);
	release_lock();
	return signalled;
}

void shca_cond_signal(const pthread_cond_t *cond, bool all)
{
	struct shca_cond_wait *next;

	take_lock();
	for (struct shca_cond_wait *wait = first; wait; wait = next) {
		next = wait->next;
		if (wait->cond != cond)
			continue;
		signal_wait(wait, !all);
		if (!all)
			break;
	}
	release_lock();
}

void shca_cond_cancel(struct shca_cond_wait *wait)
{
	if (shca_cond_end(wait) && wait->alone)
		shca_cond_signal(wait->cond, false);
}
