/* SPDX-License-Identifier: BSD-3-Clause */
/* tq_assert_held() ends a process that calls it without the lock, and no other. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/lock.h"
#include "unit_check.h"

static struct tq_lock the_lock;

static void taken(void)
{
	tq_lock(&the_lock);
	tq_assert_held(&the_lock);
	tq_unlock(&the_lock);
}

static void tried(void)
{
	if (!tq_trylock(&the_lock))
		_exit(1);
	tq_assert_held(&the_lock);
}

static void none(void)
{
	const struct tq_lock *lock = NULL;

	tq_assert_held(lock);
}

static void never_taken(void)
{
	tq_assert_held(&the_lock);
}

static void released(void)
{
	tq_lock(&the_lock);
	tq_unlock(&the_lock);
	tq_assert_held(&the_lock);
}

static void *take(void *arg)
{
	(void)arg;
	tq_lock(&the_lock);
	return NULL;
}

static void other_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take, NULL) || pthread_join(thread, NULL))
		_exit(1);
	tq_assert_held(&the_lock);
}

int main(void)
{
	unit_check("lock", "held after tq_lock()", unit_ends_by(taken) == 0);
	unit_check("lock", "held after tq_trylock()", unit_ends_by(tried) == 0);
	unit_check("lock", "no lock: nothing to hold", unit_ends_by(none) == 0);
	unit_check("lock", "not held before", unit_ends_by(never_taken) == SIGABRT);
	unit_check("lock", "not held after tq_unlock()", unit_ends_by(released) == SIGABRT);
	unit_check("lock", "not held by this thread", unit_ends_by(other_threads) == SIGABRT);
	return unit_status();
}
