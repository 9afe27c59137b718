/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - buffers that come and go: the program gives memory of finished messages back to the
 * system, and other memory uses the addresses again. Registrations must follow. Also buffers that
 * can only be read, from which messages go like others. Two ranks.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define BYTES ((size_t)1 << 20)

enum { ROUNDS = 40, TAG = 5, PIECE = 64 << 10 };

static unsigned char *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	t_true(p != MAP_FAILED, "there is no memory");
	return p;
}

static void transfer(unsigned char *buf, size_t bytes, int round)
{
	const struct t_msg m = {0, TAG, (unsigned int)round};

	if (t_rank == 0) {
		t_fill(buf, bytes, m);
		MPI_Send(buf, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	} else if (t_rank == 1) {
		memset(buf, 0xee, bytes);
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_verify(buf, bytes, m);
	}
}

static size_t size_of(int round)
{
	return BYTES + (size_t)(round % 5) * PIECE;
}

static void allocated(void)
{
	t_begin("memory: allocated and freed");
	for (int i = 0; i < ROUNDS; i++) {
		unsigned char *buf = t_alloc(size_of(i));

		transfer(buf, size_of(i), i);
		free(buf);
	}
	t_end();
}

static void mapped(void)
{
	t_begin("memory: mapped and unmapped");
	for (int i = 0; i < ROUNDS; i++) {
		unsigned char *buf = map(size_of(i));

		transfer(buf, size_of(i), i);
		munmap(buf, size_of(i));
	}
	t_end();
}

/* Gives half of the registered memory back; new memory takes its place. */
static void replaced(void)
{
	t_begin("memory: half of a buffer replaced");
	for (int i = 0; i < ROUNDS; i++) {
		unsigned char *buf = map(BYTES);

		transfer(buf, BYTES, 2 * i);
		munmap(buf + BYTES / 2, BYTES / 2);
		t_true(mmap(buf + BYTES / 2, BYTES / 2, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
		       "there is no memory");
		transfer(buf, BYTES, 2 * i + 1);
		munmap(buf, BYTES);
	}
	t_end();
}

/* Maps a file in memory that holds the data of round 0. */
static unsigned char *map_file(int flags)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)BYTES))
		p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t_true(p != MAP_FAILED, "there is no memory");
	t_fill(p, BYTES, (struct t_msg){0, TAG, 0});
	munmap(p, BYTES);
	p = mmap(NULL, BYTES, PROT_READ, flags, fd, 0);
	t_true(p != MAP_FAILED, "there is no memory");
	close(fd);
	return p;
}

/* Has rank 0 send `bytes` bytes of the file as elements of a type, sometimes before there is a
 * receive. */
static void send_file(const unsigned char *file, unsigned char *buf, MPI_Datatype type,
		      size_t bytes, int round)
{
	int size;

	MPI_Type_size(type, &size);
	if (t_rank == 0) {
		MPI_Send(file, (int)bytes / size, type, 1, TAG, MPI_COMM_WORLD);
	} else if (t_rank == 1) {
		memset(buf, 0xee, bytes);
		if (round % 4 == 3)
			t_away(1);
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void read_only(const char *name, int flags)
{
	unsigned char *file = map_file(flags), *buf = t_alloc(BYTES);
	const size_t third = BYTES / 3;
	MPI_Datatype outer;
	long long slow;

	/* The outer two thirds. */
	MPI_Type_vector(2, (int)third, 2 * (int)third, MPI_BYTE, &outer);
	MPI_Type_commit(&outer);
	t_begin("memory: read only, %s", name);
	slow = t_counter("pml_tupleq_recv_pipelined");
	for (int i = 0; i < ROUNDS; i++) {
		send_file(file, buf, MPI_BYTE, BYTES, i);
		t_true(t_rank != 1 || !memcmp(buf, file, BYTES), "other data came");
		send_file(file, buf, outer, 2 * third, i);
		t_true(t_rank != 1 || (!memcmp(buf, file, third) &&
				       !memcmp(buf + third, file + 2 * third, third)),
		       "other data came");
	}
	if (slow >= 0)
		t_eq(t_counter("pml_tupleq_recv_pipelined"), slow);
	t_end();
	MPI_Type_free(&outer);
	munmap(file, BYTES);
	free(buf);
}

/* Sends from memory that can only be read at first and may be written to later. */
static void read_only_first(void)
{
	unsigned char *buf = t_rank == 0 ? map_file(MAP_PRIVATE) : t_alloc(BYTES);

	t_begin("memory: read only at first");
	for (int i = 0; i < ROUNDS; i++)
		send_file(buf, buf, MPI_BYTE, BYTES, i);
	if (t_rank == 1)
		t_verify(buf, BYTES, (struct t_msg){0, TAG, 0});
	t_true(t_rank != 0 || !mprotect(buf, BYTES, PROT_READ | PROT_WRITE), "mprotect");
	for (int i = 0; i < ROUNDS; i++) {
		const struct t_msg back = {1, TAG, (unsigned int)i};

		if (t_rank == 1) {
			t_fill(buf, BYTES, back);
			MPI_Send(buf, (int)BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
		} else if (t_rank == 0) {
			MPI_Recv(buf, (int)BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			t_verify(buf, BYTES, back);
		}
		transfer(buf, BYTES, i);
	}
	t_end();
	if (t_rank == 0)
		munmap(buf, BYTES);
	else
		free(buf);
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	allocated();
	mapped();
	replaced();
	read_only("shared", MAP_SHARED);
	read_only("private", MAP_PRIVATE);
	read_only_first();
	return t_finish();
}
