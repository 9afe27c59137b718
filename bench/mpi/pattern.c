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
static void make(const struct pattern_state *state, int slot, int index, size_t bytes)
{
	uint32_t word = first_word(state->rank, state->step, index);

	for (size_t i = 0; state->check && i < bytes; i++)
		state->send[slot][i] = (char)byte_at(word, i);
}

/* Ends the program unless a slot has the data of the source's message `index` in this step. */
static void compare(const struct pattern_state *state, int slot, int source, int index,
		    size_t bytes)
{
	uint32_t word = first_word(source, state->step, index);

	for (size_t i = 0; state->check && i < bytes; i++)
		if ((unsigned char)state->recv[slot][i] != byte_at(word, i))
			die("rank %d, step %ld: message %d from %d is wrong at byte %zu",
			    state->rank, state->step, index, source, i);
}

static void compare_whole(const struct pattern_state *state, int slot, int source, int index)
{
	compare(state, slot, source, index, state->bytes);
}

/* ---------------------------------------------------------------- messages */

static void isend(struct pattern_state *state, int slot, int index, int to, int tag,
		  MPI_Request *request)
{
	make(state, slot, index, state->bytes);
	MPI_Isend(state->send[slot], (int)state->bytes, MPI_BYTE, to, tag, state->comm, request);
}

static void irecv(struct pattern_state *state, int slot, int from, int tag, MPI_Request *request)
{
	MPI_Irecv(state->recv[slot], (int)state->bytes, MPI_BYTE, from, tag, state->comm, request);
}

static void wait_all(struct pattern_state *state, int n)
{
	MPI_Waitall(n, state->request, MPI_STATUSES_IGNORE);
}

/* Returns when the left neighbour's token has come. Its earlier messages have come by then, unless
 * they wait for their receives. */
static void pass_token(const struct pattern_state *state)
{
	MPI_Request sent;

	MPI_Isend(NULL, 0, MPI_BYTE, state->right, TAG_TOKEN, state->comm, &sent);
	MPI_Recv(NULL, 0, MPI_BYTE, state->left, TAG_TOKEN, state->comm, MPI_STATUS_IGNORE);
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static unsigned random_below(struct pattern_state *state, unsigned limit)
{
	state->random = state->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state->random >> 33) % limit;
}

static void shuffle(struct pattern_state *state, int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)random_below(state, (unsigned)i + 1), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

/* ---------------------------------------------------------------- receives in time */

