/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of nonblocking operations: for operands and for packed data. Memory is kept when an
 * operation has ended, because the adapter has it registered, and a new registration takes longer
 * than a short operation.
 */
#ifndef TUPLEQ_COLL_NBC_MEMORY_H
#define TUPLEQ_COLL_NBC_MEMORY_H

#include <stddef.h>

/* A piece of memory, in a list. */
struct mca_coll_tupleq_memory {
	struct mca_coll_tupleq_memory *next, *prev;
	size_t size;
	_Alignas(max_align_t) unsigned char bytes[];
};

/* Returns a piece of at least that many bytes, or NULL without memory. */
struct mca_coll_tupleq_memory *mca_coll_tupleq_memory_take(size_t bytes);

/* Takes a piece back, and frees the oldest pieces that are more than the parameter `memory` says.
 */
void mca_coll_tupleq_memory_give_back(struct mca_coll_tupleq_memory *piece);

/* Frees all pieces that are kept. */
void mca_coll_tupleq_memory_close(void);

/* The number of pieces that came from the system, for a performance variable. */
extern unsigned long long mca_coll_tupleq_memory_allocated;

#endif
