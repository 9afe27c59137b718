/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * away.c - away [SEED]: one rank of a pair makes no MPI call until the other rank reports the end
 * of its check in memory that both share. So the test measures no time: the library of the rank
 * that is away was not needed. Even ranks send, odd ranks receive. All ranks run on one machine.
 *
 * No MPI needs the sender for messages that its send has buffered, or that its collective operation
 * has left behind. pml/tupleq has to do more: long messages without the sender, and messages
 * without the receiver. Protocol rput is excepted, because there the sender writes.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

enum { SHORT = 900, WARM = 16 };

static int max;     /* bytes of the largest message */
static bool tuples; /* tuple queues are in use */
/* Counts the ended checks of this pair. The rank that isn't away adds to it. */
static _Atomic unsigned int *done;

/* Maps a page that all ranks share. */
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

/* Waits without MPI until the other rank has ended its check. If that never happens, t_begin()'s
 * alarm says where this rank is. */
static void stay_away(unsigned int before)
{
	t_doing("no MPI call until the other rank is done");
	while (atomic_load(done) == before)
		t_away(1);
}

/* Sends messages whose receives are in time until some in a row go to the tuple's queue. Gives up
 * after many, because on a busy machine a queue may not seem to pay. */
static void warm_up(void)
{
	long long before, now = 0;
	int good, i;

	for (good = i = 0; good < WARM && i < (tuples ? 200 : WARM); i++) {
		if (!pair.sender)
			MPI_Irecv(pair.in[0], PAIR_MAX, MPI_BYTE, pair.peer, pair.tag,
				  MPI_COMM_WORLD, &pair.req[0]);
		pair_meet();
		before = pair.sender ? t_counter("pml_tupleq_sent_direct") : 0;
		if (pair.sender)
			MPI_Isend(pair.out[0], i % 50, MPI_BYTE, pair.peer, pair.tag,
				  MPI_COMM_WORLD, &pair.req[0]);
		MPI_Wait(&pair.req[0], MPI_STATUS_IGNORE);
		if (pair.sender)
			now = t_counter("pml_tupleq_sent_direct");
		good = pair.sender && now > before ? good + 1 : 0;
		MPI_Bcast(&good, 1, MPI_INT, 0, pair.side);
	}
}

static void start(int i)
{
	pair_fill(i);
	if (pair.bytes[i] <= SHORT)
		MPI_Send(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, pair.tag, MPI_COMM_WORLD);
	else
		MPI_Isend(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, pair.tag, MPI_COMM_WORLD,
			  &pair.req[i]);
}

static void by_mprobe(int i)
{
	MPI_Message msg;
	MPI_Status st;

	MPI_Mprobe(i & 1 ? MPI_ANY_SOURCE : pair.peer, i & 2 ? MPI_ANY_TAG : pair.tag,
		   MPI_COMM_WORLD, &msg, &st);
	t_status(&st, pair.peer, pair.tag, (size_t)pair.bytes[i]);
	MPI_Mrecv(pair.in[i], PAIR_MAX, MPI_BYTE, &msg, &st);
	pair_check(pair.in[i], &st, i);
}

static void sizes(void)
{
	for (int i = 0; i < PAIR_N; i++)
		pair.bytes[i] = t_below(&pair.rng, i % 3 == 2 ? max : SHORT);
}

/* Prepares messages on a new tag. The receiver posts their receives if `posted`. Returns the count
 * of ended checks. */
static unsigned int prepare(bool posted)
{
	pair.tag++;
	warm_up();
	sizes();
	for (int i = 0; i < PAIR_N && posted && !pair.sender; i++)
		MPI_Irecv(pair.in[i], PAIR_MAX, MPI_BYTE, pair.peer, pair.tag, MPI_COMM_WORLD,
			  &pair.req[i]);
	return atomic_load(done);
}

static void sender_away(const char *name, void (*take)(int i))
{
	unsigned int before;

	t_begin("away: the sender, and the receiver comes with %s", name);
	if (pair.peer < t_size) {
		before = prepare(false);
		for (int i = 0; i < PAIR_N && pair.sender; i++)
			start(i);
		pair_meet();
		if (pair.sender) {
			stay_away(before);
			for (int i = 0; i < PAIR_N; i++)
				if (pair.bytes[i] > SHORT)
					MPI_Wait(&pair.req[i], MPI_STATUS_IGNORE);
		} else {
			t_doing(name);
			for (int i = 0; i < PAIR_N; i++)
				take(i);
			atomic_fetch_add(done, 1);
		}
		pair.seq += PAIR_N;
	}
	t_end();
}

/* Cancels half of the posted receives. Messages that come later go to the others. */
static void cancelling(void)
{
	unsigned int before;
	MPI_Status st;
	int i, flag;

	t_begin("away: the sender, and the receiver cancels");
	if (pair.peer < t_size) {
		before = prepare(true);
		pair_meet();
		if (pair.sender)
			stay_away(before);
		t_doing("cancelling posted receives");
		for (i = 0; i < PAIR_N && !pair.sender; i += 2) {
			MPI_Cancel(&pair.req[i]);
			MPI_Wait(&pair.req[i], &st);
			MPI_Test_cancelled(&st, &flag);
			t_eq(flag, 1);
		}
		if (!pair.sender)
			atomic_fetch_add(done, 1);
		t_doing("messages for the receives that are left");
		for (i = 1; i < PAIR_N; i += 2) {
			if (pair.sender)
				start(i);
			if (!pair.sender || pair.bytes[i] > SHORT)
				MPI_Wait(&pair.req[i], &st);
			if (!pair.sender)
				pair_check(pair.in[i], &st, i);
		}
		pair.seq += PAIR_N;
	}
	t_end();
}

