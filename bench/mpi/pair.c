/* SPDX-License-Identifier: BSD-3-Clause */
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
	unsigned long long v = strtoull(*at, &end, 10);

	if (end == *at || v > INT32_MAX)
		die("\"%s\" is no message size", *at);
	if (*end == 'K')
		v <<= 10;
	else if (*end == 'M')
		v <<= 20;
	if (*end == 'K' || *end == 'M')
		end++;
	if (v > INT32_MAX)
		die("a message of \"%s\" is too large", *at);
	*at = end;
	return (size_t)v;
}

static void add_size(struct pair *p, size_t size)
{
	if (p->nsizes == PAIR_MAX_SIZES)
		die("there are more than %d message sizes", PAIR_MAX_SIZES);
	p->size[p->nsizes++] = size;
}

void pair_sizes(struct pair *p, const char *text)
{
	p->nsizes = 0;
	do {
		size_t from = parse_size(&text), to = from;

		if (*text == '-') {
			text++;
			to = parse_size(&text);
			if (!from)
				die("a range of message sizes can't begin with 0");
		}
		add_size(p, from);
		for (size_t s = 2 * from; from && s <= to; s *= 2)
			add_size(p, s);
	} while (*text++ == ',');
	if (text[-1])
		die("message sizes look like 1,8K,64K-4M; what is \"%s\"?", text - 1);
}

void pair_start(struct pair *p, int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
	p->peer = !p->rank;
	p->ranks = 2;
}

/* Each rank and, within a few pages, each place has its own: none of them is NOT_SENT. */
static char sent_byte(int rank, size_t at)
{
	return (char)(1 + (at + at / 251 + 100 * (size_t)rank) % 251);
}

void pair_allocate(struct pair *p)
{
	size_t most = 1;
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (p->ranks && ranks != p->ranks)
		die("this program wants %d ranks, not %d", p->ranks, ranks);
	for (unsigned i = 0; i < p->nsizes; i++)
		most = p->size[i] > most ? p->size[i] : most;
	most = (most + PAGE - 1) / PAGE * PAGE;
	p->send_buf = aligned_alloc(PAGE, most);
	p->recv_buf = aligned_alloc(PAGE, most);
	if (!p->send_buf || !p->recv_buf)
		die("no memory for messages of %zu bytes", most);
	for (size_t i = 0; i < most; i++)
		p->send_buf[i] = sent_byte(p->rank, i);
	memset(p->recv_buf, 0, most);
}

void pair_clear(const struct pair *p, size_t bytes)
{
	memset(p->recv_buf, NOT_SENT, bytes);
}

void pair_check(const struct pair *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (p->recv_buf[i] != sent_byte(p->peer, i))
			die("rank %d received a message of %zu bytes whose byte %zu is wrong",
			    p->rank, bytes, i);
}

void pair_end(struct pair *p)
{
	MPI_Finalize();
	free(p->send_buf);
	free(p->recv_buf);
}

void pair_tell(const struct pair *p)
{
	MPI_Send(NULL, 0, MPI_BYTE, p->peer, TAG_STEP, MPI_COMM_WORLD);
}

void pair_hear(const struct pair *p)
{
	MPI_Recv(NULL, 0, MPI_BYTE, p->peer, TAG_STEP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void pair_exchange(const struct pair *p, size_t bytes, MPI_Request request[2])
{
	MPI_Irecv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request[0]);
	MPI_Isend(p->send_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD,
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
