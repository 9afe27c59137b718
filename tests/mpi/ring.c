/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of nonblocking collectives tell how many queues and rounds a communicator takes.
 *
 * ring [QUEUES [RING]]: the values of coll_tupleq_queues and coll_tupleq_ring in this run.
 */
#include "check.h"

enum { LONG_INTS = 8192, TIMES = 60, AT_ONCE = 40 };

static long queues, ring;

static bool is_plain(void)
{
	return t_size - 1 > queues;
}

static long length_of_ring(void)
{
	long most = queues / (t_size - 1);

	return is_plain() || most > ring ? ring : most;
}

/* Repeats a collective of long messages, whose tuples get queues if they may. */
static void repeat(void)
{
	int *mine = t_alloc(LONG_INTS * sizeof(int));
	int *all = t_alloc((size_t)t_size * LONG_INTS * sizeof(int));
	long long direct = t_counter("pml_tupleq_recv_direct");
	MPI_Request request;

	memset(mine, t_rank + 1, LONG_INTS * sizeof(int));
	for (int i = 0; i < TIMES; i++) {
		MPI_Iallgather(mine, LONG_INTS, MPI_INT, all, LONG_INTS, MPI_INT, MPI_COMM_WORLD,
			       &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	for (int r = 0; r < t_size; r++)
		t_untouched(all + r * LONG_INTS, LONG_INTS * sizeof(int), (unsigned char)(r + 1));
	free(mine);
	free(all);
	if (direct < 0)
		return;
	direct = t_counter("pml_tupleq_recv_direct") - direct;
	t_true(is_plain() ? !direct : direct > TIMES / 2, "%lld messages matched by the adapter",
	       direct);
}

/* Starts many operations before the last rank does, so that they wait for an entry. */
static void at_once(void)
{
	MPI_Request requests[AT_ONCE];
	int *all = t_alloc((size_t)AT_ONCE * (size_t)t_size * sizeof(int)), go = 0;

	if (t_rank == t_size - 1)
		MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < AT_ONCE; i++)
		MPI_Iallgather(&t_rank, 1, MPI_INT, all + i * t_size, 1, MPI_INT, MPI_COMM_WORLD,
			       &requests[i]);
	if (t_rank == 0)
		MPI_Send(&go, 1, MPI_INT, t_size - 1, 1, MPI_COMM_WORLD);
	MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < AT_ONCE * t_size; i++)
		t_eq(all[i], i % t_size);
	free(all);
}

/* Checks that a long broadcast takes two rounds, in which all but the root send data on. */
static void two_rounds(void)
{
	int *data = t_alloc(LONG_INTS * sizeof(int));
	MPI_Request requests[2];
	long long counted;

	memset(data, t_rank ? 0 : 5, LONG_INTS * sizeof(int));
	t_count("coll_tupleq_nbc_two_rounds");
	MPI_Ibcast(data, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
	MPI_Ibcast(data + 1, LONG_INTS - 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	counted = t_counted();
	t_untouched(data, LONG_INTS * sizeof(int), 5);
	if (counted >= 0)
		t_eq(counted, t_rank && t_size > 3);
	free(data);
}

/* Checks that operations one after the other take memory from the system only once. */
static void memory_again(void)
{
	int *in = t_alloc(LONG_INTS * sizeof(int)), *out = t_alloc(LONG_INTS * sizeof(int));
	MPI_Request request;
	long long counted;

	for (int i = 0; i < LONG_INTS; i++)
		in[i] = i;
	for (int i = 0; i < 20; i++) {
		if (i == 1)
			t_count("coll_tupleq_nbc_allocated");
		MPI_Iallreduce(in, out, LONG_INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	counted = t_counted();
	for (int i = 0; i < LONG_INTS; i++)
		t_eq(out[i], i * t_size);
	t_true(counted <= 0, "%lld pieces of memory come from the system", counted);
	free(in);
	free(out);
}

/* Checks that messages of a blocking neighbourhood collective, whose tag is fixed, get queues. */
static void neighbours(void)
{
	int periodic = 1;
	long long direct = t_counter("pml_tupleq_recv_direct");
	const size_t half = LONG_INTS * sizeof(int);
	unsigned char *out = t_alloc(2 * half), *in = t_alloc(2 * half);
	MPI_Comm circle;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &t_size, &periodic, 0, &circle);
	memset(out, t_rank, 2 * half);
	for (int i = 0; i < TIMES; i++) {
		MPI_Neighbor_alltoall(out, LONG_INTS, MPI_INT, in, LONG_INTS, MPI_INT, circle);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	t_untouched(in, half, (unsigned char)t_left);
	t_untouched(in + half, half, (unsigned char)t_right);
	MPI_Comm_free(&circle);
	free(out);
	free(in);
	if (direct >= 0)
		t_true(t_counter("pml_tupleq_recv_direct") > direct,
		       "no message was matched by the adapter");
}

int main(int argc, char **argv)
{
	long long counted;

	t_init(&argc, &argv, 2);
	queues = t_arg(argc, argv, 1, 256);
	ring = t_arg(argc, argv, 2, 4);
	t_begin("ring: messages %s queues", is_plain() ? "take no" : "take");
	t_counter("pml_tupleq_recv_direct");
	repeat();
	t_end();
	t_begin("ring: %ld entries", length_of_ring());
	t_count("coll_tupleq_nbc_deferred");
	at_once();
	counted = t_counted();
	/* Rank 0 has let the last one go on after its calls. */
	if (counted >= 0 && t_rank == 0)
		t_eq(counted, AT_ONCE - length_of_ring());
	t_end();
	t_begin("ring: operations without queues are counted");
	t_count("coll_tupleq_nbc_plain");
	at_once();
	counted = t_counted();
	if (counted >= 0)
		t_eq(counted, is_plain() ? AT_ONCE : 0);
	t_end();
	t_begin("ring: operations of two rounds are counted");
	two_rounds();
	t_end();
	t_begin("ring: a blocking neighbourhood collective takes queues");
	neighbours();
	t_end();
	t_begin("ring: operations use their memory again");
	memory_again();
	t_end();
	return t_finish();
}
