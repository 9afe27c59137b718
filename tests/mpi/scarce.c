/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scarce.c - scarce [again|exact]: waiting receives take all the memory that can be registered.
 * Long messages that their sender holds must come through nevertheless. again: some have to be sent
 * again. exact: with mpi_assert_exact_length. Two ranks: 0 sends to 1.
 */
#include "check.h"

enum { FILLERS = 24, FILLER = 512 << 10, LONG = 300000, SHORT = 100, WARM = 8, HELD = 4 };

static unsigned char *filler[FILLERS], *buf[HELD];
static MPI_Request filling[FILLERS];
/* The tag of the held messages; the tags of the fillers follow. Each check has its own, because a
 * recalled tuple gets no queue for a while. */
static int held_tag;

static struct t_msg message(int tag, unsigned int seq)
{
	return (struct t_msg){0, tag, seq};
}

/* Uses the tag in time, so that it gets its queue. */
static void warm_up(int tag)
{
	MPI_Request req[WARM];
	unsigned char *in = t_alloc(WARM * SHORT);

	for (int i = 0; t_rank == 1 && i < WARM; i++)
		MPI_Irecv(in + i * SHORT, SHORT, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &req[i]);
	for (int i = 0; t_rank == 0 && i < WARM; i++)
		MPI_Ssend(in, SHORT, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
	if (t_rank == 1)
		MPI_Waitall(WARM, req, MPI_STATUSES_IGNORE);
	free(in);
}

/* Posts receives whose messages nobody has sent yet. */
static void fill(void)
{
	t_doing("filling the memory");
	for (int i = 0; i < FILLERS; i++) {
		int tag = held_tag + 1 + i;

		warm_up(tag);
		if (t_rank == 1)
			MPI_Irecv(filler[i], FILLER, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &filling[i]);
	}
}

static void drain(void)
{
	t_doing("emptying the memory");
	for (int i = 0; i < FILLERS; i++) {
		int tag = held_tag + 1 + i;

		if (t_rank == 0) {
			t_fill(filler[i], FILLER, message(tag, 0));
			MPI_Send(filler[i], FILLER, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
		} else if (t_rank == 1) {
			MPI_Wait(&filling[i], MPI_STATUS_IGNORE);
			t_verify(filler[i], FILLER, message(tag, 0));
		}
	}
}

/* ---- ways to receive ---- */

static void by_exact(int i, MPI_Status *st)
{
	MPI_Recv(buf[i], LONG, MPI_BYTE, 0, held_tag, MPI_COMM_WORLD, st);
}

static void by_wildcard(int i, MPI_Status *st)
{
	MPI_Recv(buf[i], LONG, MPI_BYTE, MPI_ANY_SOURCE, held_tag, MPI_COMM_WORLD, st);
}

static void by_probe(int i, MPI_Status *st)
{
	MPI_Probe(0, held_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	by_exact(i, st);
}

static MPI_Message taken[HELD];

/* Takes all messages before it receives the first. */
static void by_matched_probe(int i, MPI_Status *st)
{
	for (int k = 0; i == 0 && k < HELD; k++)
		MPI_Mprobe(0, held_tag, MPI_COMM_WORLD, &taken[k], MPI_STATUS_IGNORE);
	MPI_Mrecv(buf[i], LONG, MPI_BYTE, &taken[i], st);
}

static void too_short(int i, MPI_Status *st)
{
	int rc, class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Recv(buf[i], LONG / 2, MPI_BYTE, 0, held_tag, MPI_COMM_WORLD, st);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Error_class(rc, &class);
	t_eq(class, MPI_ERR_TRUNCATE);
}

static void send_all(void)
{
	MPI_Request req[HELD];

	for (int i = 0; i < HELD; i++) {
		t_fill(buf[i], LONG, message(held_tag, (unsigned int)i));
		MPI_Isend(buf[i], LONG, MPI_BYTE, 1, held_tag, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Waitall(HELD, req, MPI_STATUSES_IGNORE);
}

static void receive_all(void (*receive)(int i, MPI_Status *st))
{
	MPI_Status st;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < HELD; i++) {
		memset(buf[i], 0xee, LONG);
		receive(i, &st);
		if (receive == too_short) {
			t_untouched(buf[i] + LONG / 2, LONG - LONG / 2, 0xee);
			continue;
		}
		t_status(&st, 0, held_tag, LONG);
		t_verify(buf[i], LONG, message(held_tag, (unsigned int)i));
	}
}

static void round_of(const char *name, void (*receive)(int i, MPI_Status *st))
{
	t_begin("scarce: held messages, %s", name);
	warm_up(held_tag);
	fill();
	t_doing(name);
	if (t_rank == 0)
		send_all();
	else if (t_rank == 1)
		receive_all(receive);
	else
		MPI_Barrier(MPI_COMM_WORLD);
	drain();
	held_tag += 1 + FILLERS;
	t_end();
}

static void assert_exact(void)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_assert_exact_length", "true");
	MPI_Comm_set_info(MPI_COMM_WORLD, info);
	MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
	bool exact = argc > 1 && !strcmp(argv[1], "exact");

	t_init(&argc, &argv, 2);
	for (int i = 0; i < FILLERS; i++)
		filler[i] = t_alloc(FILLER);
	for (int i = 0; i < HELD; i++)
		buf[i] = t_alloc(LONG);
	t_counter("pml_tupleq_held_again");
	if (exact)
		assert_exact();
	round_of("exact receives", by_exact);
	round_of("wildcards", by_wildcard);
	round_of("probes", by_probe);
	round_of("matched probes", by_matched_probe);
	if (!exact)
		round_of("receives that are too short", too_short);
	if (argc > 1 && !strcmp(argv[1], "again")) {
		t_begin("scarce: some were sent again");
		if (t_rank == 1)
			t_true(t_counter("pml_tupleq_held_again") > 0, "no message was sent again");
		t_end();
	}
	for (int i = 0; i < FILLERS; i++)
		free(filler[i]);
	for (int i = 0; i < HELD; i++)
		free(buf[i]);
	return t_finish();
}
