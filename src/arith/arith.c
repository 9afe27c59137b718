/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "arith/arith.h"

/* The kinds of operations that a type has. */
enum arithmetic { INTEGER, REAL, COMPLEX };

static const struct {
	size_t size;
	enum arithmetic arithmetic;
} types[ARITH_TYPES] = {
	[ARITH_INT8] = {1, INTEGER},
	[ARITH_UINT8] = {1, INTEGER},
	[ARITH_INT16] = {2, INTEGER},
	[ARITH_UINT16] = {2, INTEGER},
	[ARITH_INT32] = {4, INTEGER},
	[ARITH_UINT32] = {4, INTEGER},
	[ARITH_INT64] = {8, INTEGER},
	[ARITH_UINT64] = {8, INTEGER},
	[ARITH_FLOAT] = {sizeof(float), REAL},
	[ARITH_DOUBLE] = {sizeof(double), REAL},
	[ARITH_FLOAT_COMPLEX] = {sizeof(float complex), COMPLEX},
	[ARITH_DOUBLE_COMPLEX] = {sizeof(double complex), COMPLEX},
	[ARITH_LONG_DOUBLE] = {sizeof(long double), REAL},
	[ARITH_LONG_DOUBLE_COMPLEX] = {sizeof(long double complex), COMPLEX},
	[ARITH_INT128] = {16, INTEGER},
	[ARITH_UINT128] = {16, INTEGER},
};

size_t arith_size(unsigned type)
{
	return type < ARITH_TYPES ? types[type].size : 0;
}

bool arith_is_integer(unsigned type)
{
	return type < ARITH_TYPES && types[type].arithmetic == INTEGER;
}

bool arith_is_valid(unsigned op, unsigned type)
{
	if (op >= ARITH_OPS || type >= ARITH_TYPES)
		return false;
	switch ((enum arith_op)op) {
	case ARITH_SUM:
	case ARITH_PROD:
	case ARITH_LOR:
	case ARITH_LAND:
	case ARITH_LXOR:
	case ARITH_READ:
	case ARITH_SWAP:
	case ARITH_CSWAP:
	case ARITH_CSWAP_NE:
		return true;
	case ARITH_MIN:
	case ARITH_MAX:
	case ARITH_CSWAP_LE:
	case ARITH_CSWAP_LT:
	case ARITH_CSWAP_GE:
	case ARITH_CSWAP_GT:
		return types[type].arithmetic != COMPLEX;
	case ARITH_BOR:
	case ARITH_BAND:
	case ARITH_BXOR:
	case ARITH_MSWAP:
		return types[type].arithmetic == INTEGER;
	case ARITH_OPS:
		break;
	}
	return false;
}

/* Sums and products of integers, which wrap: their low bits are those of unsigned bits. Signed
 * types must not overflow in C, nor short ones, which C promotes to int. */
#define WRAPS(field)                                                                     \
	case ARITH_SUM:                                                                  \
		x->field = (typeof(x->field))((unsigned __int128)x->field + data.field); \
		return;                                                                  \
	case ARITH_PROD:                                                                 \
		x->field = (typeof(x->field))((unsigned __int128)x->field * data.field); \
		return;

/* Sums and products of real and complex numbers. */
#define ROUNDS(field)                   \
	case ARITH_SUM:                 \
		x->field += data.field; \
		return;                 \
	case ARITH_PROD:                \
		x->field *= data.field; \
		return;

/* Operations of every type. */
#define EVERY(field)                                 \
	case ARITH_LOR:                              \
		x->field = x->field || data.field;   \
		return;                              \
	case ARITH_LAND:                             \
		x->field = x->field && data.field;   \
		return;                              \
	case ARITH_LXOR:                             \
		x->field = !x->field != !data.field; \
		return;                              \
	case ARITH_CSWAP:                            \
		swap = operand.field == x->field;    \
		break;                               \
	case ARITH_CSWAP_NE:                         \
		swap = operand.field != x->field;    \
		break;

