/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unpolled.c - see unpolled.h. Reads the file rather than a mapping: the owner may free the ring at
 * any time. A hole in the file reads as zeros, and touching a mapped one would take memory.
 */
#include "unpolled.h"

#include <unistd.h>

/* Reads the head of a CQ's ring, whose word in the entry was `ring`. Returns the head's place in
 * the file, or 0 if there is no such ring. */
static uint64_t read_head(const struct shca_fabric *fabric, const struct shca_cq_entry *cq,
			  uint64_t ring, struct shca_cq_ring *head)
{
	unsigned owner = shca_word_owner(atomic_load(&cq->state_word));
	uint64_t at = fabric->hdr->arenas + owner * SHCA_ARENA + (ring >> 8);

	if (owner >= SHCA_MAX_PROCS || ring >> 8 >= SHCA_ARENA ||
	    pread(fabric->fd, head, sizeof(*head), (off_t)at) != sizeof(*head))
		return 0;
	return at;
}

static uint64_t count(const struct shca_cq_entry *cq, const struct shca_cq_ring *head)
{
	/* The difference is negative if a completion was polled whose producer hasn't moved the
	 * tail yet. */
	int64_t n = (int64_t)(head->tail - head->bias - atomic_load(&cq->polled));

	return n > 0 ? (uint64_t)n : 0;
}

uint64_t shca_unpolled_count(const struct shca_fabric *fabric, const struct shca_cq_entry *cq)
{
	struct shca_cq_ring head;

	return read_head(fabric, cq, atomic_load(&cq->ring), &head) ? count(cq, &head) : 0;
}

bool shca_unpolled_any(const struct shca_fabric *fabric, const struct shca_cq_entry *cq)
{
	uint64_t ring = atomic_load(&cq->ring), word;
	struct shca_cq_ring head;
	uint64_t at = read_head(fabric, cq, ring, &head);

	if (!at)
		return false;
	/* A resize in between moved the completions. */
	if (atomic_load(&cq->ring) != ring)
		return true;
	if (count(cq, &head))
		return true;
	/* The producer may have died before it moved the tail behind its completion. */
	at += sizeof(head) + (head.tail & ((1ULL << (ring & 0xff)) - 1)) * cq->stride;
	return pread(fabric->fd, &word, sizeof(word), (off_t)at) == sizeof(word) &&
	       SHCA_WORD_IS_AT(word, head.tail) && SHCA_WORD_STATE(word) != SHCA_SLOT_FREE;
}
