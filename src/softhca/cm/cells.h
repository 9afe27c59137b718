/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells.h - the lock of the connection manager, and its cells: channels, identifiers, memberships,
 * events. Every other function of this room is called with the lock held, unless it says otherwise.
 */
#ifndef SHCA_CM_CELLS_H
#define SHCA_CM_CELLS_H

#include "fabric/fabric.h"

/* Take and release the lock; between them the calling thread can't be cancelled. The result of the
 * first is passed to the second. */
int shca_cells_lock(struct shca_fabric *fabric);
void shca_cells_unlock(struct shca_fabric *fabric, int cancel);

/* Takes a free cell, and stores its index. The cell is zero but for its first word, which the
 * caller sets last. Returns NULL if there is none, or no memory. */
void *shca_cells_take(struct shca_fabric *fabric, enum shca_cm_kind kind, uint32_t *idx);

/* Returns the number of cells that have memory. */
static inline uint32_t shca_cells_high(const struct shca_fabric *fabric, enum shca_cm_kind kind)
{
	return fabric->hdr->cm.pools[kind].high;
}

/* Returns a cell, which may be free. */
static inline void *shca_cell(const struct shca_fabric *fabric, enum shca_cm_kind kind,
			      uint32_t idx)
{
	return (char *)fabric->hdr + fabric->hdr->cm.pools[kind].offset +
	       (uint64_t)idx * shca_cm_cell_size(kind);
}

/* Returns a cell that is in use, or NULL. */
static inline void *shca_cells_find(const struct shca_fabric *fabric, enum shca_cm_kind kind,
				    uint32_t idx)
{
	uint32_t *cell = idx < shca_cells_high(fabric, kind) ? shca_cell(fabric, kind, idx) : NULL;

	return cell && *cell ? cell : NULL;
}

static inline uint32_t shca_cells_index(const struct shca_fabric *fabric, enum shca_cm_kind kind,
					const void *cell)
{
	return (uint32_t)(((uint64_t)((const char *)cell - (const char *)fabric->hdr) -
			   fabric->hdr->cm.pools[kind].offset) /
			  shca_cm_cell_size(kind));
}

static inline struct shca_cm_id *shca_cm_id(const struct shca_fabric *fabric, uint32_t idx)
{
	return shca_cells_find(fabric, SHCA_CM_ID, idx);
}
static inline uint32_t shca_cm_id_index(const struct shca_fabric *fabric,
					const struct shca_cm_id *id)
{
	return shca_cells_index(fabric, SHCA_CM_ID, id);
}

#endif
