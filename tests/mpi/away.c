/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * away.c - away [SEED]: one of two makes no MPI call until the other has what it wants, and says so
 * in memory that both share. So what is checked is not a time, but that nobody was needed. In
 * pairs: even ranks send, odd ranks receive. All ranks run on one machine.
 *
 * A sender that is away is needed by no MPI for messages that its send has buffered. Of pml/tupleq
 * more is asked: long messages too, and a receiver that is away, but not of protocol rput, whose
 * sender writes.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { N = 8, LONG = 70000, SHORT = 900, WARM = 16 };

static struct t_rng rng; /* the same on both sides of a pair */
static int peer, max;
static bool sender, tuples; /* tuples: tuple queues are in use */
static unsigned char *out[N], *in[N];
static MPI_Request req[N];
static int bytes[N], tag = 100;
static unsigned int seq;
static MPI_Comm side;
static _Atomic unsigned int *done; /* of this pair: how often the one that is there was done */

static void meet(void)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, peer & 1, 1, NULL, 0, MPI_BYTE, peer & 1, 1, side,
		     MPI_STATUS_IGNORE);
}

/* A page that all ranks map. */
static void share(void)
{
	char name[64];
	void *page;
	int fd;

	snprintf(name, sizeof(name), "/tupleq-away-%ld", (long)getpid());
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	fd = shm_open(name, O_RDWR | O_CREAT, 0600);
	t_true(fd >= 0 && !ftruncate(fd, 4096), "there is no shared memory");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t_true(page != MAP_FAILED, "there is no shared memory");
	close(fd);
	done = (_Atomic unsigned int *)page + t_rank / 2;
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0)
		shm_unlink(name);
}

/* The other has come to its end without this rank; else t_begin()'s alarm says where that is. */
static void stay_away(unsigned int before)
{
	t_doing("no MPI call until the other one is done");
	while (atomic_load(done) == before)
		t_away(1);
}

/* Messages with receives in time, until some in a row go to the tuple's queue, or many did not: on
 * a machine that is busy with other things a queue may not seem to pay. */
