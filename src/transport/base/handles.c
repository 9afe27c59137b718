/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles are slots in a growing array. Free slots are in a FIFO through it. */
#include "base/handles.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#define INDEX_MASK ((1u << TQ_HANDLE_INDEX_BITS) - 1)
#define GEN_MASK   (UINT32_MAX >> TQ_HANDLE_INDEX_BITS)
#define FIRST_ROOM 64u /* slots of the table at first; it doubles */

static void append_free(struct tq_handles *handles, uint32_t index)
{
	handles->slots[index].object = NULL;
	handles->slots[index].next = 0;
	if (handles->free)
		handles->slots[handles->last - 1].next = index + 1;
	else
		handles->free = index + 1;
	handles->last = index + 1;
}

static int grow(struct tq_handles *handles)
{
	uint32_t room = handles->room ? 2 * handles->room : FIRST_ROOM;
	struct tq_handle_slot *slots;

	if (handles->room > INDEX_MASK)
		return -1;
	slots = realloc(handles->slots, room * sizeof(*slots));
	if (!slots)
		return -1;
	handles->slots = slots;
	if (handles->stats)
		TQ_LEVEL(handles->stats, handle_slots, room - handles->room);
	for (; handles->room < room; handles->room++) {
		slots[handles->room].gen = 1;
		append_free(handles, handles->room);
	}
	return 0;
}

uint32_t tq_handle_new(struct tq_handles *handles, void *object)
{
	struct tq_handle_slot *slot;
	uint32_t index;

	assert(object);
	if (!handles->free && grow(handles))
		return 0;
	index = handles->free - 1;
	slot = &handles->slots[index];
	handles->free = slot->next;
	slot->object = object;
	handles->used++;
	return slot->gen << TQ_HANDLE_INDEX_BITS | index;
}

void *tq_handle_get(const struct tq_handles *handles, uint32_t handle)
{
	uint32_t index = handle & INDEX_MASK;

	if (index >= handles->room || handles->slots[index].gen != handle >> TQ_HANDLE_INDEX_BITS)
		return NULL;
	return handles->slots[index].object;
}

void tq_handle_free(struct tq_handles *handles, uint32_t handle)
{
	uint32_t index = handle & INDEX_MASK;
	struct tq_handle_slot *slot = &handles->slots[index];

	assert(tq_handle_get(handles, handle));
	/* Generation 0 is left out: with index 0 it would be "no handle". */
	slot->gen = slot->gen == GEN_MASK ? 1 : slot->gen + 1;
	append_free(handles, index);
	handles->used--;
}

void tq_handles_destroy(struct tq_handles *handles)
{
	free(handles->slots);
	*handles = (struct tq_handles){0};
}
