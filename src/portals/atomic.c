/* SPDX-License-Identifier: BSD-3-Clause */
#include "atomic.h"

/* The kinds of operations that a type has. */
enum arithmetic { INTEGER, REAL, COMPLEX };

static const struct {
	size_t size;
	enum arithmetic arithmetic;
} types[PTL_DATATYPE_LAST] = {
	[PTL_INT8_T] = {1, INTEGER},
	[PTL_UINT8_T] = {1, INTEGER},
	[PTL_INT16_T] = {2, INTEGER},
	[PTL_UINT16_T] = {2, INTEGER},
	[PTL_INT32_T] = {4, INTEGER},
	[PTL_UINT32_T] = {4, INTEGER},
	[PTL_FLOAT] = {sizeof(float), REAL},
	[PTL_INT64_T] = {8, INTEGER},
	[PTL_UINT64_T] = {8, INTEGER},
	[PTL_DOUBLE] = {sizeof(double), REAL},
	[PTL_FLOAT_COMPLEX] = {sizeof(float complex), COMPLEX},
	[PTL_DOUBLE_COMPLEX] = {sizeof(double complex), COMPLEX},
	[PTL_LONG_DOUBLE] = {sizeof(long double), REAL},
	[PTL_LONG_DOUBLE_COMPLEX] = {sizeof(long double complex), COMPLEX},
};

size_t p4_atomic_type_size(ptl_datatype_t type)
{
	return type < PTL_DATATYPE_LAST ? types[type].size : 0;
}

bool p4_atomic_is_valid(ptl_op_t operation, ptl_datatype_t type)
{
	if (type >= PTL_DATATYPE_LAST)
		return false;
	switch (operation) {
	case PTL_SUM:
	case PTL_PROD:
	case PTL_SWAP:
	case PTL_CSWAP:
	case PTL_CSWAP_NE:
		return true;
	case PTL_MIN:
	case PTL_MAX:
	case PTL_CSWAP_LE:
	case PTL_CSWAP_LT:
	case PTL_CSWAP_GE:
	case PTL_CSWAP_GT:
		return types[type].arithmetic != COMPLEX;
	case PTL_LOR:
	case PTL_LAND:
	case PTL_LXOR:
	case PTL_BOR:
	case PTL_BAND:
	case PTL_BXOR:
	case PTL_MSWAP:
		return types[type].arithmetic == INTEGER;
	}
	return false;
}

/* Sums and products of integers, which wrap: their low bits are those of 64 unsigned bits. Signed
 * types must not overflow in C, nor short ones, which C promotes to int. */
#define WRAPS(field)                                                            \
	case PTL_SUM:                                                           \
		x->field = (typeof(x->field))((uint64_t)x->field + data.field); \
		return;                                                         \
	case PTL_PROD:                                                          \
		x->field = (typeof(x->field))((uint64_t)x->field * data.field); \
		return;

/* Sums and products of real and complex numbers. */
#define ROUNDS(field)                   \
	case PTL_SUM:                   \
		x->field += data.field; \
		return;                 \
	case PTL_PROD:                  \
		x->field *= data.field; \
		return;

/* Swaps of every type. */
#define EQUAL(field)                              \
	case PTL_CSWAP:                           \
		swap = operand.field == x->field; \
		break;                            \
	case PTL_CSWAP_NE:                        \
		swap = operand.field != x->field; \
		break;

/* Operations of types that have an order. */
#define ORDERED(field)                            \
	case PTL_MIN:                             \
		swap = data.field < x->field;     \
		break;                            \
	case PTL_MAX:                             \
		swap = data.field > x->field;     \
		break;                            \
	case PTL_CSWAP_LE:                        \
		swap = operand.field <= x->field; \
		break;                            \
	case PTL_CSWAP_LT:                        \
		swap = operand.field < x->field;  \
		break;                            \
	case PTL_CSWAP_GE:                        \
		swap = operand.field >= x->field; \
		break;                            \
	case PTL_CSWAP_GT:                        \
		swap = operand.field > x->field;  \
		break;

