/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock_stall.c - clock_stall DOING: a program that holds its virtual clock up until it is killed,
 * so that test_clock.sh sees the launcher's message. endless.c of tests/mpi has other ways.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "util.h"

static struct t_dev *dev;

/* Arms a CQ for ever, which costs no time with --price-arm 0. */
static void *arm(void *arg)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 1, NULL, channel, 0);

	while (!ibv_req_notify_cq(cq, 0))
		;
	return arg;
}

/* Lets two threads take turns, although neither needs any time. */
static void take_turns(void)
{
	pthread_t thread;

	dev = t_open();
	t_ok(pthread_create(&thread, NULL, arm, NULL));
	arm(NULL);
}

/* Lets a process without a clock compute while another one asks whether the job is quiet. */
static void stay_busy(void)
{
	int ends[2];

	t_ok(pipe(ends));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned i = 0;; i++)
			;
	}
	dev = t_open();
	t_qp_free(t_qp(dev, NULL));
	t_eq(write(ends[1], "x", 1), 1);
	for (;;)
		sleep(1);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "turns"))
		take_turns();
	if (argc == 2 && !strcmp(argv[1], "busy"))
		stay_busy();
	fputs("usage: clock_stall turns|busy\n", stderr);
	return 2;
}
