/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a communicator on a node. The node's processes share it, and the first of them, the
 * leader, registers it so that the leaders of other nodes can write into it. Each word that a
 * process polls has a cache line of its own.
 */
#ifndef TUPLEQ_COLL_SEGMENT_H
#define TUPLEQ_COLL_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "schedule.h"
#include "words.h"

/* Bytes of a cache line. */
#define TUPLEQ_LINE 64

/*
 * Data have several buffers, so that those of an operation don't overwrite what hasn't been read.
 * Broadcasts take the first ones in turn, reductions the next ones; synchronizing operations
 * alternate between the last two (WRITES.md explains why these suffice).
 */
enum {
	TUPLEQ_BCAST_BUFFERS = 32,
	TUPLEQ_REDUCE_BUFFERS = 8,
	TUPLEQ_ROOTED_BUFFERS = TUPLEQ_BCAST_BUFFERS + TUPLEQ_REDUCE_BUFFERS,
	TUPLEQ_BUFFERS = TUPLEQ_ROOTED_BUFFERS + 2
};

struct mca_coll_tupleq_line {
	_Alignas(TUPLEQ_LINE) _Atomic uint64_t word;
	/* By buffer: the stamp of the last operation that used it, as the word's writer has it. */
	_Atomic uint32_t stamps[TUPLEQ_BUFFERS];
};

struct mca_coll_tupleq_segment {
	/* An errno if the communicator has failed, else 0. Written by processes of the node only;
	 * those of other nodes write to a notice (notices.h). */
	_Alignas(TUPLEQ_LINE) _Atomic uint64_t failed;
	/* The number of the last operation that the leader has ended. */
	struct mca_coll_tupleq_line release;
	/* Announcements of the node's processes for the leader to forward. */
	struct mca_coll_tupleq_mailbox mailbox;
	/* The numbers of the barriers that other nodes have entered. */
	_Alignas(TUPLEQ_LINE) _Atomic uint64_t slots[TUPLEQ_BARRIER_SLOTS];
	/*
	 * Messages of other nodes, results, and for each process of the node its input, the number
	 * of the operation that it has entered, and its last calls. The sizes depend on the shape.
	 */
	_Alignas(TUPLEQ_LINE) unsigned char rest[];
};

/* The sizes in a segment. Nodes of a communicator differ only in their number of processes, and the
 * parts that depend on it come last: offsets that other nodes write to are the same everywhere. */
struct mca_coll_tupleq_shape {
	int nslots;   /* slots of MPI_Allreduce */
	int ntree;    /* slots of trees */
	size_t limit; /* bytes of data, a multiple of the line */
	int nlocal;   /* processes of the node */
};

/* Returns how many messages come before those of a buffer. A broadcast has one slot. */
static inline size_t mca_coll_tupleq_messages_before(const struct mca_coll_tupleq_shape *shape,
						     int buffer)
{
	int reduce = buffer - TUPLEQ_BCAST_BUFFERS, synchronizing = buffer - TUPLEQ_ROOTED_BUFFERS;

	if (reduce <= 0)
		return (size_t)buffer;
	if (synchronizing <= 0)
		return TUPLEQ_BCAST_BUFFERS + (size_t)reduce * (size_t)shape->ntree;
	return TUPLEQ_BCAST_BUFFERS + TUPLEQ_REDUCE_BUFFERS * (size_t)shape->ntree +
	       (size_t)synchronizing * (size_t)shape->nslots;
}

/* Returns the bytes of a message: whole lines, because processes poll each message, and what
 * follows them is aligned to a line. */
static inline size_t mca_coll_tupleq_message_size(const struct mca_coll_tupleq_shape *shape)
{
	return (mca_coll_tupleq_words_size(shape->limit) + TUPLEQ_LINE - 1) / TUPLEQ_LINE *
	       TUPLEQ_LINE;
}

