/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/ring.h"

#include <errno.h>
#include <string.h>

#define ALIGN 8u             /* of words and messages */
#define SKIP  UINT32_MAX     /* a word: the next message is at the start of the ring */
#define MOST  (1u << 30)     /* bytes of a ring */
#define LEAST (4u * TQ_LINE) /* bytes of a ring */

typedef _Atomic uint32_t word; /* the length of a message; the 4 bytes behind it are not used */

static word *word_at(struct tq_ring *ring, uint32_t offset)
{
	return (word *)(void *)(ring->bytes + offset);
}

/* Returns the bytes of a message with its word. */
static uint32_t record(uint32_t len)
{
	return ALIGN + ((len + ALIGN - 1) & ~(ALIGN - 1));
}

bool tq_ring_carries(uint32_t size, uint32_t len)
{
	/* Wherever the last message ended, half of an empty ring is in one piece, and the word
	 * behind the message needs room, too. */
	return size >= LEAST && size <= MOST && !(size & (size - 1)) && len <= size / 2 &&
	       record(len) + ALIGN <= size / 2;
}

uint32_t tq_ring_size(uint64_t size, uint32_t len)
{
	uint32_t rounded = LEAST;

	while (rounded < MOST && (rounded < size || rounded / 2 < record(len) + ALIGN))
		rounded *= 2;
	return rounded;
}

/* ---- the sender ---- */

/* Takes the reader's position. A position that can't be breaks the ring for good. */
static void look(struct tq_ring_out *out)
{
	uint64_t read = atomic_load_explicit(&out->ring->read, memory_order_acquire);

	if (read - out->read > out->sent - out->read || read % ALIGN)
		out->broken = true;
	else
		out->read = read;
}

/* Returns the bytes that are left at the end of the ring if a message of `len` bytes doesn't fit
 * there. */
static uint32_t skipped(const struct tq_ring_out *out, uint32_t len)
{
	uint32_t left = out->size - (uint32_t)(out->sent & (out->size - 1));

	return record(len) > left ? left : 0;
}

void *tq_ring_room(struct tq_ring_out *out, uint32_t len)
{
	uint32_t skip = skipped(out, len), need = skip + record(len) + ALIGN;
	uint32_t offset = skip ? 0 : (uint32_t)(out->sent & (out->size - 1));

	if (out->broken)
		return NULL;

	if (need > out->size - (out->sent - out->read)) {
		look(out);
		if (out->broken || need > out->size - (out->sent - out->read))
			return NULL;
	}
	return out->ring->bytes + offset + ALIGN;
}

void tq_ring_send(struct tq_ring_out *out, uint32_t len)
{
	uint32_t skip = skipped(out, len), mask = out->size - 1;
	uint32_t start = (uint32_t)out->sent & mask, offset = (start + skip) & mask;

	/* Relaxed: the stores below order it. */
	atomic_store_explicit(word_at(out->ring, (offset + record(len)) & mask), 0,
			      memory_order_relaxed);
	/* Release: a reader that sees the length sees the message, and the 0 behind it. */
	atomic_store_explicit(word_at(out->ring, offset), len, memory_order_release);
	/* Release: a reader that follows this word sees the length at the start. */
	if (skip)
		atomic_store_explicit(word_at(out->ring, start), SKIP, memory_order_release);
	out->sent += skip + record(len);
}

bool tq_ring_has_read(struct tq_ring_out *out, uint64_t sent)
{
	look(out);
	return out->broken || out->read >= sent;
}

void tq_ring_await(struct tq_ring_out *out)
{
	if (atomic_load_explicit(&out->ring->awaited, memory_order_relaxed))
		return;
	atomic_store_explicit(&out->ring->awaited, 1, memory_order_relaxed);
	/* Either this process sees what was read, or the reader sees that it waits
	 * (tq_ring_is_awaited()). */
	atomic_thread_fence(memory_order_seq_cst);
}

/* ---- the reader ---- */

void tq_ring_reset(struct tq_ring_in *in)
{
	in->read = 0;
	atomic_store_explicit(word_at(in->ring, 0), 0, memory_order_relaxed);
	atomic_store_explicit(&in->ring->awaited, 0, memory_order_relaxed);
	atomic_store_explicit(&in->ring->cut, 0, memory_order_relaxed);
	atomic_store_explicit(&in->ring->read, 0, memory_order_release);
}

int tq_ring_read(struct tq_ring_in *in, void *message, uint32_t max, uint32_t *len)
{
	uint32_t offset = (uint32_t)in->read & (in->size - 1), n;

	n = atomic_load_explicit(word_at(in->ring, offset), memory_order_acquire);
	if (n == SKIP && offset) {
		in->read += in->size - offset;
		offset = 0;
		n = atomic_load_explicit(word_at(in->ring, 0), memory_order_acquire);
	}
	if (!n)
		return 0;
	if (n > max || record(n) > in->size - offset)
		return -EPROTO;
	memcpy(message, in->ring->bytes + offset + ALIGN, n);
	in->read += record(n);
	/* Release: the message was copied before the sender may write there again. */
	atomic_store_explicit(&in->ring->read, in->read, memory_order_release);
	*len = n;
	return 1;
}

bool tq_ring_is_empty(const struct tq_ring_in *in)
{
	uint32_t offset = (uint32_t)in->read & (in->size - 1);

	return !atomic_load_explicit(word_at(in->ring, offset), memory_order_relaxed);
}

bool tq_ring_is_awaited(struct tq_ring_in *in)
{
	/* As in tq_ring_await(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&in->ring->awaited, memory_order_relaxed))
		return false;
	atomic_store_explicit(&in->ring->awaited, 0, memory_order_relaxed);
	return true;
}