/* Operations of types that have an order. */
#define ORDERED(field)                            \
	case ARITH_MIN:                           \
		swap = data.field < x->field;     \
		break;                            \
	case ARITH_MAX:                           \
		swap = data.field > x->field;     \
		break;                            \
	case ARITH_CSWAP_LE:                      \
		swap = operand.field <= x->field; \
		break;                            \
	case ARITH_CSWAP_LT:                      \
		swap = operand.field < x->field;  \
		break;                            \
	case ARITH_CSWAP_GE:                      \
		swap = operand.field >= x->field; \
		break;                            \
	case ARITH_CSWAP_GT:                      \
		swap = operand.field > x->field;  \
		break;

/* Operations of integers. */
#define BITS(field)                                                                    \
	case ARITH_BOR:                                                                \
		x->field |= data.field;                                                \
		return;                                                                \
	case ARITH_BAND:                                                               \
		x->field &= data.field;                                                \
		return;                                                                \
	case ARITH_BXOR:                                                               \
		x->field ^= data.field;                                                \
		return;                                                                \
	case ARITH_MSWAP:                                                              \
		x->field = (data.field & operand.field) | (x->field & ~operand.field); \
		return;

/* Defines a type's function, which applies an operation to *x. The arguments behind `field` are the
 * operations that only some types have. */
#define TYPE(name, field, ...)                                                                 \
	static void name(union arith_item *x, union arith_item data, union arith_item operand, \
			 enum arith_op op)                                                     \
	{                                                                                      \
		bool swap = op == ARITH_SWAP;                                                  \
                                                                                               \
		switch (op) {                                                                  \
			EVERY(field)                                                           \
			__VA_ARGS__                                                            \
		default:                                                                       \
			break;                                                                 \
		}                                                                              \
		if (swap)                                                                      \
			x->field = data.field;                                                 \
	}

TYPE(int8, i8, WRAPS(i8) ORDERED(i8) BITS(i8))
TYPE(uint8, u8, WRAPS(u8) ORDERED(u8) BITS(u8))
TYPE(int16, i16, WRAPS(i16) ORDERED(i16) BITS(i16))
TYPE(uint16, u16, WRAPS(u16) ORDERED(u16) BITS(u16))
TYPE(int32, i32, WRAPS(i32) ORDERED(i32) BITS(i32))
TYPE(uint32, u32, WRAPS(u32) ORDERED(u32) BITS(u32))
TYPE(int64, i64, WRAPS(i64) ORDERED(i64) BITS(i64))
TYPE(uint64, u64, WRAPS(u64) ORDERED(u64) BITS(u64))
TYPE(int128, i128, WRAPS(i128) ORDERED(i128) BITS(i128))
TYPE(uint128, u128, WRAPS(u128) ORDERED(u128) BITS(u128))
TYPE(real_float, f, ROUNDS(f) ORDERED(f))
TYPE(real_double, d, ROUNDS(d) ORDERED(d))
TYPE(long_double, ld, ROUNDS(ld) ORDERED(ld))
TYPE(complex_float, fc, ROUNDS(fc))
TYPE(complex_double, dc, ROUNDS(dc))
TYPE(complex_long, ldc, ROUNDS(ldc))

void arith_apply(union arith_item *item, const void *data, const void *operand, enum arith_op op,
		 enum arith_type type)
{
	static void (*const functions[ARITH_TYPES])(union arith_item *, union arith_item,
						    union arith_item, enum arith_op) = {
		[ARITH_INT8] = int8,
		[ARITH_UINT8] = uint8,
		[ARITH_INT16] = int16,
		[ARITH_UINT16] = uint16,
		[ARITH_INT32] = int32,
		[ARITH_UINT32] = uint32,
		[ARITH_INT64] = int64,
		[ARITH_UINT64] = uint64,
		[ARITH_INT128] = int128,
		[ARITH_UINT128] = uint128,
		[ARITH_FLOAT] = real_float,
		[ARITH_DOUBLE] = real_double,
		[ARITH_LONG_DOUBLE] = long_double,
		[ARITH_FLOAT_COMPLEX] = complex_float,
		[ARITH_DOUBLE_COMPLEX] = complex_double,
		[ARITH_LONG_DOUBLE_COMPLEX] = complex_long,
	};
	union arith_item d = {.bytes = {0}}, o = {.bytes = {0}};
	size_t size = arith_size(type);

	if (data)
		memcpy(&d, data, size);
	if (operand)
		memcpy(&o, operand, size);
	functions[type](item, d, o, op);
}
