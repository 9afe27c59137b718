/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collective calls that a process records and announces, from which others find out whether all
 * are in the same operation. Independent of MPI and of the adapter.
 */
#ifndef TUPLEQ_COLL_CALL_H
#define TUPLEQ_COLL_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stamp.h"

/* Calls that a process records. A power of two, because numbers wrap. A nonblocking call is no
 * longer compared once a call TUPLEQ_CALLS later has overwritten it. */
enum { TUPLEQ_CALLS = 32 };

/* A recorded call: an operation's number and its signature. Other processes of the node read it.
 */
struct mca_coll_tupleq_call {
	_Atomic uint64_t number;
	_Atomic uint64_t signature;
};

/* Returns the signature of an operation: its kind, root and length, and whether the next component
 * does it (`is_delegated`). */
static inline uint64_t mca_coll_tupleq_call_signature(enum mca_coll_tupleq_kind kind,
						      bool is_delegated, int root, uint64_t bytes)
{
	return (uint64_t)kind << 62 | (uint64_t)is_delegated << 61 |
	       (uint64_t)((uint32_t)root & 0x1fffffff) << 32 | (uint32_t)bytes;
}

static inline enum mca_coll_tupleq_kind mca_coll_tupleq_call_kind(uint64_t signature)
{
	return (enum mca_coll_tupleq_kind)(signature >> 62);
}

static inline bool mca_coll_tupleq_call_is_delegated(uint64_t signature)
{
	return signature >> 61 & 1;
}

static inline int mca_coll_tupleq_call_root(uint64_t signature)
{
	return (int)(signature >> 32 & 0x1fffffff);
}

static inline uint32_t mca_coll_tupleq_call_bytes(uint64_t signature)
{
	return (uint32_t)signature;
}

/* Returns a hash of a signature, which is short enough for an announcement. */
static inline uint32_t mca_coll_tupleq_call_digest(uint64_t signature)
{
	return (uint32_t)(((signature ^ signature >> 29) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Records a call. Only one process writes to an entry. While the call is being written, its number
 * is one that no operation with this entry has: a reader in an older operation must not take the
 * new call for that one. */
static inline void mca_coll_tupleq_call_write(struct mca_coll_tupleq_call *call, uint64_t number,
					      uint64_t signature)
{
	atomic_store_explicit(&call->number, number + 1, memory_order_relaxed);
	/* release: a reader that sees the new signature sees this number, or a later one. */
	atomic_store_explicit(&call->signature, signature, memory_order_release);
	/* release: a reader that sees the number sees the signature. */
	atomic_store_explicit(&call->number, number, memory_order_release);
}

/* Reads the signature of the operation `number`. Returns false if the entry has another one. */
static inline bool mca_coll_tupleq_call_read(const struct mca_coll_tupleq_call *call,
					     uint64_t number, uint64_t *signature)
{
	if (atomic_load_explicit(&call->number, memory_order_acquire) != number)
		return false;
	*signature = atomic_load_explicit(&call->signature, memory_order_acquire);
	/* The entry may have been overwritten meanwhile. */
	return atomic_load_explicit(&call->number, memory_order_relaxed) == number;
}

/*
 * The memory that receives announcements: two words, which several processes may write at a time.
 * The second word contains a checksum of both words and of the communicator's id, so the reader
 * recognises a mixture of two announcements and one for a communicator that had the memory before.
 */
struct mca_coll_tupleq_mailbox {
	_Atomic uint64_t number;
	_Atomic uint64_t check_word; /* 0: empty */
};

/* An announcement that a process has been in an operation for long. */
struct mca_coll_tupleq_announcement {
	uint64_t number;
	uint32_t digest; /* mca_coll_tupleq_call_digest() */
	unsigned hops;   /* how many times it is still forwarded */
};

/* Returns the second word of an announcement; `id` is the communicator's at the receiver. */
uint64_t
mca_coll_tupleq_announcement_check_word(const struct mca_coll_tupleq_announcement *announcement,
					uint64_t id);
/* Takes an announcement out. Returns false if there is none, or none that is whole. */
bool mca_coll_tupleq_mailbox_take(struct mca_coll_tupleq_mailbox *mailbox, uint64_t id,
				  struct mca_coll_tupleq_announcement *announcement);

#endif
