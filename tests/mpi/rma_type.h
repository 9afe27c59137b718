/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_type.h - predefined types, their operations, and values of which the bytes between fields
 * don't count. */
#ifndef T_RMA_TYPE_H
#define T_RMA_TYPE_H

#include "check.h"

enum field_class {
	FIELD_NONE,
	FIELD_INTEGER,
	FIELD_BOOL,
	FIELD_FLOAT,
	FIELD_DOUBLE,
	FIELD_LONG_DOUBLE,
};

struct field {
	enum field_class class;
	size_t at, size; /* size: bytes that count */
};

struct rma_type {
	const char *name;
	MPI_Datatype type;
	size_t extent;
	struct field fields[2];
	bool is_pair, is_complex, is_byte;
};

/* Returns a random predefined type. */
const struct rma_type *rma_type_choose(struct t_rng *rng);
/* Returns a random operation that accumulates have for the type, but neither MPI_REPLACE nor
 * MPI_NO_OP. */
MPI_Op rma_type_operation(const struct rma_type *type, struct t_rng *rng);
const char *rma_operation_name(MPI_Op op);
/* Returns true if MPI_Compare_and_swap takes the type. */
bool rma_type_can_swap(const struct rma_type *type);
/* Stores a random value. */
void rma_type_fill(const struct rma_type *type, struct t_rng *rng, unsigned char *value);
/* Returns true if two values are equal. */
bool rma_type_equal(const struct rma_type *type, const unsigned char *a, const unsigned char *b);

#endif
