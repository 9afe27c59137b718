/* SPDX-License-Identifier: BSD-3-Clause */
#include "nbc_memory.h"

#include <stdlib.h>
#include <utlist.h>

#include "coll.h"

unsigned long long mca_coll_tupleq_memory_allocated;

static struct {
	opal_mutex_t lock;                   /* guards the others, and the counter */
	struct mca_coll_tupleq_memory *kept; /* list: the oldest first */
	size_t bytes;                        /* of these */
} memory = {.lock = OPAL_MUTEX_STATIC_INIT};

/* Takes the piece that was given back last among those that are long enough, but not more than
 * twice as long. Returns NULL if there is none. */
static struct mca_coll_tupleq_memory *take_kept(size_t bytes)
{
	struct mca_coll_tupleq_memory *piece = memory.kept ? memory.kept->prev : NULL;

	while (piece && (piece->size < bytes || piece->size / 2 > bytes))
		piece = piece == memory.kept ? NULL : piece->prev;
	if (!piece)
		return NULL;
	DL_DELETE(memory.kept, piece);
	memory.bytes -= piece->size;
	return piece;
}

struct mca_coll_tupleq_memory *mca_coll_tupleq_memory_take(size_t bytes)
{
	struct mca_coll_tupleq_memory *piece;

	OPAL_THREAD_LOCK(&memory.lock);
	piece = take_kept(bytes);
	mca_coll_tupleq_memory_allocated += !piece;
	OPAL_THREAD_UNLOCK(&memory.lock);
	if (piece)
		return piece;
	piece = malloc(sizeof(*piece) + bytes);
	if (piece)
		piece->size = bytes;
	return piece;
}

void mca_coll_tupleq_memory_give_back(struct mca_coll_tupleq_memory *piece)
{
	struct mca_coll_tupleq_memory *next, *surplus = NULL;

	OPAL_THREAD_LOCK(&memory.lock);
	DL_APPEND(memory.kept, piece);
	memory.bytes += piece->size;
	while (memory.bytes > (size_t)mca_coll_tupleq.memory) {
		next = memory.kept;
		DL_DELETE(memory.kept, next);
		memory.bytes -= next->size;
		DL_APPEND(surplus, next);
	}
	OPAL_THREAD_UNLOCK(&memory.lock);
	/* free() may call the PML's memory hooks. */
	DL_FOREACH_SAFE(surplus, piece, next)
		free(piece);
}

void mca_coll_tupleq_memory_close(void)
{
	struct mca_coll_tupleq_memory *piece, *next;

	DL_FOREACH_SAFE(memory.kept, piece, next)
		free(piece);
	memory.kept = NULL;
	memory.bytes = 0;
}
