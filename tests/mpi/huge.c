/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * huge.c - huge [MIB [reduction]]: a message of more bytes than an int counts, as many elements and
 * as one element of a derived type. Two ranks, with twice as much memory.
 * reduction: a reduction of MIB instead, with four times as much memory.
 */
#include <sys/mman.h>

#include "check.h"

enum { TAG = 8, STEP = 4096 };

static size_t bytes;
static unsigned char *buf;

/* Returns the word at a place in message `seq`. */
static uint64_t word(size_t at, unsigned int seq)
{
	return (uint64_t)at * 0x9e3779b97f4a7c15u + seq;
}

static void fill(unsigned int seq)
{
	size_t at;
	uint64_t w;

	for (at = 0; at < bytes; at += STEP) {
		w = word(at, seq);
		memcpy(buf + at, &w, sizeof(w));
	}
}

static void verify(unsigned int seq)
{
	size_t at;
	uint64_t w;

	for (at = 0; at < bytes; at += STEP) {
		memcpy(&w, buf + at, sizeof(w));
		t_true(w == word(at, seq), "byte %zu of %zu is wrong", at, bytes);
	}
}

/* Sends a huge message, after some small ones with the same tag have got the tag its queue. */
static void transfer(const char *name, MPI_Datatype type, int count, unsigned int seq)
{
	MPI_Count size, elements;
	MPI_Request req;
	MPI_Status st;
	int n, i;

	t_begin("huge: %zu MiB as %s", bytes >> 20, name);
	MPI_Type_commit(&type);
	MPI_Type_size_x(type, &size);
	t_true((size_t)size * (size_t)count == bytes, "%zu bytes", (size_t)size * (size_t)count);
	for (i = 0; i < 10; i++) {
		if (t_rank == 0)
			MPI_Send(&i, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
		else
			MPI_Recv(&n, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (t_rank == 0) {
		fill(seq);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(buf, count, type, 1, TAG, MPI_COMM_WORLD);
	} else {
		MPI_Irecv(buf, count, type, 0, TAG, MPI_COMM_WORLD, &req);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Wait(&req, &st);
		MPI_Get_count(&st, type, &n);
		t_eq(n, count);
		MPI_Get_elements_x(&st, MPI_BYTE, &elements);
		t_eq(elements, bytes);
		verify(seq);
	}
	MPI_Type_free(&type);
	t_end();
}

/* Reduces more elements in total than an int counts, in place. */
static void reduction(void)
{
	size_t each = bytes / 2;
	MPI_Request req;

	t_begin("huge: a reduction of %zu MiB in place", bytes >> 20);
	for (size_t at = 0; at < bytes; at += STEP)
		buf[at] = (unsigned char)(1 << t_rank | (at / STEP % 32) << 2);
	MPI_Ireduce_scatter_block(MPI_IN_PLACE, buf, (int)each, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD,
				  &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	for (size_t at = 0; at < each; at += STEP) {
		size_t place = at + (size_t)t_rank * each;

		t_eq(buf[at], 3 | (place / STEP % 32) << 2);
	}
	t_end();
}

int main(int argc, char **argv)
{
	MPI_Datatype type, block;
	int mib;

	t_init(&argc, &argv, 2);
	mib = (int)t_arg(argc, argv, 1, 2200);
	bytes = (size_t)mib << 20;
	buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	t_true(buf != MAP_FAILED, "there is no memory");

	if (argc > 2) {
		reduction();
		return t_finish();
	}
	MPI_Type_dup(MPI_INT, &type);
	transfer("many elements", type, (int)(bytes / sizeof(int)), 1);
	MPI_Type_contiguous(1 << 20, MPI_BYTE, &block);
	MPI_Type_contiguous(mib, block, &type);
	transfer("one element", type, 1, 2);
	MPI_Type_free(&block);
	munmap(buf, bytes);
	return t_finish();
}
