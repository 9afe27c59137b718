/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#include "clock.h"
#include "pair.h"

/* Tags of data, as many as a pattern wants, and of what keeps ranks in step. */
enum { TAG_LEFT = 1, TAG_RIGHT, TAG_RESULT, TAG_TASK, TAG_TOKEN, TAG_MANY = 100 };

#define FEW        4     /* messages of a step, where order matters less than latency */
#define WILD_EVERY 16    /* seldom: steps of which one receives with a wildcard */
#define JITTER_NS  20000 /* jitter: most that a receive is late */

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

/* The index-th message of this step, from this rank, of that length. */
static void make(const struct world *w, int slot, int index, size_t bytes)
{
	uint32_t word = first_word(w->rank, w->step, index);

	for (size_t i = 0; w->check && i < bytes; i++)
		w->send[slot][i] = (char)byte_at(word, i);
}

static void compare(const struct world *w, int slot, int source, int index, size_t bytes)
{
	uint32_t word = first_word(source, w->step, index);

	for (size_t i = 0; w->check && i < bytes; i++)
		if ((unsigned char)w->recv[slot][i] != byte_at(word, i))
			die("rank %d, step %ld: message %d from %d is wrong at byte %zu", w->rank,
			    w->step, index, source, i);
}

static void compare_whole(const struct world *w, int slot, int source, int index)
{
	compare(w, slot, source, index, w->bytes);
}

/* ---------------------------------------------------------------- messages */

static void isend(struct world *w, int slot, int index, int to, int tag, MPI_Request *request)
{
	make(w, slot, index, w->bytes);
	MPI_Isend(w->send[slot], (int)w->bytes, MPI_BYTE, to, tag, w->comm, request);
}

static void irecv(struct world *w, int slot, int from, int tag, MPI_Request *request)
{
	MPI_Irecv(w->recv[slot], (int)w->bytes, MPI_BYTE, from, tag, w->comm, request);
}

static void wait_all(struct world *w, int n)
{
	MPI_Waitall(n, w->request, MPI_STATUSES_IGNORE);
}

/* Once the left neighbour's token is here, so is all that it has sent before; or it could be. */
static void pass_token(const struct world *w)
{
	MPI_Request sent;

	MPI_Isend(NULL, 0, MPI_BYTE, w->right, TAG_TOKEN, w->comm, &sent);
	MPI_Recv(NULL, 0, MPI_BYTE, w->left, TAG_TOKEN, w->comm, MPI_STATUS_IGNORE);
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static unsigned random_below(struct world *w, unsigned limit)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % limit;
}

static void shuffle(struct world *w, int *order, int n)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = (int)random_below(w, (unsigned)i + 1), was = order[i];

		order[i] = order[j];
		order[j] = was;
	}
}

/* ---------------------------------------------------------------- receives in time */

