/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_epoch.c - grace periods: threads inside, more threads than executors, and a death inside.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/epoch.h"
#include "fabric/proc.h"
#include "fabric/reap.h"

static _Atomic int inside, left, waiting;

static void *stay_inside(void *arg)
{
	struct timespec while_it_waits = {0, 20000000};

	(void)arg;
	shca_epoch_enter(shca_epoch_self());
	atomic_store(&inside, 1);
	while (!atomic_load(&waiting))
		sched_yield();
	nanosleep(&while_it_waits, NULL); /* a sync that doesn't wait would return meanwhile */
	atomic_store(&left, 1);
	shca_epoch_exit(shca_epoch_self());
	return NULL;
}

static void sync_waits_for_threads_inside(void **state)
{
	pthread_t t;

	(void)state;
	t_eq(pthread_create(&t, NULL, stay_inside, NULL), 0);
	while (!atomic_load(&inside))
		sched_yield();
	atomic_store(&waiting, 1);
	shca_epoch_sync(&u_fab);
	t_eq(atomic_load(&left), 1);
	pthread_join(t, NULL);
}

static pthread_barrier_t all_there;
static _Atomic int in_shared, most_in_shared;

static void *many(void *arg)
{
	struct shca_exec *exec = shca_epoch_self();
	int i, n;

	(void)arg;
	pthread_barrier_wait(&all_there); /* every thread has its executor */
	for (i = 0; i < 50; i++) {
		shca_epoch_enter(exec);
		if (exec == shca_epoch_shared) {
			n = atomic_fetch_add(&in_shared, 1) + 1;
			if (n > atomic_load(&most_in_shared))
				atomic_store(&most_in_shared, n);
			sched_yield();
			atomic_fetch_sub(&in_shared, 1);
		}
		shca_epoch_exit(exec);
	}
	pthread_barrier_wait(&all_there);
	return exec == shca_epoch_shared ? exec : NULL;
}

static void more_threads_than_executors(void **state)
{
	enum { N = SHCA_MAX_EXEC + 6 };
	unsigned i, sharing = 0;
	pthread_t t[N];
	void *rc;

	(void)state;
	pthread_barrier_init(&all_there, NULL, N);
	for (i = 0; i < N; i++)
		t_eq(pthread_create(&t[i], NULL, many, NULL), 0);
	for (i = 0; i < N; i++) {
		pthread_join(t[i], &rc);
		sharing += !!rc;
	}
	pthread_barrier_destroy(&all_there);
	t_eq(sharing, N - (SHCA_MAX_EXEC - 1));
	t_eq(most_in_shared, 1);
	shca_epoch_sync(&u_fab);
}

static void enter_epoch(unsigned slot, void *arg)
{
	(void)slot;
	(void)arg;
	shca_epoch_enter(shca_epoch_self());
}

static void death_inside_an_epoch(void **state)
{
	struct u_child c = u_fork(enter_epoch, NULL);

	(void)state;
	t_eq(atomic_load(&u_fab.hdr->procs[c.slot].exec[0].seq) & 1, 1);
	kill(c.pid, SIGKILL);
	t_eq(waitid(P_PID, (id_t)c.pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	shca_epoch_sync(&u_fab); /* returns, although the child is a zombie */
	/* However late the first look is, it comes before the patience ends. */
	t_true(shca_epoch_sync_for(&u_fab, SHCA_HOLDS_ANY, 0), "a dead process is waited for");
	u_kill(c);
	shca_epoch_sync(&u_fab);
	shca_reap(&u_fab, c.slot);
	t_eq(atomic_load(&u_fab.hdr->procs[c.slot].exec[0].seq) & 1, 0);
	t_eq(atomic_load(&u_fab.hdr->procs[c.slot].exec[0].tid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FABRIC(sync_waits_for_threads_inside),
		IN_FABRIC(more_threads_than_executors),
		IN_FABRIC(death_inside_an_epoch),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
