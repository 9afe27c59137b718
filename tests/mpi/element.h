/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * element.h - elements of one or two numbers in buffers of several layouts, and operations on them
 * whose results a test computes itself. All bytes between the elements are checked as well.
 */
#ifndef T_ELEMENT_H
#define T_ELEMENT_H

#include "check.h"

struct value {
	uint32_t a, b;
};

enum layout {
	PLAIN,   /* MPI_UNSIGNED: only `a` */
	PAIR,    /* without gaps */
	GAPS,    /* between the numbers and between the elements */
	SHIFTED, /* with a lower bound that isn't 0 */
	LAYOUTS
};

enum arithmetic {
	COMPOSE, /* doesn't commute */
	ADD,     /* the program's own */
	SUM,     /* MPI_SUM, only for PLAIN */
	XOR,     /* MPI_BXOR, only for PLAIN */
	ARITHMETICS
};

struct buffer {
	unsigned char *memory, *base; /* the user's buffer begins at `base` */
	size_t bytes;
	enum layout layout;
	MPI_Datatype type;
};

struct value value_of(uint64_t salt, int rank, int i);
/* Returns first op second. */
struct value combined(enum arithmetic arithmetic, struct value first, struct value second);
/* Returns a new op, or MPI's. */
MPI_Op make_operation(enum arithmetic arithmetic);

/* Allocates a buffer for `n` elements with a new type, filled at random. */
struct buffer make_buffer(struct t_rng *rng, enum layout layout, int n);
/* Returns a copy, which has no type. */
struct buffer copy_buffer(const struct buffer *buffer);
void free_type(struct buffer *buffer);
void free_memory(struct buffer *buffer);
void put(const struct buffer *buffer, int i, struct value value);
/* Stops the program unless all bytes are equal. */
void compare_buffers(const struct buffer *got, const struct buffer *want, const char *what);

#endif
