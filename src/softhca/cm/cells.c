/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells.c - taking the lock and free cells.
 */
#include "cells.h"

#include <string.h>

#include "fabric/cancel.h"

/* Bytes by which the cells of a kind grow, and cells that are looked at before they do. Choices. */
#define BATCH_BYTES 65536u
#define PROBES      64u

int shca_cells_lock(struct shca_fabric *fabric)
{
	int cancel = shca_cancel_hold();

	shca_lock(&fabric->hdr->cm.lock);
	return cancel;
}

void shca_cells_unlock(struct shca_fabric *fabric, int cancel)
{
	shca_unlock(&fabric->hdr->cm.lock);
	shca_cancel_restore(cancel);
}

/* Backs more cells with memory. Returns false if there is none, or if all have some. */
static bool grow(struct shca_fabric *fabric, enum shca_cm_kind kind)
{
	struct shca_cm_pool *pool = &fabric->hdr->cm.pools[kind];
	uint32_t size = shca_cm_cell_size(kind), room = shca_cm_cell_count(kind) - pool->high;
	uint32_t batch = BATCH_BYTES / size < room ? BATCH_BYTES / size : room;
	uint64_t from = (pool->offset + (uint64_t)pool->high * size) & ~4095ULL;
	uint64_t to = (pool->offset + (uint64_t)(pool->high + batch) * size + 4095) & ~4095ULL;

	if (!batch || shca_fabric_back(fabric, from, to - from) ||
	    shca_fabric_touch((char *)fabric->hdr + from, to - from))
		return false;
	pool->high += batch;
	return true;
}

/* Returns a free one of the next `n` cells, or NULL. */
static void *search(struct shca_fabric *fabric, enum shca_cm_kind kind, uint32_t n)
{
	struct shca_cm_pool *pool = &fabric->hdr->cm.pools[kind];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t *cell = shca_cell(fabric, kind, pool->hint);

		pool->hint = pool->hint + 1 < pool->high ? pool->hint + 1 : 0;
		if (!*cell)
			return cell;
	}
	return NULL;
}

void *shca_cells_take(struct shca_fabric *fabric, enum shca_cm_kind kind, uint32_t *idx)
{
	struct shca_cm_pool *pool = &fabric->hdr->cm.pools[kind];
	void *cell = search(fabric, kind, pool->high < PROBES ? pool->high : PROBES);

	if (!cell) {
		uint32_t high = pool->high;

		if (grow(fabric, kind))
			pool->hint = high;
		cell = search(fabric, kind, pool->high);
	}
	if (!cell)
		return NULL;
	memset(cell, 0, shca_cm_cell_size(kind));
	*idx = shca_cells_index(fabric, kind, cell);
	return cell;
}
