/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls as processes remember and announce them, to find out whether all are in the same operation.
 * No MPI and no adapter in it.
 */
#ifndef TUPLEQ_COLL_CALL_H
#define TUPLEQ_COLL_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stamp.h"

/* Calls that a process remembers. */
enum { TUPLEQ_CALLS = 32 };

/* A process's operation of that number, and what it is. Others of the node read it. */
struct mca_coll_tupleq_call {
	_Atomic uint64_t number;
	_Atomic uint64_t what;
};

/* `elsewhere`: the next component does it. */
static inline uint64_t mca_coll_tupleq_call_what(enum mca_coll_tupleq_kind kind, bool elsewhere,
						 int root, uint64_t bytes)
{
	return (uint64_t)kind << 62 | (uint64_t)elsewhere << 61 |
	       (uint64_t)((uint32_t)root & 0x1fffffff) << 32 | (uint32_t)bytes;
}

static inline enum mca_coll_tupleq_kind mca_coll_tupleq_call_kind(uint64_t what)
{
	return (enum mca_coll_tupleq_kind)(what >> 62);
}

static inline bool mca_coll_tupleq_call_elsewhere(uint64_t what)
{
	return what >> 61 & 1;
}

static inline int mca_coll_tupleq_call_root(uint64_t what)
{
	return (int)(what >> 32 & 0x1fffffff);
}

static inline uint32_t mca_coll_tupleq_call_bytes(uint64_t what)
{
	return (uint32_t)what;
}

static inline uint32_t mca_coll_tupleq_call_digest(uint64_t what)
{
	return (uint32_t)(((what ^ what >> 29) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* One process writes a call. While it does, the call has a number that no operation with this place
 * has: a reader that waits in an older operation must not take the new one for that. */
static inline void mca_coll_tupleq_call_write(struct mca_coll_tupleq_call *call, uint64_t number,
					      uint64_t what)
{
	atomic_store_explicit(&call->number, number + 1, memory_order_relaxed);
	/* release: a reader that sees what the call is sees that number, or a later one. */
	atomic_store_explicit(&call->what, what, memory_order_release);
	/* release: a reader that sees the number sees what the call is. */
	atomic_store_explicit(&call->number, number, memory_order_release);
}

/* False: the call is not the operation of that number, or no longer. */
static inline bool mca_coll_tupleq_call_read(const struct mca_coll_tupleq_call *call,
					     uint64_t number, uint64_t *what)
{
	if (atomic_load_explicit(&call->number, memory_order_acquire) != number)
		return false;
	*what = atomic_load_explicit(&call->what, memory_order_acquire);
	/* The call may have been written over meanwhile. */
	return atomic_load_explicit(&call->number, memory_order_relaxed) == number;
}

/*
 * An announcement: a process is in this operation, and has been for long. Two words that are
 * written into another process's memory, by several at times, so the second one says whether the
 * first belongs to it; and whether it is meant for the communicator that has the memory now.
 */
struct mca_coll_tupleq_news {
	_Atomic uint64_t number;
	_Atomic uint64_t rest; /* 0: none */
};

struct mca_coll_tupleq_told {
	uint64_t number;
	uint32_t digest;
	unsigned hops; /* how often it is to be passed on */
};

/* The second word. `id`: the communicator's, at who is told. */
uint64_t mca_coll_tupleq_news_rest(const struct mca_coll_tupleq_told *told, uint64_t id);
/* Takes it out. False: there is none, or none that is whole. */
bool mca_coll_tupleq_news_take(struct mca_coll_tupleq_news *news, uint64_t id,
			       struct mca_coll_tupleq_told *told);

#endif
