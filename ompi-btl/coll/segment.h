/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a communicator on a node: shared by its processes there, and registered by the
 * first of them, the leader, so that the leaders of other nodes write into it. Each word that is
 * waited for has a cache line of its own.
 */
#ifndef TUPLEQ_COLL_SEGMENT_H
#define TUPLEQ_COLL_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "schedule.h"
#include "words.h"

#define TUPLEQ_LINE 64

/*
 * An operation's data have a place of their own in each slot and at each process of a node. Those
 * that keep their processes together alternate between two; the others take theirs in turn.
 */
enum { TUPLEQ_TURNS = 8, TUPLEQ_PLACES = TUPLEQ_TURNS + 2 };

struct mca_coll_tupleq_line {
	_Alignas(TUPLEQ_LINE) _Atomic uint64_t word;
	/* The node's: of the operation that had each place last, by the process that wrote the
	 * word. */
	_Atomic uint32_t stamps[TUPLEQ_PLACES];
};

_Static_assert(sizeof(struct mca_coll_tupleq_line) == TUPLEQ_LINE,
	       "what is read together is one line");

struct mca_coll_tupleq_segment {
	struct mca_coll_tupleq_line failed; /* not 0: why nobody is waited for any more (an errno).
					     * Written on the node only: see marks.h */
	struct mca_coll_tupleq_line
		release; /* the leader's: the operation of that number is done */
	_Alignas(TUPLEQ_LINE) uint64_t name;             /* what it was made under */
	struct mca_coll_tupleq_news news;                /* for the leader, to be passed on */
	struct mca_coll_tupleq_line slots[TUPLEQ_SLOTS]; /* other nodes' numbers */
	/*
	 * What the shape says: messages of other nodes; the results; of each process of the node
	 * (by its number there) the data that it brings, the number of the operation that it
	 * has entered, and its last calls.
	 */
	_Alignas(TUPLEQ_LINE) unsigned char rest[];
};

/* Of nodes of a communicator only the number of processes may differ, which comes last. */
struct mca_coll_tupleq_shape {
	int nslots;   /* for data that all bring and all get */
	int ntree;    /* for data on a tree */
	size_t limit; /* bytes of data, a multiple of the line */
	int nlocal;   /* processes */
};

/* Other nodes write here; the offset is the same at all of them. */
static inline size_t mca_coll_tupleq_message_offset(const struct mca_coll_tupleq_shape *shape,
						    int slot, int place)
{
	int before = place < TUPLEQ_TURNS
			     ? slot * TUPLEQ_TURNS + place
			     : shape->ntree * TUPLEQ_TURNS + slot * (TUPLEQ_PLACES - TUPLEQ_TURNS) +
				       place - TUPLEQ_TURNS;

	return offsetof(struct mca_coll_tupleq_segment, rest) +
	       (size_t)before * mca_coll_tupleq_words_size(shape->limit);
}

static inline size_t mca_coll_tupleq_result_offset(const struct mca_coll_tupleq_shape *shape,
						   int place)
{
	/* Behind the messages. */
	return mca_coll_tupleq_message_offset(shape, shape->nslots, TUPLEQ_TURNS) +
	       (size_t)place * shape->limit;
}

static inline size_t mca_coll_tupleq_brought_offset(const struct mca_coll_tupleq_shape *shape,
						    int process, int place)
{
	/* Behind the results. */
	return mca_coll_tupleq_result_offset(shape, (1 + process) * TUPLEQ_PLACES + place);
}

static inline size_t mca_coll_tupleq_entered_offset(const struct mca_coll_tupleq_shape *shape,
						    int process)
{
	return mca_coll_tupleq_brought_offset(shape, shape->nlocal, 0) +
	       (size_t)process * sizeof(struct mca_coll_tupleq_line);
}

static inline size_t mca_coll_tupleq_calls_offset(const struct mca_coll_tupleq_shape *shape,
						  int process)
{
	return mca_coll_tupleq_entered_offset(shape, shape->nlocal) +
	       (size_t)process * TUPLEQ_CALLS * sizeof(struct mca_coll_tupleq_call);
}

static inline void *mca_coll_tupleq_at(struct mca_coll_tupleq_segment *segment, size_t offset)
{
	return (unsigned char *)segment + offset;
}

static inline uint64_t *mca_coll_tupleq_message(struct mca_coll_tupleq_segment *s,
						const struct mca_coll_tupleq_shape *shape, int slot,
						int place)
{
	return mca_coll_tupleq_at(s, mca_coll_tupleq_message_offset(shape, slot, place));
}

static inline void *mca_coll_tupleq_result(struct mca_coll_tupleq_segment *s,
					   const struct mca_coll_tupleq_shape *shape, int place)
{
	return mca_coll_tupleq_at(s, mca_coll_tupleq_result_offset(shape, place));
}

static inline void *mca_coll_tupleq_brought(struct mca_coll_tupleq_segment *s,
					    const struct mca_coll_tupleq_shape *shape, int process,
					    int place)
{
	return mca_coll_tupleq_at(s, mca_coll_tupleq_brought_offset(shape, process, place));
}

static inline struct mca_coll_tupleq_line *
mca_coll_tupleq_entered(struct mca_coll_tupleq_segment *s,
			const struct mca_coll_tupleq_shape *shape, int process)
{
	return mca_coll_tupleq_at(s, mca_coll_tupleq_entered_offset(shape, process));
}

/* The process's entry for the call of that number. */
static inline struct mca_coll_tupleq_call *
mca_coll_tupleq_call_of(struct mca_coll_tupleq_segment *s,
			const struct mca_coll_tupleq_shape *shape, int process, uint64_t number)
{
	struct mca_coll_tupleq_call *calls =
		mca_coll_tupleq_at(s, mca_coll_tupleq_calls_offset(shape, process));

	return &calls[number % TUPLEQ_CALLS];
}

/*
 * With `number` in each line but `failed` and in each call, and no data. `name` is what the others
 * attach it by, as long as a process has it. 0, or -errno; -ESTALE: what has that number here is
 * another one, as in a container that shares no IPC namespace with the one that made it.
 */
int mca_coll_tupleq_segment_create(const struct mca_coll_tupleq_shape *shape, uint64_t number,
				   uint64_t *name, struct mca_coll_tupleq_segment **segment);
int mca_coll_tupleq_segment_attach(const struct mca_coll_tupleq_shape *shape, uint64_t name,
				   struct mca_coll_tupleq_segment **segment);
void mca_coll_tupleq_segment_detach(struct mca_coll_tupleq_segment *segment);

/* Bytes that are mapped, and registered. */
size_t mca_coll_tupleq_segment_size(const struct mca_coll_tupleq_shape *shape);

#endif