static void pingpong_step(struct world *w)
{
	int peer = w->rank ^ 1;

	if (peer >= w->ranks)
		return;
	if (w->rank & 1) {
		MPI_Recv(w->recv[0], (int)w->bytes, MPI_BYTE, peer, TAG_TASK, w->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(w, 0, peer, 0);
	}
	make(w, 0, 0, w->bytes);
	MPI_Send(w->send[0], (int)w->bytes, MPI_BYTE, peer, TAG_TASK, w->comm);
	if (!(w->rank & 1)) {
		MPI_Recv(w->recv[0], (int)w->bytes, MPI_BYTE, peer, TAG_TASK, w->comm,
			 MPI_STATUS_IGNORE);
		compare_whole(w, 0, peer, 0);
	}
}

/* The receives of a step are there before any rank can begin it: they are posted before this rank
 * sends what the others wait for in the step before. They take buffers, and places in the array of
 * requests, in turn. */
static int turn(long step)
{
	return (int)(step & 1) * FEW;
}

static void post_ahead(struct world *w, long step)
{
	for (int i = 0; i < FEW; i++)
		irecv(w, turn(step) + i, w->left, TAG_MANY, &w->request[turn(step) + i]);
}

static void posted_begin(struct world *w)
{
	post_ahead(w, 0);
	MPI_Barrier(w->comm);
}

static void posted_step(struct world *w)
{
	MPI_Request *sent = w->request + 2 * FEW;
	int at = turn(w->step);

	post_ahead(w, w->step + 1);
	for (int i = 0; i < FEW; i++)
		isend(w, i, i, w->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, w->request + at, MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
	for (int i = 0; i < FEW; i++)
		compare_whole(w, at + i, w->left, i);
}

/* For the receives that were posted ahead. */
static void posted_end(struct world *w)
{
	MPI_Request *sent = w->request + 2 * FEW;

	for (int i = 0; i < FEW; i++)
		isend(w, i, i, w->right, TAG_MANY, &sent[i]);
	MPI_Waitall(FEW, w->request + turn(w->step), MPI_STATUSES_IGNORE);
	MPI_Waitall(FEW, sent, MPI_STATUSES_IGNORE);
}

static void exchange(struct world *w, int left_source, uint64_t iterations)
{
	irecv(w, 0, left_source, TAG_RIGHT, &w->request[0]);
	irecv(w, 1, w->right, TAG_LEFT, &w->request[1]);
	isend(w, 0, 0, w->right, TAG_RIGHT, &w->request[2]);
	isend(w, 1, 1, w->left, TAG_LEFT, &w->request[3]);
	work(iterations);
	wait_all(w, 4);
	compare_whole(w, 0, w->left, 0);
	compare_whole(w, 1, w->right, 1);
}

static void halo_step(struct world *w)
{
	exchange(w, w->left, 0);
}

/* The inner part is computed while the borders are under way. */
static void stencil_step(struct world *w)
{
	exchange(w, w->left, w->work);
}

static void seldom_step(struct world *w)
{
	exchange(w, w->step % WILD_EVERY ? w->left : MPI_ANY_SOURCE, 0);
}

/* The slots of a side lie behind one another. */
static void alltoall_step(struct world *w)
{
	for (int i = 0; i < w->ranks; i++)
		make(w, i, i, w->bytes);
	MPI_Alltoall(w->send[0], (int)w->bytes, MPI_BYTE, w->recv[0], (int)w->bytes, MPI_BYTE,
		     w->comm);
	for (int i = 0; i < w->ranks; i++)
		compare_whole(w, i, i, w->rank);
}

static void tags_begin(struct world *w)
{
	w->next_tag = TAG_MANY;
}

static void tags_step(struct world *w)
{
	if (w->next_tag > w->last_tag - PATTERN_WINDOW)
		w->next_tag = TAG_MANY;
	for (int i = 0; i < PATTERN_WINDOW; i++)
		irecv(w, i, w->left, w->next_tag + i, &w->request[i]);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		isend(w, i, i, w->right, w->next_tag + i, &w->request[PATTERN_WINDOW + i]);
	wait_all(w, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(w, i, w->left, i);
	w->next_tag += PATTERN_WINDOW;
}

/* ---------------------------------------------------------------- receives that come late */

/* Each tag has its message; a random half of the receives comes before those of the left neighbour
 * are known to be here, and all come in another order than the messages. */
static void random_step(struct world *w)
{
	int order[PATTERN_WINDOW], early = PATTERN_WINDOW / 2;

	shuffle(w, order, PATTERN_WINDOW);
	for (int i = 0; i < early; i++)
		irecv(w, order[i], w->left, TAG_MANY + order[i], &w->request[order[i]]);
	for (int i = 0; i < PATTERN_WINDOW; i++) {
		int k = (int)(w->step * 3 + i * 5) % PATTERN_WINDOW;

		isend(w, k, k, w->right, TAG_MANY + k, &w->request[PATTERN_WINDOW + k]);
	}
	pass_token(w);
	for (int i = early; i < PATTERN_WINDOW; i++)
		irecv(w, order[i], w->left, TAG_MANY + order[i], &w->request[order[i]]);
	wait_all(w, 2 * PATTERN_WINDOW);
	for (int i = 0; i < PATTERN_WINDOW; i++)
		compare_whole(w, i, w->left, i);
}

static void receive_late(struct world *w, void (*meanwhile)(struct world *w))
{
	for (int i = 0; i < FEW; i++)
		isend(w, i, i, w->right, TAG_MANY, &w->request[FEW + i]);
	meanwhile(w);
	for (int i = 0; i < FEW; i++)
		irecv(w, i, w->left, TAG_MANY, &w->request[i]);
	wait_all(w, 2 * FEW);
	for (int i = 0; i < FEW; i++)
		compare_whole(w, i, w->left, i);
}

static void token(struct world *w)
{
	pass_token(w);
}

static void late_step(struct world *w)
{
	receive_late(w, token);
}

static void compute(struct world *w)
{
	work(w->work);
}

static void lazy_step(struct world *w)
{
	receive_late(w, compute);
}

static void compute_at_random(struct world *w)
{
	work((uint64_t)(random_below(w, JITTER_NS) / w->work_ns));
}

static void jitter_step(struct world *w)
{
	receive_late(w, compute_at_random);
}

/* ---------------------------------------------------------------- wildcards and probes */

static void master(struct world *w)
{
	int left = FEW * (w->ranks - 1);
	int done[PATTERN_SLOTS] = {0};

	while (left-- > 0) {
		MPI_Status status;
		int from;

		MPI_Recv(w->recv[0], (int)w->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT, w->comm,
			 &status);
		from = status.MPI_SOURCE;
		compare_whole(w, 0, from, done[from]);
		make(w, 0, done[from]++, w->bytes);
		MPI_Send(w->send[0], (int)w->bytes, MPI_BYTE, from, TAG_TASK, w->comm);
	}
}

static void worker(struct world *w)
{
	for (int i = 0; i < FEW; i++) {
		irecv(w, 0, 0, TAG_TASK, &w->request[0]);
		make(w, 0, i, w->bytes);
		MPI_Send(w->send[0], (int)w->bytes, MPI_BYTE, 0, TAG_RESULT, w->comm);
		wait_all(w, 1);
		compare_whole(w, 0, 0, i);
	}
}

static void master_step(struct world *w)
{
	if (w->rank)
		worker(w);
	else
		master(w);
	/* Keeps a quick worker's result of the next step from being taken in this one. */
	if (w->ranks > 2)
		MPI_Barrier(w->comm);
}

/* Lengths differ: that is what one probes for. */
static size_t length_of(const struct world *w, int index)
{
	return w->bytes - (size_t)index;
}

static void send_lengths(struct world *w)
{
	for (int i = 0; i < FEW; i++) {
		make(w, i, i, length_of(w, i));
		MPI_Isend(w->send[i], (int)length_of(w, i), MPI_BYTE, w->right, TAG_MANY + i,
			  w->comm, &w->request[i]);
	}
}

static void check_length(const struct world *w, const MPI_Status *status, int index)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != w->left || status->MPI_TAG != TAG_MANY + index ||
	    (size_t)count != length_of(w, index))
		die("rank %d, step %ld: probed %d bytes with tag %d from %d", w->rank, w->step,
		    count, status->MPI_TAG, status->MPI_SOURCE);
}

/* Messages of one sender are probed in their order, so a step takes its own. */
static void probe_step(struct world *w)
{
	send_lengths(w);
	for (int i = 0; i < FEW; i++) {
		MPI_Status status;

		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &status);
		check_length(w, &status, i);
		MPI_Recv(w->recv[i], (int)length_of(w, i), MPI_BYTE, w->left, TAG_MANY + i, w->comm,
			 MPI_STATUS_IGNORE);
		compare(w, i, w->left, i, length_of(w, i));
	}
	wait_all(w, FEW);
}