/* Checks that synchronous sends, which end when their receives have started, end without the
 * receiver if all posted receives are in the tuple's queue. */
static void receiver_away(void)
{
	unsigned int before;
	long long direct;
	MPI_Status st;
	int i;

	t_begin("away: the receiver, with everything posted");
	if (pair.peer < t_size) {
		before = prepare(true);
		pair_meet();
		if (!pair.sender)
			stay_away(before);
		direct = t_counter("pml_tupleq_sent_direct");
		for (i = 0; i < PAIR_N && pair.sender; i++) {
			pair_fill(i);
			MPI_Issend(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, pair.tag,
				   MPI_COMM_WORLD, &pair.req[i]);
		}
		direct = t_counter("pml_tupleq_sent_direct") - direct;
		if (pair.sender && direct < PAIR_N)
			atomic_fetch_add(done, 1);
		t_doing("sends to a receiver that is away");
		for (i = 0; i < PAIR_N; i++) {
			MPI_Wait(&pair.req[i], &st);
			if (!pair.sender)
				pair_check(pair.in[i], &st, i);
		}
		if (pair.sender && direct >= PAIR_N)
			atomic_fetch_add(done, 1);
		pair.seq += PAIR_N;
	}
	t_end();
}

/* ---- many messages at once, whose sender has left ---- */

enum { ROUNDS = 60, MANY = 60, TAGS = 7 };

/* Pass message `i` of a round from the sender to the receiver. */
typedef void pass_function(void *buf, int bytes, int i);

static void by_send(void *buf, int bytes, int i)
{
	if (pair.sender)
		MPI_Send(buf, bytes, MPI_BYTE, pair.peer, pair.tag + i % TAGS, MPI_COMM_WORLD);
	else
		MPI_Recv(buf, bytes, MPI_BYTE, pair.peer, pair.tag + i % TAGS, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

static void by_bsend(void *buf, int bytes, int i)
{
	if (pair.sender)
		MPI_Bsend(buf, bytes, MPI_BYTE, pair.peer, pair.tag + i % TAGS, MPI_COMM_WORLD);
	else
		by_send(buf, bytes, i);
}

static void by_bcast(void *buf, int bytes, int i)
{
	(void)i;
	MPI_Bcast(buf, bytes, MPI_BYTE, 0, pair.side);
}

/* Passes messages of up to `longest` bytes in rounds. At the end of each the sender makes no call
 * until all are there. */
static void sender_left(const char *name, pass_function *pass, int longest)
{
	unsigned char *buf = t_alloc((size_t)longest);
	unsigned int before;

	t_begin("away: the sender, after %s", name);
	for (int round = 0; round < ROUNDS && pair.peer < t_size; round++) {
		int n = 1 + t_below(&pair.rng, MANY);

		before = atomic_load(done);
		MPI_Barrier(pair.side);
		for (int i = 0; i < n; i++) {
			int bytes = t_below(&pair.rng, i % 4 ? 64 : longest);
			struct t_msg m = pair_message(pair.sender ? t_rank : pair.peer, i);

			if (pair.sender)
				t_fill(buf, (size_t)bytes, m);
			pass(buf, bytes, i);
			if (!pair.sender)
				t_verify(buf, (size_t)bytes, m);
		}
		if (pair.sender)
			stay_away(before);
		else
			atomic_fetch_add(done, 1);
		pair.seq += (unsigned int)n;
	}
	free(buf);
	pair.tag += TAGS;
	t_end();
}

static void bsends_left(int longest)
{
	int size = MANY * (longest + MPI_BSEND_OVERHEAD);
	void *room = t_alloc((size_t)size);

	MPI_Buffer_attach(room, size);
	sender_left("MPI_Bsend", by_bsend, longest);
	MPI_Buffer_detach(&room, &size);
	free(room);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*take)(int i);
	} way[] = {{"exact receives", pair_by_exact}, {"MPI_ANY_SOURCE", pair_by_any_source},
		   {"MPI_ANY_TAG", pair_by_any_tag},  {"both wildcards", pair_by_any},
		   {"probes", pair_by_probe},         {"matched probes", by_mprobe}};
	const char *protocol;
	size_t i;

	pair_init(&argc, &argv);
	pair.tag = 100;
	protocol = getenv("OMPI_MCA_pml_tupleq_protocol");
	if (t_counter("pml_tupleq_sent_direct") >= 0 &&
	    (!protocol || strcmp(protocol, "rput") != 0)) {
		max = PAIR_MAX;
		tuples = !protocol || strcmp(protocol, "rget") != 0;
	} else {
		max = SHORT;
	}
	share();
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		sender_away(way[i].name, way[i].take);
	cancelling();
	if (tuples)
		receiver_away();
	sender_left("MPI_Send", by_send, max);
	sender_left("MPI_Bcast", by_bcast, SHORT);
	bsends_left(t_counter("pml_tupleq_sent_direct") >= 0 ? PAIR_MAX : SHORT);
	return pair_finish();
}
