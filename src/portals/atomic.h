/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of atomic operations. */
#ifndef P4_ATOMIC_H
#define P4_ATOMIC_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <portals4.h>

union p4_item {
	int8_t i8;
	uint8_t u8;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	float f;
	double d;
	long double ld;
	float complex fc;
	double complex dc;
	long double complex ldc;
	unsigned char bytes[32];
};

/* Returns the size of a type; 0: there is no such type. */
size_t p4_atomic_type_size(ptl_datatype_t type);
/* Returns true if the operation is defined for the type. */
bool p4_atomic_is_valid(ptl_op_t operation, ptl_datatype_t type);
/* Changes an item as the operation says. `data` and, for swaps, `operand` need no alignment. */
void p4_atomic_item(union p4_item *item, const void *data, const void *operand, ptl_op_t operation,
		    ptl_datatype_t type);

#endif
