/* SPDX-License-Identifier: BSD-3-Clause */
/* pattern.c - see pattern.h. */
#include "pattern.h"

#include "clock.h"
#include "pair.h"

/* Tags of data, and of the token that keeps ranks in step. TAG_MANY is the first of as many tags as
 * a pattern wants. */
enum { TAG_LEFT = 1, TAG_RIGHT, TAG_RESULT, TAG_TASK, TAG_TOKEN, TAG_MANY = 100 };

#define FEW        4     /* messages of a step, where order matters less than latency */
#define WILD_EVERY 16    /* seldom: steps for each wildcard receive */
#define JITTER_NS  20000 /* jitter: the longest delay of a receive */

/* ---------------------------------------------------------------- data */

static uint32_t first_word(int source, long step, int index)
{
	return (uint32_t)source * 0x9e3779b1u ^ (uint32_t)step * 0x85ebca6bu ^
	       (uint32_t)index * 0xc2b2ae35u;
}

static unsigned char byte_at(uint32_t word, size_t i)
{
	return (unsigned char)((word + (uint32_t)i) * 0x9e3779b1u >> 24);
}

/* Fills a slot with the data of this rank's message `index` in this step, if data are checked. */
static void make(const struct world *world, int slot, int index, size_t bytes)
{
	uint32_t word = first_word(world->rank, world->step, index);

	for (size_t i = 0; world->check && i < bytes; i++)
		world->send[slot][i] = (char)byte_at(word, i);
}

/* Ends the program unless a slot has the data of the source's message `index` in this step. */
static void compare(const struct world *world, int slot, int source, int index, size_t bytes)
{
	uint32_t word = first_word(source, world->step, index);

	for (size_t i = 0; world->check && i < bytes; i++)
		if ((unsigned char)world->recv[slot][i] != byte_at(word, i))
			die("rank %d, step %ld: message %d from %d is wrong at byte %zu",
			    world->rank, world->step, index, source, i);
}

static void compare_whole(const struct world *world, int slot, int source, int index)
{
	compare(world, slot, source, index, world->bytes);
}

/* ---------------------------------------------------------------- messages */

static void isend(struct world *world, int slot, int index, int to, int tag, MPI_Request *request)
{
	make(world, slot, index, world->bytes);
	MPI_Isend(world->send[slot], (int)world->bytes, MPI_BYTE, to, tag, world->comm, request);
}

static void irecv(struct world *world, int slot, int from, int tag, MPI_Request *request)
{
	MPI_Irecv(world->recv[slot], (int)world->bytes, MPI_BYTE, from, tag, world->comm, request);
}

static void wait_all(struct world *world, int n)
{
	MPI_Waitall(n, world->request, MPI_STATUSES_IGNORE);
}

/* Returns when the left neighbour's token has come. Its earlier messages have come by then, unless
 * they wait for their receives. */
static void pass_token(const struct world *world)
{
	MPI_Request sent;

	MPI_Isend(NULL, 0, MPI_BYTE, world->right, TAG_TOKEN, world->comm, &sent);
	MPI_Recv(NULL, 0, MPI_BYTE, world->left, TAG_TOKEN, world->comm, MPI_STATUS_IGNORE);
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static unsigned random_below(struct world *world, unsigned limit)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(world->random >> 33) % limit;
}

static void shuffle(struct world *world, int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)random_below(world, (unsigned)i + 1), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

/* ---------------------------------------------------------------- receives in time */

