/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Part "segments": System V segments, which are detached as a whole. Part "shared": an operation
 * uses a registration that was made for another one, and needs it for longer.
 */
#define _GNU_SOURCE
#include "unmap.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>

/* ---- "segments": System V segments are detached as a whole ---- */

/* Joins two neighbouring segments to one buffer. One of them is replaced by another segment. */
static void replace_segment(bool upper, bool send)
{
	const size_t size = 2 * unmap_large, gone = upper ? size : 0, left = upper ? 0 : size;
	unsigned char *map = unmap_mirror;
	struct unmap_pending pending = {.send = send};

	if (t_rank == OWNER) {
		map = unmap_map_anonymous(2 * size);
		for (int i = 0; i < 2; i++)
			t_true(unmap_attach(map + i * size, size, SHM_REMAP),
			       "there is no segment");
	}
	unmap_exchange(&unmap_all, map, 2 * size);
	unmap_start(&unmap_all, &pending, map + left, unmap_page);
	unmap_start(&unmap_all, &pending, map + left + size / 2, size / 2);
	if (t_rank == OWNER) {
		t_true(!shmdt(map + gone), "shmdt: %s", strerror(errno));
		t_true(unmap_attach(map + gone, size, 0), "there is no segment");
	}
	unmap_exchange(&unmap_all, map + gone, size);
	unmap_finish(&unmap_all, &pending);
	unmap_exchange(&unmap_all, map, 2 * size);
	if (t_rank == OWNER) {
		shmdt(map);
		shmdt(map + size);
	}
}

/* Registers a segment by both of its addresses, because it is attached twice, and detaches one. */
static void detach_one(bool send)
{
	const size_t size = 2 * unmap_large;
	unsigned char *map = unmap_mirror, *again = unmap_mirror;
	struct unmap_pending pending = {.send = send};
	int id;

	if (t_rank == OWNER) {
		id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
		t_true(id >= 0, "there is no segment");
		map = shmat(id, NULL, 0);
		again = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
		t_true(map != (void *)-1 && again != (void *)-1, "there is no segment");
	}
	unmap_exchange(&unmap_all, map, size);
	unmap_exchange(&unmap_all, again, size);
	unmap_start(&unmap_all, &pending, map + size / 2, unmap_page);
	if (t_rank == OWNER) {
		t_true(!shmdt(again), "shmdt: %s", strerror(errno));
		t_true(unmap_attach(again, size, 0), "there is no segment");
	}
	unmap_exchange(&unmap_all, again, size);
	unmap_exchange(&unmap_all, map, size / 2);
	unmap_finish(&unmap_all, &pending);
	if (t_rank == OWNER) {
		shmdt(map);
		shmdt(again);
	}
}

void unmap_check_segments(void)
{
	t_begin("unmap: System V, one of two neighbours detached");
	for (int i = 0; i < 4; i++)
		replace_segment(i & 1, i & 2);
	t_end();
	t_begin("unmap: System V, one of two attachments detached");
	for (int i = 0; i < 2; i++)
		detach_one(i);
	t_end();
}

/* ---- "shared": a registration made for one operation serves another, which outlasts it ---- */

static void share(const struct unmap_memory *memory, const struct unmap_way *way)
{
	const size_t size = 4 * unmap_large, half = size / 2;
	unsigned char *map = t_rank == OWNER ? memory->map(size) : unmap_mirror, *at = map;
	struct unmap_pending whole = {.send = true};
	MPI_Request second;
	struct unmap_made made;

	t_begin("unmap: a registration of two sends, %s, %s", memory->name, way->name);
	unmap_start(&unmap_all, &whole, map, size);
	if (t_rank == OWNER) {
		/* Both send the same bytes, so the second doesn't fill its buffer. */
		MPI_Issend(map + half, (int)unmap_large, MPI_BYTE, PEER, TAG_PENDING + 1,
			   unmap_all.comm, &second);
	}
	unmap_finish(&unmap_all, &whole);
	unmap_give(way, map, map, half);
	if (!way->stays_mapped)
		at = unmap_renew(map, half);
	made = unmap_made_until_now();
	unmap_exchange(&unmap_all, at, half);
	if (t_rank == OWNER && at != unmap_spare)
		unmap_must_have_registered(made);
	if (t_rank == OWNER) {
		MPI_Wait(&second, MPI_STATUS_IGNORE);
	} else if (t_rank == PEER) {
		t_fill(unmap_mirror, size, whole.message[0]);
		memset(unmap_mirror, 0xee, half);
		MPI_Recv(unmap_mirror, (int)unmap_large, MPI_BYTE, OWNER, TAG_PENDING + 1,
			 unmap_all.comm, MPI_STATUS_IGNORE);
		t_true(!memcmp(unmap_mirror, unmap_mirror + half, unmap_large), "other data came");
	}
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}

void unmap_check_shared(void)
{
	for (size_t m = 0; unmap_memories[m].name; m++)
		for (size_t w = 0; unmap_ways[w].name; w++)
			if (unmap_memories[m].kind != POOL &&
			    unmap_ways[w].kinds & unmap_memories[m].kind)
				share(&unmap_memories[m], &unmap_ways[w]);
}
