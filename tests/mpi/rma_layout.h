/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_layout.h - elements in memory, as a predefined or derived type, and where they are. */
#ifndef T_RMA_LAYOUT_H
#define T_RMA_LAYOUT_H

#include "check.h"

enum layout_kind {
	LAYOUT_PLAIN, /* the predefined type itself, and a count */
	LAYOUT_CONTIGUOUS,
	LAYOUT_VECTOR,
	LAYOUT_INDEXED,
	LAYOUT_INDEXED_BLOCK,
	LAYOUT_BACKWARDS, /* blocks by bytes, of which the last one comes first */
	LAYOUT_STRUCT,
	LAYOUT_SUBARRAY,
	LAYOUT_RESIZED, /* a count of elements with gaps */
	LAYOUT_ROWS,    /* a count of blocks with gaps */
	LAYOUT_KINDS
};

struct layout {
	enum layout_kind kind;
	int n;      /* elements */
	size_t *at; /* the displacement of each, in bytes */
	int count;
	MPI_Datatype type;
};

/* The elements between the first and behind the last one of a layout of n elements, at most. */
#define LAYOUT_SPAN(n) (4 * (n) + 8)

extern const char *const layout_names[LAYOUT_KINDS];

/* Makes a random layout of n elements of a type with this extent. */
void layout_make(struct layout *layout, struct t_rng *rng, enum layout_kind kind,
		 MPI_Datatype element, size_t extent, int n);
void layout_free(struct layout *layout);

#endif
