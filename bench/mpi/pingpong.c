/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong.c - see pingpong.h. */
#include "pingpong.h"

#include "clock.h"

static void send_one(const struct job_pair *pair, size_t bytes)
{
	MPI_Send(pair->send_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD);
}

static void receive_one(const struct job_pair *pair, size_t bytes)
{
	MPI_Recv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

void pingpong(const struct job_pair *pair, size_t bytes, long n, double *half_us)
{
	uint64_t then, now;

	MPI_Barrier(MPI_COMM_WORLD);
	then = clock_ns();
	for (long i = 0; i < n; i++) {
		if (pair->rank) {
			receive_one(pair, bytes);
			send_one(pair, bytes);
			continue;
		}
		send_one(pair, bytes);
		receive_one(pair, bytes);
		now = clock_ns();
		half_us[i] = (double)(now - then) / 2e3;
		then = now;
	}
}
