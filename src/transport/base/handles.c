/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: slots in a growing array, those that are free in a FIFO through it. */
#include "base/handles.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define INDEX_MASK ((1u << TQ_HANDLE_INDEX_BITS) - 1)
#define GEN_MASK   (UINT32_MAX >> TQ_HANDLE_INDEX_BITS)
#define FIRST_ROOM 64u

static void append_free(struct tq_handles *h, uint32_t index)
{
	h->slots[index].what = NULL;
	h->slots[index].next = 0;
	if (h->free)
		h->slots[h->last - 1].next = index + 1;
	else
		h->free = index + 1;
	h->last = index + 1;
}

static int grow(struct tq_handles *h)
{
	uint32_t room = h->room ? 2 * h->room : FIRST_ROOM;
	struct tq_handle_slot *slots;

	if (h->room > INDEX_MASK)
		return -1;
	slots = realloc(h->slots, room * sizeof(*slots));
	if (!slots)
		return -1;
	h->slots = slots;
	if (h->stats)
		TQ_LEVEL(h->stats, handle_slots, room - h->room);
	for (; h->room < room; h->room++) {
		slots[h->room].gen = 1;
		append_free(h, h->room);
	}
	return 0;
}

uint32_t tq_handle_new(struct tq_handles *h, void *what)
{
	struct tq_handle_slot *slot;
	uint32_t index;

	assert(what);
	if (!h->free && grow(h))
		return 0;
	index = h->free - 1;
	slot = &h->slots[index];
	h->free = slot->next;
	slot->what = what;
	h->used++;
	return slot->gen << TQ_HANDLE_INDEX_BITS | index;
}

void *tq_handle_get(const struct tq_handles *h, uint32_t handle)
{
	uint32_t index = handle & INDEX_MASK;

	if (index >= h->room || h->slots[index].gen != handle >> TQ_HANDLE_INDEX_BITS)
		return NULL;
	return h->slots[index].what;
}

void tq_handle_free(struct tq_handles *h, uint32_t handle)
{
	uint32_t index = handle & INDEX_MASK;
	struct tq_handle_slot *slot = &h->slots[index];

	assert(tq_handle_get(h, handle));
	/* Generation 0 is left out: with index 0 it would be "no handle". */
	slot->gen = slot->gen == GEN_MASK ? 1 : slot->gen + 1;
	append_free(h, index);
	h->used--;
}

void tq_handles_destroy(struct tq_handles *h)
{
	free(h->slots);
	*h = (struct tq_handles){0};
}
