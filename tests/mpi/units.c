/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * units.c - windows whose displacement unit is another one on each rank. All ranks write into the
 * windows of all ranks, their own among them, and read what they have written. Two ranks or more.
 */
#include "check.h"

enum {
	WORDS = 16, /* for each rank that writes */
	BYTES = WORDS * (int)sizeof(int32_t)
};

/* Returns the displacement unit of a rank: 1, 2, 4, 8, 1... */
static int unit_of(int rank)
{
	return 1 << rank % 4;
}

static int32_t value(int origin, int target, int word)
{
	return origin << 20 | target << 10 | word;
}

static void write_and_read(MPI_Win win, int target)
{
	MPI_Aint at = (MPI_Aint)t_rank * BYTES / unit_of(target);
	int32_t data[WORDS], back[WORDS] = {0};

	for (int i = 0; i < WORDS; i++)
		data[i] = value(t_rank, target, i);
	MPI_Put(data, WORDS, MPI_INT32_T, target, at, WORDS, MPI_INT32_T, win);
	MPI_Win_flush(target, win);
	MPI_Get(back, WORDS, MPI_INT32_T, target, at, WORDS, MPI_INT32_T, win);
	MPI_Win_flush(target, win);
	t_mem_eq(back, data, sizeof(data));
}

static void each_to_each(const char *flavour, MPI_Win win, const int32_t *memory)
{
	t_begin("units: %s, another unit on each rank", flavour);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < t_size; i++)
		write_and_read(win, (t_rank + i) % t_size);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
	for (int i = 0; i < t_size * WORDS; i++)
		t_eq(memory[i], value(i / WORDS, t_rank, i % WORDS));
	MPI_Win_unlock(t_rank, win);
	t_end();
}

int main(int argc, char **argv)
{
	MPI_Aint size;
	int32_t *memory;
	MPI_Win win;

	t_init(&argc, &argv, 2);
	size = (MPI_Aint)t_size * BYTES;
	memory = t_alloc((size_t)size);
	memset(memory, 0, (size_t)size);
	MPI_Win_create(memory, size, unit_of(t_rank), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	each_to_each("create", win, memory);
	MPI_Win_free(&win);
	free(memory);

	MPI_Win_allocate(size, unit_of(t_rank), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	MPI_Barrier(MPI_COMM_WORLD);
	each_to_each("allocate", win, memory);
	MPI_Win_free(&win);
	return t_finish();
}