static void warm(void)
{
	long long before, now = 0;
	int good, i;

	for (good = i = 0; good < WARM && i < (tuples ? 200 : WARM); i++) {
		if (!sender)
			MPI_Irecv(in[0], LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[0]);
		meet();
		before = sender ? t_counter("sent_direct") : 0;
		if (sender)
			MPI_Isend(out[0], i % 50, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[0]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		if (sender)
			now = t_counter("sent_direct");
		good = sender && now > before ? good + 1 : 0;
		MPI_Bcast(&good, 1, MPI_INT, 0, side);
	}
}

static struct t_msg message(int src, int i)
{
	return (struct t_msg){src, tag, seq + (unsigned int)i};
}

static void start(int i)
{
	t_fill(out[i], (size_t)bytes[i], message(t_rank, i));
	if (bytes[i] <= SHORT)
		MPI_Send(out[i], bytes[i], MPI_BYTE, peer, tag, MPI_COMM_WORLD);
	else
		MPI_Isend(out[i], bytes[i], MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[i]);
}

static void check(int i, const MPI_Status *st)
{
	t_status(st, peer, tag, (size_t)bytes[i]);
	t_verify(in[i], (size_t)bytes[i], message(peer, i));
}

static void receive(int i, int src, int want)
{
	MPI_Status st;

	MPI_Recv(in[i], LONG, MPI_BYTE, src, want, MPI_COMM_WORLD, &st);
	check(i, &st);
}

static void by_exact(int i)
{
	receive(i, peer, tag);
}

static void by_any_source(int i)
{
	receive(i, MPI_ANY_SOURCE, tag);
}

static void by_any_tag(int i)
{
	receive(i, peer, MPI_ANY_TAG);
}

static void by_any(int i)
{
	receive(i, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

static void by_probe(int i)
{
	MPI_Status st;

	MPI_Probe(i & 1 ? MPI_ANY_SOURCE : peer, i & 2 ? MPI_ANY_TAG : tag, MPI_COMM_WORLD, &st);
	t_status(&st, peer, tag, (size_t)bytes[i]);
	receive(i, peer, tag);
}

static void by_mprobe(int i)
{
	MPI_Message msg;
	MPI_Status st;

	MPI_Mprobe(i & 1 ? MPI_ANY_SOURCE : peer, i & 2 ? MPI_ANY_TAG : tag, MPI_COMM_WORLD, &msg,
		   &st);
	t_status(&st, peer, tag, (size_t)bytes[i]);
	MPI_Mrecv(in[i], LONG, MPI_BYTE, &msg, &st);
	check(i, &st);
}

static void sizes(void)
{
	for (int i = 0; i < N; i++)
		bytes[i] = t_below(&rng, i % 3 == 2 ? max : SHORT);
}

static void sender_away(const char *name, void (*take)(int i))
{
	unsigned int before;

	t_begin("away: the sender, and the receiver comes with %s", name);
	if (peer < t_size) {
		tag++;
		warm();
		sizes();
		before = atomic_load(done);
		for (int i = 0; i < N && sender; i++)
			start(i);
		meet();
		if (sender) {
			stay_away(before);
			for (int i = 0; i < N; i++)
				if (bytes[i] > SHORT)
					MPI_Wait(&req[i], MPI_STATUS_IGNORE);
		} else {
			t_doing(name);
			for (int i = 0; i < N; i++)
				take(i);
			atomic_fetch_add(done, 1);
		}
		seq += N;
	}
	t_end();
}

/* Posted receives are cancelled. Then half of them are there for messages that come later. */
static void cancelling(void)
{
	unsigned int before;
	MPI_Status st;
	int i, flag;

	t_begin("away: the sender, and the receiver cancels");
	if (peer < t_size) {
		tag++;
		warm();
		sizes();
		before = atomic_load(done);
		for (i = 0; i < N && !sender; i++)
			MPI_Irecv(in[i], LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[i]);
		meet();
		if (sender)
			stay_away(before);
		t_doing("cancelling posted receives");
		for (i = 0; i < N && !sender; i += 2) {
			MPI_Cancel(&req[i]);
			MPI_Wait(&req[i], &st);
			MPI_Test_cancelled(&st, &flag);
			t_eq(flag, 1);
		}
		if (!sender)
			atomic_fetch_add(done, 1);
		t_doing("messages for those that are left");
		for (i = 1; i < N; i += 2) {
			if (sender)
				start(i);
			if (!sender || bytes[i] > SHORT)
				MPI_Wait(&req[i], &st);
			if (!sender)
				check(i, &st);
		}
		seq += N;
	}
	t_end();
}

/* With everything posted: a synchronous send ends when its receive has started. That is so without
 * the receiver if all of them have gone to the tuple's queue. */
static void receiver_away(void)
{
	unsigned int before;
	long long direct;
	MPI_Status st;
	int i;

	t_begin("away: the receiver, with everything posted");
	if (peer < t_size) {
		tag++;
		warm();
		sizes();
		before = atomic_load(done);
		for (i = 0; i < N && !sender; i++)
			MPI_Irecv(in[i], LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[i]);
		meet();
		if (!sender)
			stay_away(before);
		direct = t_counter("sent_direct");
		for (i = 0; i < N && sender; i++) {
			t_fill(out[i], (size_t)bytes[i], message(t_rank, i));
			MPI_Issend(out[i], bytes[i], MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[i]);
		}
		direct = t_counter("sent_direct") - direct;
		if (sender && direct < N)
			atomic_fetch_add(done, 1);
		t_doing("sends to one that is away");
		for (i = 0; i < N; i++) {
			MPI_Wait(&req[i], &st);
			if (!sender)
				check(i, &st);
		}
		if (sender && direct >= N)
			atomic_fetch_add(done, 1);
		seq += N;
	}
	t_end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*take)(int i);
	} way[] = {{"exact receives", by_exact}, {"MPI_ANY_SOURCE", by_any_source},
		   {"MPI_ANY_TAG", by_any_tag},  {"both wildcards", by_any},
		   {"probes", by_probe},         {"matched probes", by_mprobe}};
	const char *protocol;
	size_t i;

	t_init(&argc, &argv, 2);
	peer = t_rank ^ 1;
	sender = t_rank % 2 == 0;
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), (uint64_t)t_rank / 2, 0);
	protocol = getenv("OMPI_MCA_pml_tupleq_protocol");
	if (t_counter("sent_direct") >= 0 && (!protocol || strcmp(protocol, "rput") != 0)) {
		max = LONG;
		tuples = !protocol || strcmp(protocol, "rget") != 0;
	} else {
		max = SHORT;
	}
	MPI_Comm_split(MPI_COMM_WORLD, t_rank / 2, t_rank, &side);
	share();
	for (i = 0; i < N; i++) {
		out[i] = t_alloc(LONG);
		in[i] = t_alloc(LONG);
	}
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		sender_away(way[i].name, way[i].take);
	cancelling();
	if (tuples)
		receiver_away();
	for (i = 0; i < N; i++) {
		free(out[i]);
		free(in[i]);
	}
	MPI_Comm_free(&side);
	return t_finish();
}
