/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - windows of 8-byte messages from rank 0 to rank 1, for steps.sh, which counts the
 * instructions of each step: of each function here whose name begins with "step_".
 *
 * Arguments: a file by which the ranks take turns without messages; a kind of windows; the messages
 * of a window; the number of further receives, whose messages come at the end of all. Receives are
 * posted before their messages are sent, but for "early". They are waited for with MPI_Waitall
 * ("posted"), MPI_Waitany, MPI_Testsome, or MPI_Test after they have ended.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { LEN = 8, WINDOWS = 20, MOST = 1024, TAG = 1, LAST_TAG = 2 };

static unsigned char data[MOST][LEN];
static MPI_Request requests[MOST]; /* of a window, and the further ones */
static int window, further, indices[MOST];

/* ---- the steps ---- */

#define STEP(name)                                 \
	__attribute__((noinline)) void name(void); \
	void name(void)

STEP(step_isend)
{
	for (int i = 0; i < window; i++)
		MPI_Isend(data[i], LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
}

STEP(step_send)
{
	for (int i = 0; i < window; i++)
		MPI_Send(data[i], LEN, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

STEP(step_irecv)
{
	for (int i = 0; i < window; i++)
		MPI_Irecv(data[i], LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
}

/* Receives messages that are here already. */
STEP(step_recv)
{
	for (int i = 0; i < window; i++)
		MPI_Recv(data[i], LEN, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

STEP(step_waitall)
{
	MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

/* Tests requests that are complete. */
STEP(step_test)
{
	int flag;

	for (int i = 0; i < window; i++)
		MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
}

STEP(step_waitany)
{
	int index;

	for (int i = 0; i < window; i++)
		MPI_Waitany(window + further, requests, &index, MPI_STATUS_IGNORE);
}

STEP(step_testsome)
{
	int n = 0;

	for (int done = 0; done < window; done += n)
		MPI_Testsome(window + further, requests, &n, indices, MPI_STATUSES_IGNORE);
}

/* Looks at receives whose messages don't come. */
STEP(step_idle)
{
	int n;

	for (int i = 0; i < window; i++)
		MPI_Testsome(window + further, requests, &n, indices, MPI_STATUSES_IGNORE);
}

/* Takes in messages whose receives are not posted. */
STEP(step_poll)
{
	int flag;

	for (int i = 0; i < window / 4 + 2; i++)
		MPI_Test(&requests[window], &flag, MPI_STATUS_IGNORE);
}

/* Runs a step with nothing in the data cache, so that the lines that the step touches can be
 * counted. */
static void run(void (*step)(void))
{
	static unsigned char other[1 << 20];

	memset(other, other[0] + 1, sizeof(other));
	step();
}

/* ---- turns ---- */

static atomic_uint *turn; /* in the file; odd: rank 0's */

static void open_turns(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	t_holds(fd >= 0 && !ftruncate(fd, sizeof(*turn)));
	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t_holds(turn != MAP_FAILED);
	close(fd);
}

static void await_turn(void)
{
	while (atomic_load(turn) % 2 == (unsigned)t_rank)
		sched_yield();
}

static void give_turn(void)
{
	atomic_fetch_add(turn, 1);
}

/* ---- windows ---- */

enum kind { POSTED, EARLY, ANY, SOME, TESTED, KINDS };

static const char *const kinds[KINDS] = {"posted", "early", "any", "some", "tested"};

static void send_window(enum kind kind)
{
	await_turn(); /* rank 1 has posted its receives */
	if (kind == EARLY) {
		run(step_send);
	} else {
		run(step_isend);
		MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
	}
	give_turn();
}

/* Waits until all requests have ended, which stay. */
static void await_end(void)
{
	int flag = 0;

	while (!flag)
		MPI_Request_get_status(requests[window - 1], &flag, MPI_STATUS_IGNORE);
}

static void receive_window(enum kind kind)
{
	memset(data, 0, sizeof(data));
	if (kind != EARLY)
		run(step_irecv);
	if (kind == SOME)
		run(step_idle);
	give_turn();
	await_turn();
	if (kind == EARLY)
		run(step_poll);
	if (kind == TESTED)
		await_end();
	switch (kind) {
	case EARLY:
		run(step_recv);
		break;
	case ANY:
		run(step_waitany);
		break;
	case SOME:
		run(step_testsome);
		break;
	case TESTED:
		run(step_test);
		break;
	default:
		run(step_waitall);
	}
	for (int i = 0; i < window; i++)
		t_verify(data[i], LEN, (struct t_msg){.tag = TAG, .seq = (unsigned)i});
}

int main(int argc, char **argv)
{
	enum kind kind = 0;

	t_init(&argc, &argv, 2);
	t_true(argc == 5,
	       "arguments: FILE, a kind of windows, messages of a window, more receives");
	while (kind < KINDS && strcmp(kinds[kind], argv[2]))
		kind++;
	t_holds(kind < KINDS);
	window = atoi(argv[3]);
	further = atoi(argv[4]);
	t_holds(window > 0 && further > 0 && window + further <= MOST);
	open_turns(argv[1]);
	for (int i = 0; i < window && !t_rank; i++)
		t_fill(data[i], LEN, (struct t_msg){.tag = TAG, .seq = (unsigned)i});
	t_begin("windows of %d messages, %s", window, argv[2]);
	for (int i = window; i < window + further && t_rank == 1; i++)
		MPI_Irecv(NULL, 0, MPI_BYTE, 0, LAST_TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < WINDOWS && t_rank < 2; i++)
		(t_rank ? receive_window : send_window)(kind);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = window; i < window + further && t_rank == 0; i++)
		MPI_Send(NULL, 0, MPI_BYTE, 1, LAST_TAG, MPI_COMM_WORLD);
	if (t_rank == 1)
		MPI_Waitall(further, requests + window, MPI_STATUSES_IGNORE);
	t_end();
	return t_finish();
}
