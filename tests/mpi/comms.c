/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comms.c - comms [SEED [ROUNDS]]: communicators that come and go with traffic on them, so that
 * their context ids are used again. Two ranks or more.
 */
#include <unistd.h>

#include "check.h"

enum { TAG = 2, BYTES = 6000, COMMS = 6 };

static struct t_rng rng; /* all ranks have the same */
static unsigned char *out[COMMS], *in[COMMS];
static unsigned int seq;

/* Returns the number in MPI_COMM_WORLD of a rank of comm. */
static int world_rank(MPI_Comm comm, int rank)
{
	MPI_Group a, b;
	int world;

	MPI_Comm_group(comm, &a);
	MPI_Comm_group(MPI_COMM_WORLD, &b);
	MPI_Group_translate_ranks(a, 1, &rank, b, &world);
	MPI_Group_free(&a);
	MPI_Group_free(&b);
	return world;
}

/* Sends messages round the ring of comm, some of them to wildcards. */
static void ring(MPI_Comm comm, int messages)
{
	int rank, size, i, n;
	MPI_Request req;
	MPI_Status st;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (i = 0; i < messages; i++) {
		int right = (rank + 1) % size, left = (rank + size - 1) % size;

		n = (i * 739) % BYTES;
		MPI_Irecv(in[0], BYTES, MPI_BYTE, i % 5 == 4 ? MPI_ANY_SOURCE : left,
			  i % 7 == 6 ? MPI_ANY_TAG : TAG, comm, &req);
		t_fill(out[0], (size_t)n, (struct t_msg){t_rank, TAG, seq + (unsigned int)i});
		MPI_Send(out[0], n, MPI_BYTE, right, TAG, comm);
		MPI_Wait(&req, &st);
		t_status(&st, left, TAG, (size_t)n);
		t_verify(in[0], (size_t)n,
			 (struct t_msg){world_rank(comm, left), TAG, seq + (unsigned int)i});
	}
}

static void dup_and_free(int rounds)
{
	MPI_Comm comm;
	int i;

	t_begin("comms: dup, traffic, free, %d times", rounds);
	for (i = 0; i < rounds; i++, seq += 100) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		ring(comm, i % 4 ? 3 : 25);
		MPI_Comm_free(&comm);
	}
	t_end();
}

static void split_and_free(int rounds)
{
	MPI_Comm comm;
	int i;

	t_begin("comms: split, traffic, free, %d times", rounds);
	for (i = 0; i < rounds; i++, seq += 100) {
		int colours = 1 + t_below(&rng, 3);

		MPI_Comm_split(MPI_COMM_WORLD, t_rank % colours, i % 2 ? -t_rank : t_rank, &comm);
		ring(comm, i % 4 ? 3 : 25);
		MPI_Comm_free(&comm);
	}
	t_end();
}

/* Sends on a communicator that some ranks have before the others know of it. */
static void early_traffic(int rounds)
{
	MPI_Request req[2];
	MPI_Status st;
	MPI_Comm comm;
	int i;

	t_begin("comms: messages on a communicator that is new, %d times", rounds);
	for (i = 0; i < rounds; i++, seq += 100) {

		if (i % 4 == 0 && t_rank == (i / 4) % t_size)
			t_away(2);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		t_fill(out[0], 100, (struct t_msg){t_rank, TAG, seq});
		t_fill(out[1], BYTES, (struct t_msg){t_rank, TAG, seq + 1});
		MPI_Isend(out[0], 100, MPI_BYTE, t_right, TAG, comm, &req[0]);
		MPI_Isend(out[1], BYTES, MPI_BYTE, t_right, TAG, comm, &req[1]);
		MPI_Recv(in[0], BYTES, MPI_BYTE, t_left, TAG, comm, &st);
		t_status(&st, t_left, TAG, 100);
		t_verify(in[0], 100, (struct t_msg){t_left, TAG, seq});
		MPI_Recv(in[0], BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG, comm, &st);
		t_status(&st, t_left, TAG, BYTES);
		t_verify(in[0], BYTES, (struct t_msg){t_left, TAG, seq + 1});
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		MPI_Comm_free(&comm);
	}
	t_end();
}

