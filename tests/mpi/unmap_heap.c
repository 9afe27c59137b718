/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part "heap": an allocator gives memory back whenever it likes. Part "threads": one thread gives
 * back memory beside the buffers of another.
 */
#define _GNU_SOURCE
#include "unmap.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

/* ---- "heap": an allocator gives memory back whenever it likes ---- */

/* Functions of other allocators, NULL unless one of them is preloaded. */
int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));
void MallocExtension_ReleaseFreeMemory(void) __attribute__((weak));

/* Makes the allocator give free memory back to the kernel. */
static void trim(void)
{
	if (mallctl)
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* all arenas */
	if (MallocExtension_ReleaseFreeMemory)
		MallocExtension_ReleaseFreeMemory();
	malloc_trim(0);
}

void unmap_check_heap(void)
{
	enum { ROUNDS = 60, BLOCKS = 64, USED = 4 };
	unsigned char *block[BLOCKS] = {0};
	struct t_rng rng = t_rng(1, 2, 3); /* the same choices on both ranks */
	size_t bytes[BLOCKS];

#ifdef M_TRIM_THRESHOLD
	/* glibc then takes large blocks from the heap, and gives back as much of it as it can. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
#endif
	t_begin("unmap: the heap");
	for (int round = 0; round < ROUNDS; round++) {
		struct unmap_pending pending = {.send = round % 2};
		/* The second block keeps the first from the heap's end, which is given back
		 * soon. */
		unsigned char *large_block = t_alloc(8 * unmap_large), *end = t_alloc(unmap_page);
		int order[BLOCKS], used;

		/* Whole pages of the block are registered as one, and later belong to other
		 * blocks. */
		unmap_exchange(&unmap_all,
			       large_block + (unmap_page - (uintptr_t)large_block % unmap_page) %
						     unmap_page,
			       8 * unmap_large - unmap_page);
		free(large_block);
		for (int i = 0; i < BLOCKS; i++) {
			bytes[i] = unmap_page + (size_t)t_below(&rng, (int)(unmap_large / 2));
			block[i] = t_alloc(bytes[i]);
			order[i] = i;
		}
		t_shuffle(&rng, order, BLOCKS);
		used = 1 + t_below(&rng, USED);
		for (int i = 0; i < used; i++)
			unmap_start(&unmap_all, &pending, block[order[i]],
				    t_chance(&rng, 50) ? unmap_page : bytes[order[i]]);
		for (int i = used; i < BLOCKS; i++)
			free(block[order[i]]);
		trim();
		for (int i = used; i < BLOCKS; i++) {
			block[order[i]] = t_alloc(bytes[order[i]]);
			if (i % 3 == 0)
				unmap_exchange(&unmap_all, block[order[i]], bytes[order[i]]);
		}
		unmap_finish(&unmap_all, &pending);
		for (int i = 0; i < BLOCKS; i++)
			free(block[i]);
		free(end);
	}
	t_end();
}

/* ---- "threads": one gives back memory beside another's buffers ---- */

struct thread {
	struct unmap_stream stream;
	unsigned char *map;
	int rounds;
};

/* Exchanges pages of the upper half, in turn. */
static void *communicate(void *arg)
{
	struct thread *thread = arg;

	for (int i = 0; i < thread->rounds; i++) {
		unsigned char *at =
			t_rank == OWNER ? thread->map + (size_t)(i % 16) * unmap_page : NULL;

		unmap_exchange(&thread->stream, at, i % 8 == 7 ? 2 * unmap_large : unmap_page);
	}
	return NULL;
}

/* Gives back pieces of the lower half, and transfers them in between. */
static void *give_and_use(void *arg)
{
	struct thread *thread = arg;
	const size_t piece = unmap_large / 4;
	/* Ways that keep the place free of other mappings. */
	const struct unmap_way *const kinds[] = {&unmap_ways[1], &unmap_ways[4], &unmap_ways[5]};

	for (int i = 0; i < thread->rounds; i++) {
		unsigned char *at = t_rank == OWNER ? thread->map + (size_t)(i % 8) * piece : NULL;

		unmap_give(kinds[i % 3], thread->map, at, piece);
		if (t_rank == OWNER)
			munmap(unmap_map_anonymous(piece), piece);
		unmap_exchange(&thread->stream, at, i % 2 ? piece : unmap_page);
	}
	return NULL;
}

void unmap_check_threads(int rounds)
{
	const size_t half = 2 * unmap_large + 16 * unmap_page, size = 2 * half;
	struct thread t[2] = {{.rounds = 40}, {.rounds = 40}};
	pthread_t id[2];

	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &t[i].stream.comm);
		t[i].stream.mirror = t_alloc(half);
	}
	t_begin("unmap: threads");
	for (int round = 0; round < rounds; round++) {
		unsigned char *map = t_rank == OWNER ? unmap_map_anonymous(size) : unmap_mirror;
		struct unmap_pending pending = {.send = round % 2};

		unmap_exchange(&unmap_all, map, size);
		unmap_start(&unmap_all, &pending, map + size - unmap_page, unmap_page);
		t[0].map = map + half;
		t[1].map = map;
		pthread_create(&id[0], NULL, communicate, &t[0]);
		pthread_create(&id[1], NULL, give_and_use, &t[1]);
		for (int i = 0; i < 2; i++)
			pthread_join(id[i], NULL);
		unmap_finish(&unmap_all, &pending);
		if (t_rank == OWNER)
			munmap(map, size);
	}
	t_end();
	for (int i = 0; i < 2; i++) {
		MPI_Comm_free(&t[i].stream.comm);
		free(t[i].stream.mirror);
	}
}