/* Returns the offset of a message, which another node writes. */
static inline size_t mca_coll_tupleq_message_offset(const struct mca_coll_tupleq_shape *shape,
						    int slot, int buffer)
{
	return offsetof(struct mca_coll_tupleq_segment, rest) +
	       (mca_coll_tupleq_messages_before(shape, buffer) + (size_t)slot) *
		       mca_coll_tupleq_message_size(shape);
}

static inline size_t mca_coll_tupleq_result_offset(const struct mca_coll_tupleq_shape *shape,
						   int buffer)
{
	/* The results follow the messages. */
	return mca_coll_tupleq_message_offset(shape, 0, TUPLEQ_BUFFERS) +
	       (size_t)buffer * shape->limit;
}

/* Returns the offset of a process's input. A broadcast has none: its data are those of the result.
 */
static inline size_t mca_coll_tupleq_input_offset(const struct mca_coll_tupleq_shape *shape,
						  int process, int buffer)
{
	/* The inputs follow the results. */
	return mca_coll_tupleq_result_offset(shape, TUPLEQ_BUFFERS) +
	       (size_t)(process * (TUPLEQ_BUFFERS - TUPLEQ_BCAST_BUFFERS) + buffer -
			TUPLEQ_BCAST_BUFFERS) *
		       shape->limit;
}

static inline size_t mca_coll_tupleq_entered_offset(const struct mca_coll_tupleq_shape *shape,
						    int process)
{
	return mca_coll_tupleq_input_offset(shape, shape->nlocal, TUPLEQ_BCAST_BUFFERS) +
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

static inline uint64_t *mca_coll_tupleq_message(struct mca_coll_tupleq_segment *segment,
						const struct mca_coll_tupleq_shape *shape, int slot,
						int buffer)
{
	return mca_coll_tupleq_at(segment, mca_coll_tupleq_message_offset(shape, slot, buffer));
}

static inline void *mca_coll_tupleq_result(struct mca_coll_tupleq_segment *segment,
					   const struct mca_coll_tupleq_shape *shape, int buffer)
{
	return mca_coll_tupleq_at(segment, mca_coll_tupleq_result_offset(shape, buffer));
}

static inline void *mca_coll_tupleq_input(struct mca_coll_tupleq_segment *segment,
					  const struct mca_coll_tupleq_shape *shape, int process,
					  int buffer)
{
	return mca_coll_tupleq_at(segment, mca_coll_tupleq_input_offset(shape, process, buffer));
}

static inline struct mca_coll_tupleq_line *
mca_coll_tupleq_entered(struct mca_coll_tupleq_segment *segment,
			const struct mca_coll_tupleq_shape *shape, int process)
{
	return mca_coll_tupleq_at(segment, mca_coll_tupleq_entered_offset(shape, process));
}

/* Returns a process's entry for the call `number`. */
static inline struct mca_coll_tupleq_call *
mca_coll_tupleq_call_of(struct mca_coll_tupleq_segment *segment,
			const struct mca_coll_tupleq_shape *shape, int process, uint64_t number)
{
	struct mca_coll_tupleq_call *calls =
		mca_coll_tupleq_at(segment, mca_coll_tupleq_calls_offset(shape, process));

	return &calls[number % TUPLEQ_CALLS];
}

/* Creates a segment (tq_segment_create()) with `number` in each call and in each line but `failed`.
 * Returns 0 or -errno. */
int mca_coll_tupleq_segment_create(const struct mca_coll_tupleq_shape *shape, uint64_t number,
				   uint64_t *name, struct mca_coll_tupleq_segment **segment);
/* Returns tq_segment_attach()'s results, and -EPERM if the segment is too small for the shape. */
int mca_coll_tupleq_segment_attach(const struct mca_coll_tupleq_shape *shape, uint64_t name,
				   struct mca_coll_tupleq_segment **segment);
void mca_coll_tupleq_segment_detach(struct mca_coll_tupleq_segment *segment);

/* Returns how many bytes are registered. */
size_t mca_coll_tupleq_segment_size(const struct mca_coll_tupleq_shape *shape);

#endif