/* Uses the same source and tag on several communicators at once: contexts don't mix. */
static void side_by_side(int rounds)
{
	int i, k;
	MPI_Request req[COMMS], recv[COMMS];
	MPI_Comm comm[COMMS];
	int order[COMMS];
	MPI_Status st;

	t_begin("comms: one tag on %d communicators", COMMS);
	for (k = 0; k < COMMS; k++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[k]);
		order[k] = k;
	}
	for (i = 0; i < 10 * rounds; i++, seq += COMMS) {
		for (k = 0; k < COMMS; k++)
			MPI_Irecv(in[k], BYTES, MPI_BYTE, i % 11 ? t_left : MPI_ANY_SOURCE,
				  i % 13 ? TAG : MPI_ANY_TAG, comm[k], &recv[k]);
		t_shuffle(&rng, order, COMMS);
		for (k = 0; k < COMMS; k++) {
			int c = order[k], n = (i * 97 + c * 501) % BYTES;

			t_fill(out[c], (size_t)n, (struct t_msg){t_rank, c, seq});
			MPI_Isend(out[c], n, MPI_BYTE, t_right, TAG, comm[c], &req[c]);
		}
		for (k = 0; k < COMMS; k++) {
			size_t n = (size_t)((i * 97 + k * 501) % BYTES);

			MPI_Wait(&recv[k], &st);
			t_status(&st, t_left, TAG, n);
			t_verify(in[k], n, (struct t_msg){t_left, k, seq});
		}
		MPI_Waitall(COMMS, req, MPI_STATUSES_IGNORE);
	}
	for (k = 0; k < COMMS; k++)
		MPI_Comm_free(&comm[k]);
	t_end();
}

/* Checks that MPI_Comm_free lets pending operations complete. */
static void free_with_pending(int rounds)
{
	int i;
	MPI_Request req[2];
	MPI_Comm comm;
	MPI_Status st;

	t_begin("comms: freed with messages under way, %d times", rounds);
	for (i = 0; i < rounds; i++, seq++) {
		int n = i % 2 ? BYTES : 50;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		t_fill(out[0], (size_t)n, (struct t_msg){t_rank, TAG, seq});
		MPI_Irecv(in[0], BYTES, MPI_BYTE, t_left, TAG, comm, &req[0]);
		MPI_Isend(out[0], n, MPI_BYTE, t_right, TAG, comm, &req[1]);
		MPI_Comm_free(&comm);
		MPI_Wait(&req[0], &st);
		t_status(&st, t_left, TAG, (size_t)n);
		t_verify(in[0], (size_t)n, (struct t_msg){t_left, TAG, seq});
		MPI_Wait(&req[1], MPI_STATUS_IGNORE);
	}
	t_end();
}

/* Receives a message that a matched probe took, after its communicator was freed and the context id
 * can be used again. */
static void free_with_taken(int rounds)
{
	int i;
	MPI_Request req[2];
	MPI_Comm comm, next;
	MPI_Message msg;
	MPI_Status st;

	t_begin("comms: freed with a message taken, %d times", rounds);
	for (i = 0; i < rounds; i++, seq++) {
		int n = i % 2 ? BYTES : 50;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		t_fill(out[0], (size_t)n, (struct t_msg){t_rank, TAG, seq});
		MPI_Isend(out[0], n, MPI_BYTE, t_right, TAG, comm, &req[0]);
		MPI_Mprobe(t_left, TAG, comm, &msg, &st);
		MPI_Comm_free(&comm);
		MPI_Comm_dup(MPI_COMM_WORLD, &next);
		if (i % 3) {
			MPI_Mrecv(in[0], BYTES, MPI_BYTE, &msg, &st);
		} else {
			MPI_Imrecv(in[0], BYTES, MPI_BYTE, &msg, &req[1]);
			MPI_Wait(&req[1], &st);
		}
		t_status(&st, t_left, TAG, (size_t)n);
		t_verify(in[0], (size_t)n, (struct t_msg){t_left, TAG, seq});
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		MPI_Comm_free(&next);
	}
	t_end();
}

/* Lets MPI_Comm_idup make progress on every second rank before the communicator's first collective,
 * and on the others only in that collective. */
static void idup_and_first_collective(int rounds)
{
	MPI_Comm comm, copy;
	MPI_Request req;
	int i, k, done, got;

	t_begin("comms: idup, and a first collective, %d times", rounds);
	for (i = 0; i < rounds; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_idup(comm, &copy, &req);
		for (k = done = 0; (t_rank + i) % 2 && k < 100 && !done; k++) {
			MPI_Test(&req, &done, MPI_STATUS_IGNORE);
			usleep(50);
		}
		got = t_rank ? -1 : i;
		MPI_Bcast(&got, 1, MPI_INT, 0, comm);
		t_eq(got, i);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
		MPI_Allreduce(&i, &got, 1, MPI_INT, MPI_MAX, copy);
		t_eq(got, i);
		MPI_Comm_free(&copy);
		MPI_Comm_free(&comm);
	}
	t_end();
}

/* Starts the user's collective beside those of MPI_Comm_idup, which are of another kind. libnbc
 * mixes them up. */
