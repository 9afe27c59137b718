/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers, blocking and not, on communicators of many sizes: no rank leaves a barrier before all
 * have entered it. The ranks count in shared memory how many have entered, so they have to be on
 * one host (as virtual nodes are).
 *
 * barrier [LOOPS [RANDOM [SEED [THREADS]]]]: LOOPS of each barrier on each size of communicator,
 * and at most RANDOM barriers with delays (see t_enough()). THREADS threads do the latter at the
 * same time, each on a communicator of its own.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { COUNTERS = 4096, OVERLAPPING = 6, THREADS_MAX = 8, PORTION = 500 };

/* A counter for each communicator: all entries into its barriers. */
static _Atomic uint64_t *counters;
static int used;

static void map_counters(void)
{
	char name[64];
	int fd = -1, pid = (int)getpid();

	MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(name, sizeof(name), "/tupleq-test-barrier-%d", pid);
	/* Rank 0 creates the file before a broadcast and the others open it after that: MPI_Barrier
	 * is what this program tests. */
	if (t_rank == 0) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		t_true(fd >= 0 && !ftruncate(fd, COUNTERS * sizeof(*counters)), "shm_open");
	}
	MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (t_rank)
		fd = shm_open(name, O_RDWR, 0);
	t_true(fd >= 0, "%s isn't there", name);
	counters =
		mmap(NULL, COUNTERS * sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t_true(counters != MAP_FAILED, "mmap");
	close(fd);
	MPI_Allreduce(MPI_IN_PLACE, &pid, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (t_rank == 0)
		shm_unlink(name);
}

/* A communicator and the barriers that it has had. */
struct group {
	MPI_Comm comm;
	int size;
	uint64_t entered; /* barriers that this process has entered */
	_Atomic uint64_t *counter;
};

/* Returns the group of a communicator with a new counter. All ranks of the world have to call
 * this. */
static struct group group_of(MPI_Comm comm)
{
	struct group g = {.comm = comm};

	t_true(used < COUNTERS, "too many communicators");
	g.counter = &counters[used++];
	if (comm != MPI_COMM_NULL)
		MPI_Comm_size(comm, &g.size);
	return g;
}

static void group_free(struct group *group)
{
	if (group->comm != MPI_COMM_NULL)
		MPI_Comm_free(&group->comm);
}

static void enter(struct group *group)
{
	atomic_fetch_add(group->counter, 1);
	group->entered++;
}

/* Checks, after this process has left barrier number `n`, that all others had entered it. */
static void left(const struct group *group, uint64_t n)
{
	uint64_t in = atomic_load(group->counter);

	t_true(in >= n * (uint64_t)group->size,
	       "left barrier %llu of %d ranks after %llu had entered", (unsigned long long)n,
	       group->size, (unsigned long long)in);
}

static void barrier(struct group *group)
{
	enter(group);
	t_true(MPI_Barrier(group->comm) == MPI_SUCCESS, "MPI_Barrier");
	left(group, group->entered);
}

static void start(struct group *group, MPI_Request *request)
{
	enter(group);
	t_true(MPI_Ibarrier(group->comm, request) == MPI_SUCCESS, "MPI_Ibarrier");
}

static void loop(struct group *group, int loops)
{
	MPI_Request requests[3];

	for (int i = 0; i < loops; i++)
		barrier(group);
	for (int i = 0; i < loops; i++) {
		start(group, &requests[0]);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
		left(group, group->entered);
	}
	/* Several at a time, one of which ends while a blocking barrier waits. */
	for (int i = 0; i < loops; i++) {
		for (int k = 0; k < 3; k++)
			start(group, &requests[k]);
		barrier(group);
		MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
	}
}

static void sizes(int loops)
{
	for (int n = 1; n <= t_size; n++) {
		struct group g;
		MPI_Comm comm;

		t_begin("%d ranks", n);
		MPI_Comm_split(MPI_COMM_WORLD, t_rank < n ? 0 : MPI_UNDEFINED, t_rank, &comm);
		g = group_of(comm);
		if (comm != MPI_COMM_NULL)
			loop(&g, loops);
		group_free(&g);
		t_end();
	}
}

/* Tests barriers of the last ranks, in reverse order. */
static void reversed(int loops)
{
	struct group g;
	MPI_Comm comm;

	t_begin("reversed ranks");
	MPI_Comm_split(MPI_COMM_WORLD, t_rank > 0 || t_size == 1 ? 0 : MPI_UNDEFINED, -t_rank,
		       &comm);
	g = group_of(comm);
	if (comm != MPI_COMM_NULL)
		loop(&g, loops);
	group_free(&g);
	t_end();
}

/* Returns how often this process wrote into other processes' memory in 20 barriers. A barrier that
 * took long may have written more, because its ranks then ask each other which barrier they are in.
 */
static long long writes_once(struct group *group, bool nonblocking)
{
	long long before = t_counter("pml_tupleq_puts");
	MPI_Request request;

	for (int i = 0; i < 20; i++) {
		if (!nonblocking) {
			barrier(group);
			continue;
		}
		start(group, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		left(group, group->entered);
	}
	return t_counter("pml_tupleq_puts") - before;
}

static long long writes(struct group *group, bool nonblocking)
{
	long long least = writes_once(group, nonblocking), n;

	for (int i = 1; i < 5; i++) {
		n = writes_once(group, nonblocking);
		least = n < least ? n : least;
	}
	return least;
}

/* Has each rank start a barrier only after the rank before it has. This ends only if no start waits
 * for other ranks. */
static void enter_in_turn(struct group *group)
{
	MPI_Request request;
	int token = 0;

	if (t_rank)
		MPI_Recv(&token, 1, MPI_INT, t_rank - 1, 1, group->comm, MPI_STATUS_IGNORE);
	start(group, &request);
	if (t_rank + 1 < t_size)
		MPI_Send(&token, 1, MPI_INT, t_rank + 1, 1, group->comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	left(group, group->entered);
}

/* Tests that a nonblocking barrier that comes first doesn't wait, not even for the set-up. */
static void nonblocking_first(void)
{
	struct group g;
	MPI_Comm comm;

	t_begin("Ibarrier first");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	g = group_of(comm);
	enter_in_turn(&g);
	/* That barrier must have set up all that a blocking one would. */
	t_eq(writes(&g, true), writes(&g, false));
	enter_in_turn(&g);
	group_free(&g);
	t_end();
}

/* Starts several barriers before there is memory to write to, while messages of other collectives
 * are under way. */
static void nonblocking_all_at_once(void)
{
	MPI_Request requests[8], other;
	int sum, one = 1, root = 7;
	struct group g;
	MPI_Comm comm;

	t_begin("Ibarriers first, among others");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	g = group_of(comm);
	for (int i = 0; i < 8; i++) {
		start(&g, &requests[i]);
		if (i == 2)
			MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &other);
		if (i == 4)
			MPI_Bcast(&root, 1, MPI_INT, 0, comm);
	}
	MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
	left(&g, 8);
	MPI_Wait(&other, MPI_STATUS_IGNORE);
	t_eq(sum, t_size);
	group_free(&g);
	t_end();
}

static void delay(struct t_rng *rng)
{
	int kind = t_below(rng, 64);

	if (kind == 0)
		usleep((useconds_t)t_below(rng, 100));
	else if (kind < 4)
		sched_yield();
	else if (kind < 16)
		for (volatile int i = t_below(rng, 2000); i > 0; i--)
			;
}

/* Enters barriers of communicators that overlap, in a random order that all ranks share. */
static void overlapping(struct t_rng *common, struct t_rng *own, long barriers)
{
	double since = MPI_Wtime();
	struct group g[OVERLAPPING];
	MPI_Comm comm;

	t_begin("up to %ld barriers on communicators that overlap", barriers);
	for (int i = 0; i < OVERLAPPING; i++) {
		int colour = i == 0   ? 0
			     : i == 1 ? t_rank % 2
			     : i == 2 ? t_rank / 2
				      : (int)(t_rng(7, (uint64_t)i, (uint64_t)t_rank).state % 2);

		MPI_Comm_split(MPI_COMM_WORLD, colour, i % 2 ? -t_rank : t_rank, &comm);
		/* Each colour has a counter. */
		used += t_size;
		t_true(used < COUNTERS, "too many communicators");
		g[i] = (struct group){.comm = comm, .counter = &counters[used - t_size + colour]};
		MPI_Comm_size(comm, &g[i].size);
	}
	for (long i = 0; i < barriers; i++) {
		int which = t_below(common, OVERLAPPING), other = t_below(common, OVERLAPPING);
		MPI_Request request;

		if (i % PORTION == 0 && t_enough(since))
			break;
		delay(own);
		if (!t_chance(common, 10)) {
			barrier(&g[which]);
			continue;
		}
		/* One barrier is under way while another starts and ends. */
		start(&g[which], &request);
		if (which != other)
			barrier(&g[other]);
		delay(own);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		left(&g[which], g[which].entered);
	}
	for (int i = 0; i < OVERLAPPING; i++)
		group_free(&g[i]);
	t_end();
}

static void delayed(struct t_rng *own, long barriers)
{
	double since = MPI_Wtime();
	struct group g;
	MPI_Comm comm;

	t_begin("up to %ld barriers with delays", barriers);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	g = group_of(comm);
	for (long i = 0; i < barriers && (i % PORTION || !t_enough(since)); i++) {
		delay(own);
		barrier(&g);
	}
	group_free(&g);
	t_end();
}

struct thread {
	struct group g;
	struct t_rng rng;
	long barriers;
};

static void *thread_main(void *arg)
{
	struct thread *thread = arg;
	MPI_Request request;

	for (long i = 0; i < thread->barriers; i++) {
		delay(&thread->rng);
		if (i % 3) {
			barrier(&thread->g);
			continue;
		}
		start(&thread->g, &request);
		delay(&thread->rng);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		left(&thread->g, thread->g.entered);
	}
	return NULL;
}

static void threads(long seed, int n, long barriers)
{
	struct thread t[THREADS_MAX];
	MPI_Comm comm;

	t_begin("%d threads with %ld barriers each", n, barriers);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		t[i] = (struct thread){
			.g = group_of(comm),
			.rng = t_rng((uint64_t)seed, 3 + (uint64_t)i, (uint64_t)t_rank),
			.barriers = barriers,
		};
	}
	t_threads(n, thread_main, t, sizeof(t[0]));
	for (int i = 0; i < n; i++)
		group_free(&t[i].g);
	t_end();
}

static void freed_again(void)
{
	MPI_Request request;
	MPI_Comm comm;

	t_begin("50 communicators");
	for (int i = 0; i < 50; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		request = MPI_REQUEST_NULL;
		/* Freed before its set-up. */
		if (i % 5 == 0)
			MPI_Ibarrier(comm, &request);
		else
			MPI_Barrier(comm);
		if (i % 2)
			MPI_Barrier(comm);
		MPI_Comm_free(&comm);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	t_end();
}

int main(int argc, char **argv)
{
	struct t_rng common, own;
	long loops, barriers, seed;
	int nthreads = t_init_threads(&argc, &argv, 1, 4, THREADS_MAX);

	loops = t_arg(argc, argv, 1, 20);
	barriers = t_arg(argc, argv, 2, 1000);
	seed = t_arg(argc, argv, 3, 1);
	common = t_rng((uint64_t)seed, 1, 0);
	own = t_rng((uint64_t)seed, 2, (uint64_t)t_rank);
	map_counters();
	sizes((int)loops);
	reversed((int)loops);
	nonblocking_first();
	nonblocking_all_at_once();
	overlapping(&common, &own, barriers / 4);
	delayed(&own, barriers);
	freed_again();
	if (nthreads)
		threads(seed, nthreads, barriers);
	return t_finish();
}