static void mprobe_step(struct world *w)
{
	send_lengths(w);
	for (int i = 0; i < FEW; i++) {
		MPI_Message message;
		MPI_Status status;
		int there = 0;

		while (!there)
			MPI_Improbe(w->left, TAG_MANY + i, w->comm, &there, &message, &status);
		check_length(w, &status, i);
		MPI_Mrecv(w->recv[i], (int)length_of(w, i), MPI_BYTE, &message, MPI_STATUS_IGNORE);
		compare(w, i, w->left, i, length_of(w, i));
	}
	wait_all(w, FEW);
}

/* ---------------------------------------------------------------- all */

const struct pattern patterns[] = {
	{"pingpong", "blocking, to and fro between two ranks", 1, NULL, pingpong_step, NULL},
	{"posted", "a ring; receives posted a step ahead", FEW, posted_begin, posted_step,
	 posted_end},
	{"halo", "borders with both neighbours in a ring", 2, NULL, halo_step, NULL},
	{"stencil", "halo, with computation between sending and waiting", 2, NULL, stencil_step,
	 NULL},
	{"alltoall", "MPI_Alltoall", 1, NULL, alltoall_step, NULL},
	{"tags", "a ring; each message has a tag of its own, never used before", PATTERN_WINDOW,
	 tags_begin, tags_step, NULL},
	{"random", "a ring; half of the receives late, all in random order", PATTERN_WINDOW, NULL,
	 random_step, NULL},
	{"late", "a ring; receives posted when the messages are there", FEW, NULL, late_step, NULL},
	{"lazy", "a ring; receives posted after some computation", FEW, NULL, lazy_step, NULL},
	{"jitter", "a ring; receives late by 0 to 20 us at random", FEW, NULL, jitter_step, NULL},
	{"master", "results by MPI_ANY_SOURCE, each answered with a task", FEW, NULL, master_step,
	 NULL},
	{"seldom", "halo; one receive in 32 has MPI_ANY_SOURCE", 2, NULL, seldom_step, NULL},
	{"probe", "MPI_Probe for anything, then a receive of that", FEW, NULL, probe_step, NULL},
	{"mprobe", "MPI_Improbe until it is there, then MPI_Mrecv", FEW, NULL, mprobe_step, NULL},
};
const size_t npatterns = sizeof(patterns) / sizeof(patterns[0]);
