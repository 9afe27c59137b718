/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring: control messages from one process to another of its node, in memory that both map. The
 * ring has one sender and one reader, and neither takes a lock.
 *
 * A message lies in one piece behind a word of 8 bytes with its length, at a multiple of 8. The
 * sender writes the message, then 0 into the word behind it, and then its length: so a reader that
 * sees a length sees the whole message, and knows that nothing follows until that word changes,
 * too. Where the message doesn't fit before the end of the ring, a word that says so leads to the
 * start.
 *
 * Neither process trusts the other: each keeps its position for itself, looks at each word of the
 * other once, and checks what it saw. The reader copies a message before it looks into it.
 */
#ifndef TQ_NET_RING_H
#define TQ_NET_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TQ_LINE 64u /* bytes of a cache line */

/* A ring as it lies in memory. */
struct tq_ring {
	_Alignas(TQ_LINE) _Atomic uint64_t read; /* the reader's: bytes that it has read in all */
	_Alignas(TQ_LINE) _Atomic uint32_t awaited; /* the sender waits for room; the reader takes
						       note of that by writing 0 */
	_Atomic uint32_t cut; /* the sender's: 1 if its memory no longer holds what its RTS say */
	_Alignas(TQ_LINE) unsigned char bytes[];
};
static_assert(offsetof(struct tq_ring, bytes) == 2 * TQ_LINE, "shared format");

/* The messages for which a process has to be woken. */
enum tq_asleep {
	TQ_AWAKE,
	TQ_ASLEEP,    /* for one that can't wait */
	TQ_ASLEEP_ALL /* for any */
};

/* The most rings of a process, as reader: their bits in tq_rings.ready fill a cache line. */
#define TQ_RINGS_MAX 512u

/* The memory of a process in which others of its node have rings: a segment (tq_segment_create())
 * that all of them map. */
struct tq_rings {
	_Alignas(TQ_LINE) _Atomic uint32_t asleep; /* enum tq_asleep; a sender that wakes the
						      process writes TQ_AWAKE */
	/* How others find memory of the process, see peer_memory.h. */
	uint32_t pid;
	uint64_t proof; /* where its endpoint's nonce is */
	/* A bit for each ring: the process looks at it. Senders set it, and the process clears it
	 * when a ring has been empty for long. */
	_Alignas(TQ_LINE) _Atomic uint64_t ready[TQ_RINGS_MAX / 64];
	_Alignas(TQ_LINE) unsigned char rings[];
};
static_assert(offsetof(struct tq_rings, rings) == 2 * TQ_LINE, "shared format");

/* Returns the bytes of a segment with n rings of that size. */
static inline size_t tq_rings_len(uint32_t n, uint32_t size)
{
	return sizeof(struct tq_rings) + n * (sizeof(struct tq_ring) + size);
}

/* Returns one of the rings, which all have that size. */
static inline struct tq_ring *tq_rings_at(struct tq_rings *rings, uint32_t n, uint32_t size)
{
	return (struct tq_ring *)(void *)(rings->rings + n * (sizeof(struct tq_ring) + size));
}

/* The sender's end. */
struct tq_ring_out {
	struct tq_ring *ring;
	uint32_t size; /* bytes[], a power of two */
	uint64_t sent; /* bytes in all */
	uint64_t read; /* as the reader said last */
	bool broken;   /* what the reader said can't be */
};

/* The reader's end. */
struct tq_ring_in {
	struct tq_ring *ring;
	uint32_t size;
	uint64_t read;
};

/* Returns the size of a ring of at least `size` bytes that carries messages of `len` bytes. */
uint32_t tq_ring_size(uint64_t size, uint32_t len);
/* Returns true if the ring can carry messages of `len` bytes. */
bool tq_ring_carries(uint32_t size, uint32_t len);

/* Empties a ring. Only its reader may do that, while nobody sends. */
void tq_ring_reset(struct tq_ring_in *in);

/* Returns the place for a message of `len` bytes; NULL: there is no room for it now, or the ring is
 * broken. */
void *tq_ring_room(struct tq_ring_out *out, uint32_t len);
/* Shows the reader the message of `len` bytes in the place that tq_ring_room() has given for it. */
void tq_ring_send(struct tq_ring_out *out, uint32_t len);
/* Returns true if the reader has read all up to the position `sent`. */
bool tq_ring_has_read(struct tq_ring_out *out, uint64_t sent);
/* Asks the reader, unless it was asked already, to tell when there is room. The sender has to look
 * for room once more after that: a reader that has just read may not have seen the question. */
void tq_ring_await(struct tq_ring_out *out);

/* Copies the next message, of at most `max` bytes. Returns 1, 0 if there is none, or -EPROTO if
 * what the sender has written is no message. */
int tq_ring_read(struct tq_ring_in *in, void *message, uint32_t max, uint32_t *len);
/* Returns true if there is no message. */
bool tq_ring_is_empty(const struct tq_ring_in *in);
/* To be called when the ring was read empty. Returns true if the sender waits for room, and has to
 * be told; once for each time that it asked. */
bool tq_ring_is_awaited(struct tq_ring_in *in);

#endif