static void idup_and_iallreduce(int rounds)
{
	MPI_Comm copy;
	MPI_Request req[2];
	int i, k, done, got;

	if (t_counter("pml_tupleq_puts") < 0) {
		t_skip("comms: idup, and a nonblocking sum", "the operations are libnbc's");
		return;
	}
	t_begin("comms: idup, and a nonblocking sum, %d times", rounds);
	for (i = 0; i < rounds; i++) {
		MPI_Comm_idup(MPI_COMM_WORLD, &copy, &req[0]);
		for (k = done = 0; (t_rank + i) % 2 && k < 10 && !done; k++) {
			MPI_Test(&req[0], &done, MPI_STATUS_IGNORE);
			usleep(50);
		}
		MPI_Iallreduce(&i, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		t_eq(got, i * t_size);
		MPI_Allreduce(&i, &got, 1, MPI_INT, MPI_MAX, copy);
		t_eq(got, i);
		MPI_Comm_free(&copy);
	}
	t_end();
}

/* Checks that a communicator whose collective has failed is freed like any other. Each message of
 * the MPI_Alltoallv is longer than its receive. */
static void free_after_failure(int rounds)
{
	int *both = t_alloc((size_t)t_size * sizeof(int)),
	    *less = t_alloc((size_t)t_size * sizeof(int));
	int *places = t_alloc((size_t)t_size * sizeof(int)), *to = t_alloc((size_t)t_size * 8);
	int *from = t_alloc((size_t)t_size * 8), class;
	long long contexts = t_counter("pml_tupleq_contexts");
	MPI_Comm comm;

	t_begin("comms: freed after a failed collective, %d times", rounds);
	for (int i = 0; i < t_size; i++) {
		both[i] = 2;
		less[i] = i == t_rank ? 2
				      : 1; /* MPI_Alltoallv itself compares this rank's own block */
		places[i] = 2 * i;
	}
	memset(from, 0, (size_t)t_size * 8);
	for (int i = 0; i < rounds; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		MPI_Error_class(
			MPI_Alltoallv(from, both, places, MPI_INT, to, less, places, MPI_INT, comm),
			&class);
		t_eq(class, MPI_ERR_TRUNCATE);
		MPI_Comm_free(&comm);
	}
	/* Communicators from before may still be freed meanwhile. */
	contexts = t_counter("pml_tupleq_contexts") - contexts;
	t_true(contexts < rounds / 2, "%lld communicators more exist", contexts);
	t_end();
	free(both);
	free(less);
	free(places);
	free(to);
	free(from);
}

/* Returns how many bytes this process has read of files; 0: the kernel doesn't say. */
static long long bytes_read(void)
{
	FILE *io = fopen("/proc/self/io", "r");
	long long n = 0;

	if (!io)
		return 0;
	if (fscanf(io, "rchar: %lld", &n) != 1)
		n = 0;
	fclose(io);
	return n;
}

/* Checks that the cost of a communicator doesn't grow with their number, as it would if each read
 * the kernel's list of the process's mappings. */
static void many(void)
{
	enum { MANY = 300, PORTION = 30, READ = 4096 };
	static MPI_Comm comm[MANY];
	double since = MPI_Wtime();
	long long bytes;
	int n, i;

	t_begin("comms: up to %d at a time", MANY);
	bytes = bytes_read();
	for (n = 0; n < MANY && (n % PORTION || !t_enough(since)); n++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[n]);
		MPI_Barrier(comm[n]);
	}
	for (i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
	bytes = bytes_read() - bytes;
	t_true(bytes < (long long)n * READ, "%lld bytes of files were read", bytes);
	t_end();
}

/* Leaves operations to MPI_Finalize, after MPI-3.1, example 8.5, on communicators of their own:
 * operations that the user has let go of end when Open MPI drops the communicators. This check is
 * the last, because progress before that would end them. */
static void leave_to_finalize(void)
{
	enum { LEFT = 40, EACH = 20000 };
	int i;
	static char from[LEFT][EACH], to[EACH];
	MPI_Comm comm[LEFT];
	MPI_Request req[2];

	t_begin("comms: %d for operations that end in MPI_Finalize", LEFT);
	for (i = 0; i < LEFT; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	t_end();
	for (i = 0; i < LEFT; i++) {
		MPI_Irecv(to, EACH, MPI_BYTE, t_left, TAG, comm[i], &req[0]);
		MPI_Isend(from[i], EACH, MPI_BYTE, t_right, TAG, comm[i], &req[1]);
		MPI_Request_free(&req[1]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	}
	for (i = 0; i < LEFT; i++)
		MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
	int rounds, k;

	t_init(&argc, &argv, 2);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), 0, 0);
	rounds = (int)t_arg(argc, argv, 2, 60);
	for (k = 0; k < COMMS; k++) {
		out[k] = t_alloc(BYTES);
		in[k] = t_alloc(BYTES);
	}
	dup_and_free(rounds);
	split_and_free(rounds);
	early_traffic(rounds);
	side_by_side(rounds);
	free_with_pending(rounds);
	free_with_taken(rounds);
	idup_and_first_collective(rounds);
	/* With fewer ranks the next component does MPI_Alltoallv, and leaves messages behind. */
	if (t_size >= 4)
		free_after_failure(rounds);
	idup_and_iallreduce(rounds);
	many();
	for (k = 0; k < COMMS; k++) {
		free(out[k]);
		free(in[k]);
	}
	leave_to_finalize();
	return t_finish();
}