static void pingpong_step(struct pattern_state *state)
{
	int peer = state->rank ^ 1;

	if (peer >= state->ranks)
		return;
	if (state->rank & 1) {
		MPI_Recv(state->recv[0], (int)state->bytes, MPI_BYTE, peer, TAG_TASK, state->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(state, 0, peer, 0);
	}
	make(state, 0, 0, state->bytes);
	MPI_Send(state->send[0], (int)state->bytes, MPI_BYTE, peer, TAG_TASK, state->comm);
	if (!(state->rank & 1)) {
		MPI_Recv(state->recv[0], (int)state->bytes, MPI_BYTE, peer, TAG_TASK, state->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(state, 0, peer, 0);
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

static void post_ahead(struct pattern_state *state, long step)
{
	for (int i = 0; i < FEW; i++)
		irecv(state, turn(step) + i, state->left, TAG_MANY,
		      &state->request[turn(step) + i]);
}

static void posted_begin(struct pattern_state *state)
{
	post_ahead(state, 0);
	MPI_Barrier(state->comm);
}

static void posted_step(struct pattern_state *state)
{
	MPI_Request *sent = state->request + 2 * FEW;
	int at = turn(state->step);

	post_ahead(state, state->step + 1);
	for (int i = 0; i < FEW; i++)
		isend(state, i, i, state->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, state->request + at, MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
	for (int i = 0; i < FEW; i++)
		compare_whole(state, at + i, state->left, i);
}

/* Sends the messages for the receives that were posted ahead. */
static void posted_end(struct pattern_state *state)
{
	MPI_Request *sent = state->request + 2 * FEW;

	for (int i = 0; i < FEW; i++)
		isend(state, i, i, state->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, state->request + turn(state->step), MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
}

static void exchange(struct pattern_state *state, int left_source, uint64_t iterations)
{
	irecv(state, 0, left_source, TAG_RIGHT, &state->request[0]);
	irecv(state, 1, state->right, TAG_LEFT, &state->request[1]);
	isend(state, 0, 0, state->right, TAG_RIGHT, &state->request[2]);
	isend(state, 1, 1, state->left, TAG_LEFT, &state->request[3]);
	work(iterations);
	wait_all(state, 4);
	compare_whole(state, 0, state->left, 0);
	compare_whole(state, 1, state->right, 1);
}

static void halo_step(struct pattern_state *state)
{
	exchange(state, state->left, 0);
}

/* Computes the inner part while the borders are under way. */
static void stencil_step(struct pattern_state *state)
{
	exchange(state, state->left, state->work);
}

static void seldom_step(struct pattern_state *state)
{
	exchange(state, state->step % WILD_EVERY ? state->left : MPI_ANY_SOURCE, 0);
}

/* Ends the program if there is no slot for each rank. */
static void slots_begin(struct pattern_state *state)
{
	if (state->ranks > PATTERN_SLOTS)
		die("this pattern wants at most %d ranks, not %d; choose --patterns", PATTERN_SLOTS,
		    state->ranks);
}

/* Uses the slots as one buffer, because they are contiguous. */
static void alltoall_step(struct pattern_state *state)
{
	for (int i = 0; i < state->ranks; i++)
		make(state, i, i, state->bytes);
	MPI_Alltoall(state->send[0], (int)state->bytes, MPI_BYTE, state->recv[0], (int)state->bytes,
		     MPI_BYTE, state->comm);
	for (int i = 0; i < state->ranks; i++)
		compare_whole(state, i, i, state->rank);
}

static void tags_begin(struct pattern_state *state)
{
	state->next_tag = TAG_MANY;
}

static void tags_step(struct pattern_state *state)
{
	if (state->next_tag > state->last_tag - PATTERN_WINDOW)
		state->next_tag = TAG_MANY;
	for (int i = 0; i < PATTERN_WINDOW; i++)
		irecv(state, i, state->left, state->next_tag + i, &state->request[i]);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		isend(state, i, i, state->right, state->next_tag + i,
		      &state->request[PATTERN_WINDOW + i]);
	wait_all(state, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(state, i, state->left, i);
	state->next_tag += PATTERN_WINDOW;
}

/* ---------------------------------------------------------------- receives that come late */

/* Sends a message of each tag. A random half of the receives is posted before the left neighbour's
 * messages have surely come, and the other half afterwards, all in another order than the
 * messages. */
static void random_step(struct pattern_state *state)
{
	int order[PATTERN_WINDOW], early = PATTERN_WINDOW / 2;

	shuffle(state, order, PATTERN_WINDOW);
	for (int i = 0; i < early; i++)
		irecv(state, order[i], state->left, TAG_MANY + order[i], &state->request[order[i]]);
	for (int i = 0; i < PATTERN_WINDOW; i++) {
		int k = (int)(state->step * 3 + i * 5) % PATTERN_WINDOW;

		isend(state, k, k, state->right, TAG_MANY + k, &state->request[PATTERN_WINDOW + k]);
	}
	pass_token(state);
	for (int i = early; i < PATTERN_WINDOW; i++)
		irecv(state, order[i], state->left, TAG_MANY + order[i], &state->request[order[i]]);
	wait_all(state, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(state, i, state->left, i);
}

static void receive_late(struct pattern_state *state,
			 void (*meanwhile)(struct pattern_state *state))
{
	for (int i = 0; i < FEW; i++)
		isend(state, i, i, state->right, TAG_MANY, &state->request[FEW + i]);
	meanwhile(state);
	for (int i = 0; i < FEW; i++)
		irecv(state, i, state->left, TAG_MANY, &state->request[i]);
	wait_all(state, 2 * FEW);
	for (int i = 0; i < FEW; i++)
		compare_whole(state, i, state->left, i);
}

static void token(struct pattern_state *state)
{
	pass_token(state);
}

static void late_step(struct pattern_state *state)
{
	receive_late(state, token);
}

static void compute(struct pattern_state *state)
{
	work(state->work);
}

static void lazy_step(struct pattern_state *state)
{
	receive_late(state, compute);
}

static void compute_at_random(struct pattern_state *state)
{
	work((uint64_t)(random_below(state, JITTER_NS) / state->work_ns));
}

static void jitter_step(struct pattern_state *state)
{
	receive_late(state, compute_at_random);
}

/* ---------------------------------------------------------------- wildcards and probes */

static void master(struct pattern_state *state)
{
	int left = FEW * (state->ranks - 1);
	int done[PATTERN_SLOTS] = {0};

	while (left-- > 0) {
		MPI_Status status;
		int from;

		MPI_Recv(state->recv[0], (int)state->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT,
			 state->comm, &status);
		from = status.MPI_SOURCE;
		compare_whole(state, 0, from, done[from]);
		make(state, 0, done[from]++, state->bytes);
		MPI_Send(state->send[0], (int)state->bytes, MPI_BYTE, from, TAG_TASK, state->comm);
	}
}

static void worker(struct pattern_state *state)
{
	for (int i = 0; i < FEW; i++) {
		irecv(state, 0, 0, TAG_TASK, &state->request[0]);
		make(state, 0, i, state->bytes);
		MPI_Send(state->send[0], (int)state->bytes, MPI_BYTE, 0, TAG_RESULT, state->comm);
		wait_all(state, 1);
		compare_whole(state, 0, 0, i);
	}
}

static void master_step(struct pattern_state *state)
{
	if (state->rank)
		worker(state);
	else
		master(state);
	/* Keeps a quick worker's result of the next step from being taken in this one. */
	if (state->ranks > 2)
		MPI_Barrier(state->comm);
}

/* Returns the length of a step's message `index`. Lengths differ, because a program probes for an
 * unknown length. */
static size_t length_of(const struct pattern_state *state, int index)
{
	return state->bytes - (size_t)index;
}

static void send_lengths(struct pattern_state *state)
{
	for (int i = 0; i < FEW; i++) {
		make(state, i, i, length_of(state, i));
		MPI_Isend(state->send[i], (int)length_of(state, i), MPI_BYTE, state->right,
			  TAG_MANY + i, state->comm, &state->request[i]);
	}
}

static void check_length(const struct pattern_state *state, const MPI_Status *status, int index)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != state->left || status->MPI_TAG != TAG_MANY + index ||
	    (size_t)count != length_of(state, index))
		die("rank %d, step %ld: probed %d bytes with tag %d from %d", state->rank,
		    state->step, count, status->MPI_TAG, status->MPI_SOURCE);
}

/* Probes for anything. Messages of one sender are found in their order, so a step finds its own. */
static void probe_step(struct pattern_state *state)
{
	send_lengths(state);
	for (int i = 0; i < FEW; i++) {
		MPI_Status status;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, state->comm, &status);
		check_length(state, &status, i);
		MPI_Recv(state->recv[i], (int)length_of(state, i), MPI_BYTE, state->left,
			 TAG_MANY + i, state->comm, MPI_STATUS_IGNORE);
		compare(state, i, state->left, i, length_of(state, i));
	}
	wait_all(state, FEW);
}

static void mprobe_step(struct pattern_state *state)
{
	send_lengths(state);
	for (int i = 0; i < FEW; i++) {
		MPI_Message message;
		MPI_Status status;
		int there = 0;

		while (!there)
			MPI_Improbe(state->left, TAG_MANY + i, state->comm, &there, &message,
				    &status);
		check_length(state, &status, i);
		MPI_Mrecv(state->recv[i], (int)length_of(state, i), MPI_BYTE, &message,
			  MPI_STATUS_IGNORE);
		compare(state, i, state->left, i, length_of(state, i));
	}
	wait_all(state, FEW);
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
