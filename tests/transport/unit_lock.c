/* SPDX-License-Identifier: BSD-3-Clause */
/* tq_assert_held() ends a process that calls it without the lock, and no other. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"

static struct tq_lock the_lock;
static int failed;

static void check(const char *name, int ok)
{
	printf("%sok lock: %s\n", ok ? "" : "not ", name);
	failed |= !ok;
}

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

/* Returns the signal that ends a process that calls the function, 0 if the process succeeds, or a
 * negative number. */
static int ends_by(void (*function)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* The message of assert() would only confuse. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		function();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

int main(void)
{
	check("held after tq_lock()", ends_by(taken) == 0);
	check("held after tq_trylock()", ends_by(tried) == 0);
	check("no lock: nothing to hold", ends_by(none) == 0);
	check("not held before", ends_by(never_taken) == SIGABRT);
	check("not held after tq_unlock()", ends_by(released) == SIGABRT);
	check("not held by this thread", ends_by(other_threads) == SIGABRT);
	return failed;
}
