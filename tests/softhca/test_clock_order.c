/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_order.c - which of several threads that are due at the same time runs first, in
 * virtual time on two nodes: the order is that of job, rank and thread, whichever was there first.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock_time.h"
#include "procs.h"

enum { UNTIL, PLACE }; /* keys */

/* The number of processes or threads that have run, in shared memory. */
static _Atomic uint64_t *ran;

/* Sleeps until a time. Returns how many threads have run before this one. */
static uint64_t place_at(const struct timespec *until)
{
	t_ok(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL));
	return atomic_fetch_add(ran, 1);
}

/* ---- processes ---- */

struct launch {
	const char *job, *rank;
};

static void sleeps(unsigned me, void *arg)
{
	const struct launch *launch = (const struct launch *)arg + me;
	struct timespec until;
	struct t_dev *dev;

	if (launch->job)
		t_ok(setenv("PMIX_NAMESPACE", launch->job, 1));
	if (launch->rank)
		t_ok(setenv("PMIX_RANK", launch->rank, 1));
	dev = t_open();
	t_qp_free(t_qp(dev, NULL));
	procs_barrier();
	until = from_now(CLOCK_MONOTONIC, 10);
	if (me == 0)
		procs_put(UNTIL, (uint64_t)until.tv_sec);
	until = (struct timespec){(time_t)procs_get(0, UNTIL), 0};
	procs_put(PLACE, place_at(&until));
	t_close(dev);
}

/* Checks that the second one of two processes runs first. */
static void second_first(const struct launch launches[2])
{
	atomic_store(ran, 0);
	procs_start(2, (const unsigned[]){0, 1}, sleeps, (void *)(uintptr_t)launches);
	t_eq(procs_get(0, PLACE), 1);
	t_eq(procs_get(1, PLACE), 0);
	procs_finish();
}

static void test_rank(void **state)
{
	(void)state;
	second_first((const struct launch[]){{NULL, "2"}, {NULL, "1"}});
}

/* Checks that a rank of any number comes before a process without a rank. */
static void test_no_rank(void **state)
{
	(void)state;
	second_first((const struct launch[]){{NULL, NULL}, {NULL, "1000"}});
}

/* Checks that ranks of a job come before those of a job that was spawned. */
static void test_spawned(void **state)
{
	(void)state;
	second_first((const struct launch[]){{"prterun-host-1234@2", "0"},
					     {"prterun-host-1234@1", "1"}});
	second_first((const struct launch[]){{"189530114", "0"}, {"189530113", "1"}});
}

/* ---- threads ---- */

enum { THREADS = 300, EARLY = 200 };

static struct {
	struct timespec until;
	sem_t joined, go;
	uint64_t place[2];
} threads;

static void *nothing(void *arg)
{
	t_qp_free(t_qp(arg, NULL));
	return NULL;
}

static void *one_of_two(void *arg)
{
	uint64_t *place = arg;

	/* This call makes the thread join the clock. */
	usleep(1);
	sem_post(&threads.joined);
	sem_wait(&threads.go);
	*place = place_at(&threads.until);
	return NULL;
}

/* Checks that threads run in the order in which they joined, the 257th and later ones, too. */
static void test_many_threads(void **state)
{
	pthread_t two[2], th;

	t_setup(state);
	atomic_store(ran, 0);
	t_ok(sem_init(&threads.joined, 0, 0));
	t_ok(sem_init(&threads.go, 0, 0));
	t_qp_free(t_qp(*state, NULL));
	for (int i = 0; i < THREADS; i++) {
		if (i == EARLY) {
			t_ok(pthread_create(&two[0], NULL, one_of_two, &threads.place[0]));
			t_ok(sem_wait(&threads.joined));
		}
		t_ok(pthread_create(&th, NULL, nothing, *state));
		t_ok(pthread_join(th, NULL));
	}
	t_ok(pthread_create(&two[1], NULL, one_of_two, &threads.place[1]));
	t_ok(sem_wait(&threads.joined));
	threads.until = from_now(CLOCK_MONOTONIC, 10);
	t_ok(sem_post(&threads.go));
	t_ok(sem_post(&threads.go));
	for (int i = 0; i < 2; i++)
		t_ok(pthread_join(two[i], NULL));
	t_eq(threads.place[0], 0);
	t_eq(threads.place[1], 1);
	t_ok(sem_destroy(&threads.joined));
	t_ok(sem_destroy(&threads.go));
	t_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_no_rank),
		cmocka_unit_test(test_spawned),
		cmocka_unit_test(test_many_threads),
	};

	ran = mmap(NULL, sizeof(*ran), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	t_true(ran != MAP_FAILED, "no shared memory");
	unsetenv("OMPI_COMM_WORLD_RANK");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
