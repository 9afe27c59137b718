/* SPDX-License-Identifier: BSD-3-Clause */
#include "handles.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "lib.h"

/* A handle is kind << 56 | generation << 32 | index. Slots lie in chunks, which never move. */
#define CHUNK       1024u
#define CHUNKS      4096u
#define GENERATIONS 0xffffffu

struct slot {
	_Atomic(void *) object;
	_Atomic uint32_t name; /* kind and generation: the upper half of the handle */
	uint32_t next_free;    /* index + 1 */
};

static _Atomic(struct slot *) chunks[CHUNKS];
static uint32_t nslots, first_free; /* index + 1 */

static struct slot *slot_at(uint32_t index)
{
	struct slot *chunk;

	if (index >= CHUNK * CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);
	return chunk ? &chunk[index % CHUNK] : NULL;
}

/* Makes room for one more slot. Returns its index, or UINT32_MAX. */
static uint32_t add_slot(void)
{
	struct slot *chunk;

	if (nslots == CHUNK * CHUNKS)
		return UINT32_MAX;
	if (nslots % CHUNK == 0 && !slot_at(nslots)) {
		chunk = calloc(CHUNK, sizeof(*chunk));
		if (!chunk)
			return UINT32_MAX;
		atomic_store_explicit(&chunks[nslots / CHUNK], chunk, memory_order_release);
	}
	return nslots++;
}

ptl_handle_any_t p4_handle_new(enum p4_kind kind, void *object)
{
	uint32_t index, generation, name;
	struct slot *slot;

	p4_assert_held();
	if (first_free) {
		index = first_free - 1;
		first_free = slot_at(index)->next_free;
	} else {
		index = add_slot();
		if (index == UINT32_MAX)
			return PTL_INVALID_HANDLE;
	}
	slot = slot_at(index);
	generation = (atomic_load_explicit(&slot->name, memory_order_relaxed) + 1) & GENERATIONS;
	name = (uint32_t)kind << 24 | generation;
	/* release: a reader that gets this object through a stale handle finds the name that
	 * p4_handle_free() stored, or a later one. */
	atomic_store_explicit(&slot->object, object, memory_order_release);
	atomic_store_explicit(&slot->name, name, memory_order_release);
	return (ptl_handle_any_t)name << 32 | index;
}

void *p4_handle_get(ptl_handle_any_t handle, enum p4_kind kind)
{
	struct slot *slot = slot_at((uint32_t)handle);
	void *object;

	if (p4_handle_kind(handle) != kind || !slot)
		return NULL;
	object = atomic_load_explicit(&slot->object, memory_order_acquire);
	if (atomic_load_explicit(&slot->name, memory_order_acquire) != (uint32_t)(handle >> 32))
		return NULL;
	return object;
}

void p4_handle_free(ptl_handle_any_t handle)
{
	uint32_t index = (uint32_t)handle;
	struct slot *slot = slot_at(index);

	p4_assert_held();
	atomic_store_explicit(&slot->object, NULL, memory_order_relaxed);
	/* The generation stays, so that the next handle of the slot has another one. */
	atomic_store_explicit(&slot->name, (uint32_t)(handle >> 32) & GENERATIONS,
			      memory_order_release);
	slot->next_free = first_free;
	first_free = index + 1;
}

void p4_handles_each(enum p4_kind kind, void (*fn)(enum p4_kind kind, void *object))
{
	p4_assert_held();
	for (uint32_t i = 0; i < nslots; i++) {
		const struct slot *slot = slot_at(i);

		if (slot->object && slot->name >> 24 == (uint32_t)kind)
			fn(kind, slot->object);
	}
}

void p4_handles_destroy(void)
{
	for (uint32_t i = 0; i < CHUNKS; i++) {
		free(atomic_load_explicit(&chunks[i], memory_order_relaxed));
		atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
	}
	nslots = first_free = 0;
}
