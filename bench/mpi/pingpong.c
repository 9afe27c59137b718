/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong.h"

#include "clock.h"

static void send_one(const struct pair *p, size_t bytes)
{
	MPI_Send(p->send_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD);
}

static void receive_one(const struct pair *p, size_t bytes)
{
	MPI_Recv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

void pingpong(const struct pair *p, size_t bytes, long n, double *half_us)
{
	uint64_t then, now;

	MPI_Barrier(MPI_COMM_WORLD);
	then = clock_ns();
	for (long i = 0; i < n; i++) {
		if (p->rank) {
			receive_one(p, bytes);
			send_one(p, bytes);
			continue;
		}
		send_one(p, bytes);
		receive_one(p, bytes);
		now = clock_ns();
		half_us[i] = (double)(now - then) / 2e3;
		then = now;
	}
}
