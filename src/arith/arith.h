/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of atomic operations: what an operation does to an item of a type. */
#ifndef ARITH_H
#define ARITH_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The types of items, with the numbers that libfabric gives to them. */
enum arith_type {
	ARITH_INT8,
	ARITH_UINT8,
	ARITH_INT16,
	ARITH_UINT16,
	ARITH_INT32,
	ARITH_UINT32,
	ARITH_INT64,
	ARITH_UINT64,
	ARITH_FLOAT,
	ARITH_DOUBLE,
	ARITH_FLOAT_COMPLEX,
	ARITH_DOUBLE_COMPLEX,
	ARITH_LONG_DOUBLE,
	ARITH_LONG_DOUBLE_COMPLEX,
	ARITH_INT128,
	ARITH_UINT128,
	ARITH_TYPES
};

/* The operations, with the numbers that libfabric gives to them. */
enum arith_op {
	ARITH_MIN,
	ARITH_MAX,
	ARITH_SUM,
	ARITH_PROD,
	ARITH_LOR,
	ARITH_LAND,
	ARITH_BOR,
	ARITH_BAND,
	ARITH_LXOR,
	ARITH_BXOR,
	ARITH_READ, /* leaves the item as it is */
	ARITH_SWAP,
	ARITH_CSWAP, /* if operand == item, and so on */
	ARITH_CSWAP_NE,
	ARITH_CSWAP_LE,
	ARITH_CSWAP_LT,
	ARITH_CSWAP_GE,
	ARITH_CSWAP_GT,
	ARITH_MSWAP, /* the bits that the operand has */
	ARITH_OPS
};

/* The largest item, in bytes. */
#define ARITH_ITEM_MAX 32

union arith_item {
	int8_t i8;
	uint8_t u8;
	int16_t i16;
	uint16_t u16;
	int32_t i32;
	uint32_t u32;
	int64_t i64;
	uint64_t u64;
	__int128 i128;
	unsigned __int128 u128;
	float f;
	double d;
	long double ld;
	float complex fc;
	double complex dc;
	long double complex ldc;
	unsigned char bytes[ARITH_ITEM_MAX];
};

/* Returns the size of a type; 0: there is no such type. */
size_t arith_size(unsigned type);
/* Returns true if the type is one of integers. */
bool arith_is_integer(unsigned type);
/* Returns true if the operation is defined for the type. Both may be any numbers. */
bool arith_is_valid(unsigned op, unsigned type);
/* Changes an item as a valid operation says. `data` (NULL for ARITH_READ) and, for the swaps with a
 * condition or a mask, `operand` need no alignment. */
void arith_apply(union arith_item *item, const void *data, const void *operand, enum arith_op op,
		 enum arith_type type);

#endif
