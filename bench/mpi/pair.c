/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.c - see pair.h. */
#include "pair.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE     4096
#define NOT_SENT 0

void die(const char *fmt, ...)
{
	int up = 0;
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	MPI_Initialized(&up);
	if (up)
		MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

double *pair_samples(long n)
{
	double *room = calloc((size_t)n, sizeof(*room));

	if (!room)
		die("no memory for %ld samples", n);
	return room;
}

static size_t parse_size(const char **at)
{
	char *end;
	unsigned long long value = strtoull(*at, &end, 10);

	if (end == *at || value > INT32_MAX)
		die("\"%s\" is no message size", *at);
	if (*end == 'K')
		value <<= 10;
	else if (*end == 'M')
		value <<= 20;
	if (*end == 'K' || *end == 'M')
		end++;
	if (value > INT32_MAX)
		die("a message of \"%s\" is too large", *at);
	*at = end;
	return (size_t)value;
}

static void add_size(struct job_pair *pair, size_t size)
{
	if (pair->nsizes == PAIR_MAX_SIZES)
		die("there are more than %d message sizes", PAIR_MAX_SIZES);
	pair->size[pair->nsizes++] = size;
}

void pair_sizes(struct job_pair *pair, const char *list)
{
	const char *text = list;

	pair->nsizes = 0;
	do {
		size_t from = parse_size(&text), to = from;

		if (*text == '-') {
			text++;
			to = parse_size(&text);
			if (!from)
				die("a range of message sizes can't begin with 0");
			if (to < from)
				die("the range of message sizes %zu-%zu is empty", from, to);
		}
		add_size(pair, from);
		for (size_t s = 2 * from; from && s <= to; s *= 2)
			add_size(pair, s);
	} while (*text++ == ',');
	if (text[-1])
		die("\"%s\" is no list of message sizes such as 1,8K,64K-4M", list);
}

void pair_start(struct job_pair *pair, int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &pair->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &pair->ranks);
	pair->peer = !pair->rank;
}

/* Returns the byte that a rank sends at a place. Ranks, and places within a few pages, differ; none
 * is NOT_SENT. */
static char sent_byte(int rank, size_t at)
{
	return (char)(1 + (at + at / 251 + 100 * (size_t)rank) % 251);
}

void pair_allocate(struct job_pair *pair, int ranks)
{
	size_t most = 1;

	if (ranks && ranks != pair->ranks)
		die("this program wants %d ranks, not %d", ranks, pair->ranks);
	for (unsigned i = 0; i < pair->nsizes; i++)
		most = pair->size[i] > most ? pair->size[i] : most;
	most = (most + PAGE - 1) / PAGE * PAGE;
	pair->send_buf = aligned_alloc(PAGE, most);
	pair->recv_buf = aligned_alloc(PAGE, most);
	if (!pair->send_buf || !pair->recv_buf)
		die("no memory for messages of %zu bytes", most);
	for (size_t i = 0; i < most; i++)
		pair->send_buf[i] = sent_byte(pair->rank, i);
	memset(pair->recv_buf, 0, most);
}

void pair_clear(const struct job_pair *pair, size_t bytes)
{
	memset(pair->recv_buf, NOT_SENT, bytes);
}

void pair_check(const struct job_pair *pair, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (pair->recv_buf[i] != sent_byte(pair->peer, i))
			die("rank %d received a message of %zu bytes whose byte %zu is wrong",
			    pair->rank, bytes, i);
}

void pair_end(struct job_pair *pair)
{
	MPI_Finalize();
	free(pair->send_buf);
	free(pair->recv_buf);
}

void pair_signal(const struct job_pair *pair)
{
	MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_STEP, MPI_COMM_WORLD);
}

void pair_await(const struct job_pair *pair)
{
	MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_STEP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void pair_exchange(const struct job_pair *pair, size_t bytes, MPI_Request request[2])
{
	MPI_Irecv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request[0]);
	MPI_Isend(pair->send_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request[1]);
}

long pair_agree(long value)
{
	MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	return value;
}

long pair_repeats(double each_us, long ms, long least, long most)
{
	double n = (double)ms * 1e3 / (each_us > 0.01 ? each_us : 0.01);

	return n < (double)least ? least : n > (double)most ? most : (long)n;
}