/* Operations of integers. */
#define BITS(field)                                                                    \
	case PTL_LOR:                                                                  \
		x->field = x->field || data.field;                                     \
		return;                                                                \
	case PTL_LAND:                                                                 \
		x->field = x->field && data.field;                                     \
		return;                                                                \
	case PTL_LXOR:                                                                 \
		x->field = !x->field != !data.field;                                   \
		return;                                                                \
	case PTL_BOR:                                                                  \
		x->field |= data.field;                                                \
		return;                                                                \
	case PTL_BAND:                                                                 \
		x->field &= data.field;                                                \
		return;                                                                \
	case PTL_BXOR:                                                                 \
		x->field ^= data.field;                                                \
		return;                                                                \
	case PTL_MSWAP:                                                                \
		x->field = (data.field & operand.field) | (x->field & ~operand.field); \
		return;

/* Defines a type's function, which applies an operation to *x. The arguments behind `field` are the
 * type's operations besides swaps. */
#define TYPE(name, field, ...)                                                        \
	static void name(union p4_item *x, union p4_item data, union p4_item operand, \
			 ptl_op_t operation)                                          \
	{                                                                             \
		bool swap = operation == PTL_SWAP;                                    \
                                                                                      \
		switch (operation) {                                                  \
			EQUAL(field)                                                  \
			__VA_ARGS__                                                   \
		}                                                                     \
		if (swap)                                                             \
			x->field = data.field;                                        \
	}

TYPE(int8, i8, WRAPS(i8) ORDERED(i8) BITS(i8))
TYPE(uint8, u8, WRAPS(u8) ORDERED(u8) BITS(u8))
TYPE(int16, i16, WRAPS(i16) ORDERED(i16) BITS(i16))
TYPE(uint16, u16, WRAPS(u16) ORDERED(u16) BITS(u16))
TYPE(int32, i32, WRAPS(i32) ORDERED(i32) BITS(i32))
TYPE(uint32, u32, WRAPS(u32) ORDERED(u32) BITS(u32))
TYPE(int64, i64, WRAPS(i64) ORDERED(i64) BITS(i64))
TYPE(uint64, u64, WRAPS(u64) ORDERED(u64) BITS(u64))
TYPE(real_float, f, ROUNDS(f) ORDERED(f))
TYPE(real_double, d, ROUNDS(d) ORDERED(d))
TYPE(long_double, ld, ROUNDS(ld) ORDERED(ld))
TYPE(complex_float, fc, ROUNDS(fc))
TYPE(complex_double, dc, ROUNDS(dc))
TYPE(complex_long, ldc, ROUNDS(ldc))

void p4_atomic_item(union p4_item *item, const void *data, const void *operand, ptl_op_t operation,
		    ptl_datatype_t type)
{
	static void (*const functions[PTL_DATATYPE_LAST])(union p4_item *, union p4_item,
							  union p4_item, ptl_op_t) = {
		[PTL_INT8_T] = int8,
		[PTL_UINT8_T] = uint8,
		[PTL_INT16_T] = int16,
		[PTL_UINT16_T] = uint16,
		[PTL_INT32_T] = int32,
		[PTL_UINT32_T] = uint32,
		[PTL_FLOAT] = real_float,
		[PTL_INT64_T] = int64,
		[PTL_UINT64_T] = uint64,
		[PTL_DOUBLE] = real_double,
		[PTL_FLOAT_COMPLEX] = complex_float,
		[PTL_DOUBLE_COMPLEX] = complex_double,
		[PTL_LONG_DOUBLE] = long_double,
		[PTL_LONG_DOUBLE_COMPLEX] = complex_long,
	};
	union p4_item d = {.bytes = {0}}, o = {.bytes = {0}};
	size_t size = p4_atomic_type_size(type);

	memcpy(&d, data, size);
	if (operand)
		memcpy(&o, operand, size);
	functions[type](item, d, o, operation);
}
