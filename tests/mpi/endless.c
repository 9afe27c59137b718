/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endless.c - endless DOING: ranks that never end by themselves, for what ends or stops them from
 * outside. Rank 0 prints "ready" when all of them are about to begin. For virtual_life.sh.
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

/* Rank 0 leaves without a word. */
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
	{"leave", leave},
	{"until-continued", until_continued},
};

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	signal(SIGCONT, on_cont);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!t_rank) {
		puts("ready");
		fflush(stdout);
	}
	for (size_t i = 0; argc > 1 && i < sizeof(doings) / sizeof(*doings); i++)
		if (!strcmp(doings[i].name, argv[1]))
			doings[i].fn();
	MPI_Finalize();
	return 0;
}
