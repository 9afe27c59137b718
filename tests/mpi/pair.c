/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.c - see pair.h. */
#include "pair.h"

struct pair pair;

void pair_init(int *argc, char ***argv)
{
	t_init(argc, argv, 2);
	pair.peer = t_rank ^ 1;
	pair.sender = t_rank % 2 == 0;
	pair.rng = t_rng((uint64_t)t_arg(*argc, *argv, 1, 1), (uint64_t)t_rank / 2, 0);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank / 2, t_rank, &pair.side);
	for (int i = 0; i < PAIR_N; i++) {
		pair.out[i] = t_alloc(PAIR_MAX);
		pair.in[i] = t_alloc(PAIR_MAX);
	}
}

int pair_finish(void)
{
	for (int i = 0; i < PAIR_N; i++) {
		free(pair.out[i]);
		free(pair.in[i]);
	}
	MPI_Comm_free(&pair.side);
	return t_finish();
}

void pair_meet(void)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, pair.peer & 1, 1, NULL, 0, MPI_BYTE, pair.peer & 1, 1,
		     pair.side, MPI_STATUS_IGNORE);
}

struct t_msg pair_message(int src, int i)
{
	return (struct t_msg){src, pair.tag, pair.seq + (unsigned int)i};
}

void pair_fill(int i)
{
	t_fill(pair.out[i], (size_t)pair.bytes[i], pair_message(t_rank, i));
}

void pair_check(const void *buf, const MPI_Status *st, int i)
{
	t_status(st, pair.peer, pair.tag, (size_t)pair.bytes[i]);
	t_verify(buf, (size_t)pair.bytes[i], pair_message(pair.peer, i));
}

void pair_receive(int i, int src, int tag)
{
	MPI_Status st;

	MPI_Recv(pair.in[i], PAIR_MAX, MPI_BYTE, src, tag, MPI_COMM_WORLD, &st);
	pair_check(pair.in[i], &st, i);
}

void pair_by_exact(int i)
{
	pair_receive(i, pair.peer, pair.tag);
}

void pair_by_any_source(int i)
{
	pair_receive(i, MPI_ANY_SOURCE, pair.tag);
}

void pair_by_any_tag(int i)
{
	pair_receive(i, pair.peer, MPI_ANY_TAG);
}

void pair_by_any(int i)
{
	pair_receive(i, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

void pair_by_probe(int i)
{
	MPI_Status st;

	MPI_Probe(i & 1 ? MPI_ANY_SOURCE : pair.peer, i & 2 ? MPI_ANY_TAG : pair.tag,
		  MPI_COMM_WORLD, &st);
	t_status(&st, pair.peer, pair.tag, (size_t)pair.bytes[i]);
	pair_receive(i, pair.peer, pair.tag);
}
