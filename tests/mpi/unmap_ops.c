/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts "coll" and "rma": collectives and one-sided operations on the memory that stays. */
#define _GNU_SOURCE
#include "unmap.h"

#include <sys/mman.h>

/* ---- "coll", "rma": operations of the other kinds on a part ---- */

/* Has a collective on the upper half wait for the peer while the lower half is given back. */
void unmap_check_coll(void)
{
	const size_t size = 8 * unmap_large, half = size / 2, n = unmap_large / sizeof(uint32_t);
	unsigned char *map = t_rank == OWNER ? unmap_map_anonymous(size) : unmap_mirror, *at;
	uint32_t *in = (uint32_t *)(map + half), *out = in + n, *other = out + n;
	MPI_Request request[3];

	t_begin("unmap: nonblocking collectives pending");
	for (int round = 0; round < 8; round++) {
		const struct unmap_way *way = round % 2 ? &unmap_ways[1] : &unmap_ways[0];
		struct t_msg message = unmap_next_message(&unmap_all, PEER, TAG);

		unmap_exchange(&unmap_all, map, size);
		at = map;
		for (int late = 0; late < 2; late++) {
			/* The owner starts first unless it is late. */
			if (t_rank == (late ? PEER : OWNER)) {
				for (size_t i = 0; i < n; i++)
					in[i] = (uint32_t)(t_rank + 1) * (uint32_t)i;
				if (t_rank == PEER)
					t_fill(other, unmap_large, message);
				MPI_Ibcast(other, (int)unmap_large, MPI_BYTE, PEER, MPI_COMM_WORLD,
					   &request[0]);
				MPI_Iallreduce(in, out, (int)n, MPI_UINT32_T, MPI_SUM,
					       MPI_COMM_WORLD, &request[1]);
				MPI_Ibarrier(MPI_COMM_WORLD, &request[2]);
			}
			if (late)
				continue;
			unmap_give(way, map, map, half);
			if (!way->stays_mapped)
				at = unmap_renew(map, half);
			unmap_exchange(&unmap_all, at, half);
		}
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
		if (t_rank == OWNER)
			t_verify(other, unmap_large, message);
		for (size_t i = 0; i < n; i++)
			t_true(out[i] == 3 * (uint32_t)i, "element %zu of the sum is %u", i,
			       out[i]);
	}
	t_end();
	t_begin("unmap: collectives between");
	for (int round = 0; round < 8; round++) {
		struct t_msg message = unmap_next_message(&unmap_all, OWNER, TAG);

		unmap_exchange(&unmap_all, map, size);
		unmap_give(&unmap_ways[0], map, map, half);
		at = unmap_renew(map, half);
		if (t_rank == OWNER)
			t_fill(at, half, message);
		else if (t_rank == PEER)
			at = unmap_mirror;
		MPI_Bcast(at, (int)half, MPI_BYTE, OWNER, MPI_COMM_WORLD);
		t_verify(at, half, message);
	}
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}

/* Makes a window of the upper half, and puts from the upper half, too. */
void unmap_check_rma(void)
{
	const size_t size = 8 * unmap_large, half = size / 2, quarter = size / 4;
	unsigned char *map = t_rank == OWNER ? unmap_map_anonymous(size) : unmap_spare, *at;
	MPI_Win win;

	t_begin("unmap: a window in a part");
	unmap_exchange(&unmap_all, t_rank == OWNER ? map : unmap_mirror, size);
	MPI_Win_create(map + half, (MPI_Aint)half, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int round = 0; round < 16; round++) {
		const struct unmap_way *way = &unmap_ways[round % 2];
		struct t_msg here = unmap_next_message(&unmap_all, t_rank, TAG);
		struct t_msg there = here;
		const size_t bytes = round % 4 < 2 ? quarter : unmap_page;

		there.src = !t_rank;
		unmap_exchange(&unmap_all, t_rank == OWNER ? map : unmap_mirror, half);
		/* Each rank puts its second part of the window into the first part of the
		 * other's. */
		t_fill(map + half + quarter, bytes, here);
		MPI_Win_fence(0, win);
		MPI_Put(map + half + quarter, (int)bytes, MPI_BYTE, !t_rank, 0, (int)bytes,
			MPI_BYTE, win);
		unmap_give(way, map, map, half);
		at = way->stays_mapped ? map : unmap_renew(map, half);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
		t_verify(map + half, bytes, there);
		unmap_exchange(&unmap_all, t_rank == OWNER ? at : unmap_mirror, half);
		/* The peer gets and puts while the owner gives memory back and calls other
		 * functions. */
		if (t_rank == PEER) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, win);
			MPI_Get(unmap_mirror, (int)bytes, MPI_BYTE, OWNER, (MPI_Aint)quarter,
				(int)bytes, MPI_BYTE, win);
			MPI_Win_unlock(OWNER, win);
			t_verify(unmap_mirror, bytes, there);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, win);
			MPI_Put(unmap_mirror, (int)bytes, MPI_BYTE, OWNER, 0, (int)bytes, MPI_BYTE,
				win);
			MPI_Win_unlock(OWNER, win);
		} else if (t_rank == OWNER) {
			unmap_give(way, map, map, half);
			at = way->stays_mapped ? map : unmap_renew(map, half);
		}
		unmap_exchange(&unmap_all, t_rank == OWNER ? at : unmap_mirror, half);
		if (t_rank == OWNER) {
			MPI_Win_lock(MPI_LOCK_SHARED, OWNER, 0, win);
			t_verify(map + half, bytes, here);
			MPI_Win_unlock(OWNER, win);
		}
	}
	MPI_Win_free(&win);
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}