static void pingpong_step(struct world *world)
{
	int peer = world->rank ^ 1;

	if (peer >= world->ranks)
		return;
	if (world->rank & 1) {
		MPI_Recv(world->recv[0], (int)world->bytes, MPI_BYTE, peer, TAG_TASK, world->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(world, 0, peer, 0);
	}
	make(world, 0, 0, world->bytes);
	MPI_Send(world->send[0], (int)world->bytes, MPI_BYTE, peer, TAG_TASK, world->comm);
	if (!(world->rank & 1)) {
		MPI_Recv(world->recv[0], (int)world->bytes, MPI_BYTE, peer, TAG_TASK, world->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(world, 0, peer, 0);
	}
}

/*
 * The receives of a step are posted before any rank can begin that step: a rank posts them before
 * it sends its messages of the step before, for which the others wait. Even and odd steps have
 * buffers and requests of their own. Returns the first of a step.
 */
static int turn(long step)
{
	return (int)(step & 1) * FEW;
}

static void post_ahead(struct world *world, long step)
{
	for (int i = 0; i < FEW; i++)
		irecv(world, turn(step) + i, world->left, TAG_MANY,
		      &world->request[turn(step) + i]);
}

static void posted_begin(struct world *world)
{
	post_ahead(world, 0);
	MPI_Barrier(world->comm);
}

static void posted_step(struct world *world)
{
	MPI_Request *sent = world->request + 2 * FEW;
	int at = turn(world->step);

	post_ahead(world, world->step + 1);
	for (int i = 0; i < FEW; i++)
		isend(world, i, i, world->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, world->request + at, MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
	for (int i = 0; i < FEW; i++)
		compare_whole(world, at + i, world->left, i);
}

/* Sends the messages for the receives that were posted ahead. */
static void posted_end(struct world *world)
{
	MPI_Request *sent = world->request + 2 * FEW;

	for (int i = 0; i < FEW; i++)
		isend(world, i, i, world->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, world->request + turn(world->step), MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
}

static void exchange(struct world *world, int left_source, uint64_t iterations)
{
	irecv(world, 0, left_source, TAG_RIGHT, &world->request[0]);
	irecv(world, 1, world->right, TAG_LEFT, &world->request[1]);
	isend(world, 0, 0, world->right, TAG_RIGHT, &world->request[2]);
	isend(world, 1, 1, world->left, TAG_LEFT, &world->request[3]);
	work(iterations);
	wait_all(world, 4);
	compare_whole(world, 0, world->left, 0);
	compare_whole(world, 1, world->right, 1);
}

static void halo_step(struct world *world)
{
	exchange(world, world->left, 0);
}

/* Computes the inner part while the borders are under way. */
static void stencil_step(struct world *world)
{
	exchange(world, world->left, world->work);
}

static void seldom_step(struct world *world)
{
	exchange(world, world->step % WILD_EVERY ? world->left : MPI_ANY_SOURCE, 0);
}

/* Ends the program if there is no slot for each rank. */
static void slots_begin(struct world *world)
{
	if (world->ranks > PATTERN_SLOTS)
		die("this pattern wants at most %d ranks, not %d; choose --patterns", PATTERN_SLOTS,
		    world->ranks);
}

/* Uses the slots as one buffer, because they are contiguous. */
static void alltoall_step(struct world *world)
{
	for (int i = 0; i < world->ranks; i++)
		make(world, i, i, world->bytes);
	MPI_Alltoall(world->send[0], (int)world->bytes, MPI_BYTE, world->recv[0], (int)world->bytes,
		     MPI_BYTE, world->comm);
	for (int i = 0; i < world->ranks; i++)
		compare_whole(world, i, i, world->rank);
}

static void tags_begin(struct world *world)
{
	world->next_tag = TAG_MANY;
}

static void tags_step(struct world *world)
{
	if (world->next_tag > world->last_tag - PATTERN_WINDOW)
		world->next_tag = TAG_MANY;
	for (int i = 0; i < PATTERN_WINDOW; i++)
		irecv(world, i, world->left, world->next_tag + i, &world->request[i]);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		isend(world, i, i, world->right, world->next_tag + i,
		      &world->request[PATTERN_WINDOW + i]);
	wait_all(world, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(world, i, world->left, i);
	world->next_tag += PATTERN_WINDOW;
}

/* ---------------------------------------------------------------- receives that come late */

/* Sends a message of each tag. A random half of the receives is posted before the left neighbour's
 * messages have surely come, and the other half afterwards, all in another order than the
 * messages. */
static void random_step(struct world *world)
{
	int order[PATTERN_WINDOW], early = PATTERN_WINDOW / 2;

	shuffle(world, order, PATTERN_WINDOW);
	for (int i = 0; i < early; i++)
		irecv(world, order[i], world->left, TAG_MANY + order[i], &world->request[order[i]]);
	for (int i = 0; i < PATTERN_WINDOW; i++) {
		int k = (int)(world->step * 3 + i * 5) % PATTERN_WINDOW;

		isend(world, k, k, world->right, TAG_MANY + k, &world->request[PATTERN_WINDOW + k]);
	}
	pass_token(world);
	for (int i = early; i < PATTERN_WINDOW; i++)
		irecv(world, order[i], world->left, TAG_MANY + order[i], &world->request[order[i]]);
	wait_all(world, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(world, i, world->left, i);
}

static void receive_late(struct world *world, void (*meanwhile)(struct world *world))
{
	for (int i = 0; i < FEW; i++)
		isend(world, i, i, world->right, TAG_MANY, &world->request[FEW + i]);
	meanwhile(world);
	for (int i = 0; i < FEW; i++)
		irecv(world, i, world->left, TAG_MANY, &world->request[i]);
	wait_all(world, 2 * FEW);
	for (int i = 0; i < FEW; i++)
		compare_whole(world, i, world->left, i);
}

static void token(struct world *world)
{
	pass_token(world);
}

static void late_step(struct world *world)
{
	receive_late(world, token);
}

static void compute(struct world *world)
{
	work(world->work);
}

static void lazy_step(struct world *world)
{
	receive_late(world, compute);
}

static void compute_at_random(struct world *world)
{
	work((uint64_t)(random_below(world, JITTER_NS) / world->work_ns));
}

static void jitter_step(struct world *world)
{
	receive_late(world, compute_at_random);
}

/* ---------------------------------------------------------------- wildcards and probes */

static void master(struct world *world)
{
	int left = FEW * (world->ranks - 1);
	int done[PATTERN_SLOTS] = {0};

	while (left-- > 0) {
		MPI_Status status;
		int from;

		MPI_Recv(world->recv[0], (int)world->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT,
			 world->comm, &status);
		from = status.MPI_SOURCE;
		compare_whole(world, 0, from, done[from]);
		make(world, 0, done[from]++, world->bytes);
		MPI_Send(world->send[0], (int)world->bytes, MPI_BYTE, from, TAG_TASK, world->comm);
	}
}

static void worker(struct world *world)
{
	for (int i = 0; i < FEW; i++) {
		irecv(world, 0, 0, TAG_TASK, &world->request[0]);
		make(world, 0, i, world->bytes);
		MPI_Send(world->send[0], (int)world->bytes, MPI_BYTE, 0, TAG_RESULT, world->comm);
		wait_all(world, 1);
		compare_whole(world, 0, 0, i);
	}
}

static void master_step(struct world *world)
{
	if (world->rank)
		worker(world);
	else
		master(world);
	/* Keeps a quick worker's result of the next step from being taken in this one. */
	if (world->ranks > 2)
		MPI_Barrier(world->comm);
}

/* Returns the length of a step's message `index`. Lengths differ, because a program probes for an
 * unknown length. */
static size_t length_of(const struct world *world, int index)
{
	return world->bytes - (size_t)index;
}

static void send_lengths(struct world *world)
{
	for (int i = 0; i < FEW; i++) {
		make(world, i, i, length_of(world, i));
		MPI_Isend(world->send[i], (int)length_of(world, i), MPI_BYTE, world->right,
			  TAG_MANY + i, world->comm, &world->request[i]);
	}
}

static void check_length(const struct world *world, const MPI_Status *status, int index)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != world->left || status->MPI_TAG != TAG_MANY + index ||
	    (size_t)count != length_of(world, index))
		die("rank %d, step %ld: probed %d bytes with tag %d from %d", world->rank,
		    world->step, count, status->MPI_TAG, status->MPI_SOURCE);
}

/* Probes for anything. Messages of one sender are found in their order, so a step finds its own. */
static void probe_step(struct world *world)
{
	send_lengths(world);
	for (int i = 0; i < FEW; i++) {
		MPI_Status status;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, world->comm, &status);
		check_length(world, &status, i);
		MPI_Recv(world->recv[i], (int)length_of(world, i), MPI_BYTE, world->left,
			 TAG_MANY + i, world->comm, MPI_STATUS_IGNORE);
		compare(world, i, world->left, i, length_of(world, i));
	}
	wait_all(world, FEW);
}

static void mprobe_step(struct world *world)
{
	send_lengths(world);
	for (int i = 0; i < FEW; i++) {
		MPI_Message message;
		MPI_Status status;
		int there = 0;

		while (!there)
			MPI_Improbe(world->left, TAG_MANY + i, world->comm, &there, &message,
				    &status);
		check_length(world, &status, i);
		MPI_Mrecv(world->recv[i], (int)length_of(world, i), MPI_BYTE, &message,
			  MPI_STATUS_IGNORE);
		compare(world, i, world->left, i, length_of(world, i));
	}
	wait_all(world, FEW);
}

/* ---------------------------------------------------------------- all */

const struct pattern patterns[] = {
	{"pingpong", "blocking, to and fro between two ranks", 1, NULL, pingpong_step, NULL},
	{"posted", "a ring; receives posted a step ahead", FEW, posted_begin, posted_step,
	 posted_end},
	{"halo", "borders with both neighbours in a ring", 2, NULL, halo_step, NULL},
	{"stencil", "halo, with computation between sending and waiting", 2, NULL, stencil_step,
	 NULL},
	{"alltoall", "MPI_Alltoall", 1, slots_begin, alltoall_step, NULL},
	{"tags", "a ring; each message has a tag of its own, never used before", PATTERN_WINDOW,
	 tags_begin, tags_step, NULL},
	{"random", "a ring; half of the receives late, all in random order", PATTERN_WINDOW, NULL,
	 random_step, NULL},
	{"late", "a ring; receives posted when the messages are there", FEW, NULL, late_step, NULL},
	{"lazy", "a ring; receives posted after some computation", FEW, NULL, lazy_step, NULL},
	{"jitter", "a ring; receives late by 0 to 20 us at random", FEW, NULL, jitter_step, NULL},
	{"master", "results by MPI_ANY_SOURCE, each answered with a task", FEW, slots_begin,
	 master_step, NULL},
	{"seldom", "halo; one receive in 32 has MPI_ANY_SOURCE", 2, NULL, seldom_step, NULL},
	{"probe", "MPI_Probe for anything, then a receive of that", FEW, NULL, probe_step, NULL},
	{"mprobe", "MPI_Improbe until it is there, then MPI_Mrecv", FEW, NULL, mprobe_step, NULL},
};
const size_t npatterns = sizeof(patterns) / sizeof(patterns[0]);
