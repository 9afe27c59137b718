/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * assertions.c - assertions [exact|overtaking]: the library uses the assertions on a communicator
 * (mpi_assert_...), and still does everything that they don't rule out. Two ranks or more.
 *
 * exact: bytes must go to tuple queues, too. overtaking: only the test of overtaking wildcards.
 */
#include "check.h"

enum { TAG = 11, N = 8, MAX = 262144, LENGTH = 20000 };

static unsigned char *out, *in[N];
static unsigned int seq;

static struct t_msg from(int rank, int i)
{
	return (struct t_msg){rank, TAG, seq + (unsigned int)i};
}

static void set_assertion(MPI_Comm comm, const char *key, const char *value)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, key, value);
	MPI_Comm_set_info(comm, info);
	MPI_Info_free(&info);
}

/* Sends N messages of different sizes round the ring. They must arrive in order if `ordered`. */
static void exchange(MPI_Comm comm, bool wild, bool late, bool ordered)
{
	MPI_Request req[2 * N];
	MPI_Status st[2 * N];
	bool seen[N] = {false};
	int i, k;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < N && k == !late; i++)
			MPI_Irecv(in[i], LENGTH + i, MPI_BYTE,
				  wild && i % 2 ? MPI_ANY_SOURCE : t_left,
				  wild && i % 3 == 2 ? MPI_ANY_TAG : TAG, comm, &req[N + i]);
		for (i = 0; i < N && k == late; i++) {
			t_fill(out + MAX / N * i, (size_t)(LENGTH + i), from(t_rank, i));
			MPI_Isend(out + MAX / N * i, LENGTH + i, MPI_BYTE, t_right, TAG, comm,
				  &req[i]);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Waitall(2 * N, req, st);
	for (i = 0; i < N; i++) {
		MPI_Get_count(&st[N + i], MPI_BYTE, &k);
		k -= LENGTH;
		t_true(k >= 0 && k < N && !seen[k], "a message of %d bytes came twice", k + LENGTH);
		t_true(!ordered || k == i, "message %d came as number %d", k, i);
		seen[k] = true;
		t_verify(in[i], (size_t)(LENGTH + k), from(t_left, k));
	}
	seq += N;
}

/* Puts a number into the right neighbour's window. Its messages have negative tags. */
static void window_inside(MPI_Comm comm)
{
	int n = -1, rc;
	MPI_Win win;

	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	rc = MPI_Win_create(&n, sizeof(n), sizeof(n), MPI_INFO_NULL, comm, &win);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
	if (rc != MPI_SUCCESS) {
		t_skip("assertions: a window", "no osc component for this pml");
		return;
	}
	MPI_Win_fence(0, win);
	MPI_Put(&t_rank, 1, MPI_INT, t_right, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
	t_eq(n, t_left);
}

/* Uses collectives and one-sided operations, whose own messages may do what the user has ruled
 * out. */
static void library_inside(MPI_Comm comm)
{
	int i, sum = 0, *all = t_alloc(sizeof(int) * (size_t)t_size * 100);

	MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	t_eq(sum, t_size * (t_size - 1) / 2);
	for (i = 0; i < 100 * t_size; i++)
		all[i] = t_rank == 0 ? i : -1;
	MPI_Scatter(all, 100, MPI_INT, t_rank == 0 ? MPI_IN_PLACE : all, 100, MPI_INT, 0, comm);
	t_eq(all[t_rank == 0 ? 99 : 0], t_rank == 0 ? 99 : 100 * t_rank);
	window_inside(comm);
	free(all);
}

/* Waits until pml/tupleq of all ranks knows the assertion, which it reads in the next operation on
 * the communicator. A tuple queue that is made before that may be too short. */
static void settle(MPI_Comm comm)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, t_right, TAG + 1, NULL, 0, MPI_BYTE, t_left, TAG + 1, comm,
		     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Returns how many bytes went to tuple queues under mpi_assert_exact_length. */
static long long assertions(void)
{
	static const struct {
		const char *key;
		bool wild, ordered;
	} a[] = {
		{"mpi_assert_no_any_source", false, true},
		{"mpi_assert_no_any_tag", false, true},
		{"mpi_assert_exact_length", true, true},
		{"mpi_assert_allow_overtaking", true, false},
	};
	unsigned int i, round;
	long long exact = 0;
	MPI_Comm comm;

	for (i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
		t_begin("assertions: %s", a[i].key);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		set_assertion(comm, a[i].key, "true");
		settle(comm);
		if (strstr(a[i].key, "exact"))
			t_count("pml_tupleq_sent_direct_bytes");
		for (round = 0; round < 12; round++)
			exchange(comm, a[i].wild && round >= 6, round % 2, a[i].ordered);
		if (strstr(a[i].key, "exact"))
			exact = t_counted();
		library_inside(comm);
		set_assertion(comm, a[i].key, "false");
		for (round = 0; round < 4; round++)
			exchange(comm, true, round % 2, true);
		MPI_Comm_free(&comm);
		t_end();
	}
	return exact;
}

/* Checks that with mpi_assert_allow_overtaking a wildcard takes a message that has arrived and
 * recalls no tuple. The tuple of tag 5 has its queue by then. Once the message with tag 7 has
 * arrived, so has the one with tag 6. */
static void overtaking(void)
{
	char data = 0;
	int i;

	t_begin("assertions: a wildcard that overtakes");
	for (i = 0; i < 100 && t_rank < 2; i++) {
		if (t_rank == 0) {
			MPI_Recv(&data, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(&data, 1, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
		} else {
			MPI_Request request;

			MPI_Irecv(&data, 1, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request);
			MPI_Send(&data, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
	}
	set_assertion(MPI_COMM_WORLD, "mpi_assert_allow_overtaking", "true");
	t_count("pml_tupleq_recv_overtaking");
	if (t_rank == 0) {
		MPI_Send("6", 1, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
		MPI_Send("7", 1, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
		t_counted();
	} else if (t_rank == 1) {
		MPI_Status status;

		MPI_Recv(&data, 1, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &status);
		MPI_Recv(&data, 1, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		t_eq(status.MPI_TAG, 6);
		t_eq(data, '6');
		t_eq(t_counted(), 1);
	}
	set_assertion(MPI_COMM_WORLD, "mpi_assert_allow_overtaking", "false");
	t_end();
}

int main(int argc, char **argv)
{
	int i;

	t_init(&argc, &argv, 2);
	out = t_alloc(MAX);
	for (i = 0; i < N; i++)
		in[i] = t_alloc(MAX / N);
	if (argc > 1 && !strcmp(argv[1], "overtaking")) {
		overtaking();
	} else {
		long long bytes = assertions();

		if (argc > 1 && !strcmp(argv[1], "exact")) {
			t_begin("assertions: with exact lengths the queue needs no room for more");
			t_true(bytes, "no byte was sent to a tuple queue");
			t_end();
		}
	}
	free(out);
	for (i = 0; i < N; i++)
		free(in[i]);
	return t_finish();
}
