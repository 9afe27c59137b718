/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * size.c - a job of many ranks: a token goes round a ring, a barrier, eight bytes from each to
 * each, and the most memory that a rank takes. Rank 0 says how long each took, by MPI_Wtime().
 */
#include <sys/resource.h>

#include "check.h"

enum { TAG = 1 };

static double since;

static void begin(const char *name)
{
	t_begin("%s of %d ranks", name, t_size);
	since = MPI_Wtime();
}

static void end(void)
{
	double took = MPI_Wtime() - since;

	t_end();
	if (t_rank == 0)
		printf("# %.1f us\n", took * 1e6);
}

static void ring(void)
{
	int next = (t_rank + 1) % t_size, last = (t_rank + t_size - 1) % t_size, token = 0;

	begin("a ring");
	if (t_rank == 0)
		MPI_Send(&token, 1, MPI_INT, next, TAG, MPI_COMM_WORLD);
	MPI_Recv(&token, 1, MPI_INT, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	t_eq(token, (t_rank + t_size - 1) % t_size);
	if (t_rank) {
		token = t_rank;
		MPI_Send(&token, 1, MPI_INT, next, TAG, MPI_COMM_WORLD);
	}
	end();
}

static void barrier(void)
{
	begin("a barrier");
	MPI_Barrier(MPI_COMM_WORLD);
	end();
}

static void all_to_all(void)
{
	uint64_t *out = t_alloc((size_t)t_size * sizeof(*out)),
		 *in = t_alloc((size_t)t_size * sizeof(*in));

	begin("an all-to-all of 8 bytes");
	for (int i = 0; i < t_size; i++)
		out[i] = (uint64_t)t_rank << 32 | (uint64_t)i;
	MPI_Alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < t_size; i++)
		t_eq(in[i], (uint64_t)i << 32 | (uint64_t)t_rank);
	end();
	free(out);
	free(in);
}

static void memory(void)
{
	struct rusage u;
	long most;

	begin("the memory");
	getrusage(RUSAGE_SELF, &u);
	MPI_Reduce(&u.ru_maxrss, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	end();
	if (t_rank == 0)
		printf("# at most %ld MB a rank\n", most / 1024);
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	ring();
	barrier();
	all_to_all();
	memory();
	return t_finish();
}
