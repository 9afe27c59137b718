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

#include "schedule.h"

#define TUPLEQ_LINE 64

struct tupleq_line {
	_Alignas(TUPLEQ_LINE) _Atomic uint64_t word;
};

struct tupleq_segment {
	struct tupleq_line failed;  /* not 0: a process is gone; nobody is waited for any more */
	struct tupleq_line release; /* the leader's: all have entered */
	struct tupleq_line slots[TUPLEQ_SLOTS]; /* other nodes' */
	struct tupleq_line arrived[]; /* of each process of the node, by its number there */
};

/* For `n` processes, with `number` in each word but `failed`. `name` is what the others attach it
 * by, until it is unlinked. 0, or -errno. */
int tupleq_segment_create(int n, uint64_t number, uint64_t *name, struct tupleq_segment **segment);
int tupleq_segment_attach(int n, uint64_t name, struct tupleq_segment **segment);
void tupleq_segment_unlink(uint64_t name);
void tupleq_segment_detach(int n, struct tupleq_segment *segment);

/* Bytes that are mapped, and registered. */
size_t tupleq_segment_size(int n);

#endif
