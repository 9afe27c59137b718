/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endless.c - endless DOING: ranks that never end by themselves, which virtual_life.sh ends or
 * stops from outside. Rank 0 prints "ready" when all of them are about to begin.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* Sends messages round for ever. */
static void ring(void)
{
	int right = (t_rank + 1) % t_size, left = (t_rank + t_size - 1) % t_size;
	char out = 0, in;

	for (;;)
		MPI_Sendrecv(&out, 1, MPI_BYTE, right, 1, &in, 1, MPI_BYTE, left, 1, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
}

static void sleep_on(void)
{
	for (;;)
		sleep(1000);
}

static void compute(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

/* Waits for a message that nobody sends. */
static void wait_for_message(void)
{
	char in;

	MPI_Recv(&in, 1, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Waits for a condition that nobody signals. */
static void wait_for_signal(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&m);
	for (;;)
		pthread_cond_wait(&c, &m);
}

/* Lets rank 0 wait in the real world, and the others for rank 0. */
static void wait_for_world(void)
{
	if (!t_rank)
		pause();
	MPI_Barrier(MPI_COMM_WORLD);
}

static void *read_nothing(void *arg)
{
	char c;

	(void)read(*(int *)arg, &c, 1);
	return NULL;
}

static void *compute_on(void *arg)
{
	/* This makes the thread join the virtual clock. */
	usleep(1);
	compute();
	return arg;
}

/* Stops the last rank. Rank 0 waits for its message, with a thread that computes and one that waits
 * in the real world, which nobody waits for. */
static void stop(void)
{
	static int ends[2];
	pthread_t th;

	if (t_rank == t_size - 1)
		raise(SIGSTOP);
	if (!t_rank) {
		t_ok(pipe(ends));
		t_ok(pthread_create(&th, NULL, read_nothing, &ends[0]));
		t_ok(pthread_create(&th, NULL, compute_on, NULL));
	}
	wait_for_message();
}

/* Ends rank 0 without MPI_Finalize. */
static void leave(void)
{
	if (!t_rank)
		_exit(3);
	wait_for_message();
}

static volatile sig_atomic_t continued;

static void on_cont(int nr)
{
	(void)nr;
	continued = 1;
}

/* Goes on until a rank has been stopped and continued. */
static void until_continued(void)
{
	int mine, any = 0;

	while (!any) {
		usleep(10000);
		mine = continued;
		MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	}
}

static const struct {
	const char *name;
	void (*fn)(void);
} doings[] = {
	{"ring", ring},
	{"sleep", sleep_on},
	{"compute", compute},
	{"message", wait_for_message},
	{"condition", wait_for_signal},
	{"world", wait_for_world},
	{"stop", stop},
	{"leave", leave},
	{"until-continued", until_continued},
};

int main(int argc, char **argv)
{
	void (*doing)(void) = NULL;

	for (size_t i = 0; argc > 1 && i < sizeof(doings) / sizeof(*doings); i++)
		if (!strcmp(doings[i].name, argv[1]))
			doing = doings[i].fn;
	if (!doing) {
		fprintf(stderr, "endless: \"%s\" is nothing that it does\n",
			argc > 1 ? argv[1] : "");
		return 2;
	}
	t_init(&argc, &argv, 2);
	signal(SIGCONT, on_cont);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!t_rank) {
		puts("ready");
		fflush(stdout);
	}
	doing();
	MPI_Finalize();
	return 0;
}
