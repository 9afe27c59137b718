/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - buffers that come and go: what a message was sent from or received into is given back
 * to the system, and its addresses are used again by other memory. Registrations must follow. Two
 * ranks.
 */
#include <sys/mman.h>

#include "check.h"

enum { ROUNDS = 40, TAG = 5, PIECE = 64 << 10 };

static const size_t most = 1 << 20;

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
	return most + (size_t)(round % 5) * PIECE;
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

/* Half of what is registered goes; new memory takes its place. */
static void replaced(void)
{
	t_begin("memory: half of a buffer replaced");
	for (int i = 0; i < ROUNDS; i++) {
		unsigned char *buf = map(most);

		transfer(buf, most, 2 * i);
		munmap(buf + most / 2, most / 2);
		t_true(mmap(buf + most / 2, most / 2, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
		       "there is no memory");
		transfer(buf, most, 2 * i + 1);
		munmap(buf, most);
	}
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	allocated();
	mapped();
	replaced();
	return t_finish();
}
