/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of atomic operations: which are allowed, and their results. */
#include <complex.h>

#include "atomic.h"
#include "check.h"

/* The operations that a type takes, one bit each. */
#define BIT(op) (1u << (op))
#define BOTH    (BIT(PTL_SUM) | BIT(PTL_PROD) | BIT(PTL_SWAP) | BIT(PTL_CSWAP) | BIT(PTL_CSWAP_NE))
#define ORDER                                                                                      \
	(BIT(PTL_MIN) | BIT(PTL_MAX) | BIT(PTL_CSWAP_LE) | BIT(PTL_CSWAP_LT) | BIT(PTL_CSWAP_GE) | \
	 BIT(PTL_CSWAP_GT))
#define BITS                                                                           \
	(BIT(PTL_LOR) | BIT(PTL_LAND) | BIT(PTL_BOR) | BIT(PTL_BAND) | BIT(PTL_LXOR) | \
	 BIT(PTL_BXOR) | BIT(PTL_MSWAP))

static const struct {
	ptl_datatype_t type;
	size_t size;
	unsigned ops;
} types[] = {
	{PTL_INT8_T, 1, BOTH | ORDER | BITS},
	{PTL_UINT8_T, 1, BOTH | ORDER | BITS},
	{PTL_INT16_T, 2, BOTH | ORDER | BITS},
	{PTL_UINT16_T, 2, BOTH | ORDER | BITS},
	{PTL_INT32_T, 4, BOTH | ORDER | BITS},
	{PTL_UINT32_T, 4, BOTH | ORDER | BITS},
	{PTL_INT64_T, 8, BOTH | ORDER | BITS},
	{PTL_UINT64_T, 8, BOTH | ORDER | BITS},
	{PTL_FLOAT, sizeof(float), BOTH | ORDER},
	{PTL_DOUBLE, sizeof(double), BOTH | ORDER},
	{PTL_LONG_DOUBLE, sizeof(long double), BOTH | ORDER},
	{PTL_FLOAT_COMPLEX, sizeof(float complex), BOTH},
	{PTL_DOUBLE_COMPLEX, sizeof(double complex), BOTH},
	{PTL_LONG_DOUBLE_COMPLEX, sizeof(long double complex), BOTH},
};

static void allowed(void **state)
{
	(void)state;
	t_eq(sizeof(types) / sizeof(*types), PTL_DATATYPE_LAST);
	for (size_t i = 0; i < PTL_DATATYPE_LAST; i++) {
		t_eq(p4_atomic_type_size(types[i].type), types[i].size);
		for (ptl_op_t op = 0; op < 32; op++)
			t_eq(p4_atomic_is_valid(op, types[i].type),
			     op < PTL_OP_LAST && types[i].ops & BIT(op));
	}
	t_eq(p4_atomic_type_size(PTL_DATATYPE_LAST), 0);
	t_eq(p4_atomic_type_size(0xff), 0);
	t_holds(!p4_atomic_is_valid(PTL_SUM, PTL_DATATYPE_LAST));
	t_holds(!p4_atomic_is_valid(0xff, PTL_INT32_T));
}

/* Expects the item `a` to become `want` with data `b` and operand `o`, which have no alignment. */
#define EXPECT_WITH(type, name, op, a, b, o, want)                                 \
	do {                                                                       \
		type old = (a), data = (b), operand = (o), expected = (want), got; \
		char from[sizeof(type) + 1], beside[sizeof(type) + 1];             \
		union arith_item item;                                             \
                                                                                   \
		memcpy(&item, &old, sizeof(old));                                  \
		memcpy(from + 1, &data, sizeof(data));                             \
		memcpy(beside + 1, &operand, sizeof(operand));                     \
		p4_atomic_item(&item, from + 1, beside + 1, op, name);             \
		memcpy(&got, &item, sizeof(got));                                  \
		t_true(got == expected, #name " " #op ": " #a ", " #b ", " #o);    \
	} while (0)

#define EXPECT(type, name, op, a, b, want) EXPECT_WITH(type, name, op, a, b, 0, want)
/* Expects the item `a` to become `b` if `swaps`. */
#define EXPECT_SWAP(type, name, op, a, b, o, swaps) \
	EXPECT_WITH(type, name, op, a, b, o, (swaps) ? (type)(b) : (type)(a))

#define SWAPS_BOTH(type, name)                                 \
	EXPECT(type, name, PTL_SWAP, 5, 7, 7);                 \
	EXPECT(type, name, PTL_SUM, 5, 7, 12);                 \
	EXPECT(type, name, PTL_PROD, 5, 7, 35);                \
	EXPECT_SWAP(type, name, PTL_CSWAP, 5, 7, 5, true);     \
	EXPECT_SWAP(type, name, PTL_CSWAP, 5, 7, 4, false);    \
	EXPECT_SWAP(type, name, PTL_CSWAP_NE, 5, 7, 5, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_NE, 5, 7, 4, true)

#define SWAPS_ORDER(type, name)                                \
	SWAPS_BOTH(type, name);                                \
	EXPECT(type, name, PTL_MIN, 5, 7, 5);                  \
	EXPECT(type, name, PTL_MIN, 7, 5, 5);                  \
	EXPECT(type, name, PTL_MAX, 5, 7, 7);                  \
	EXPECT(type, name, PTL_MAX, 7, 5, 7);                  \
	EXPECT_SWAP(type, name, PTL_CSWAP_LE, 5, 7, 4, true);  \
	EXPECT_SWAP(type, name, PTL_CSWAP_LE, 5, 7, 5, true);  \
	EXPECT_SWAP(type, name, PTL_CSWAP_LE, 5, 7, 6, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_LT, 5, 7, 4, true);  \
	EXPECT_SWAP(type, name, PTL_CSWAP_LT, 5, 7, 5, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_LT, 5, 7, 6, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_GE, 5, 7, 4, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_GE, 5, 7, 5, true);  \
	EXPECT_SWAP(type, name, PTL_CSWAP_GE, 5, 7, 6, true);  \
	EXPECT_SWAP(type, name, PTL_CSWAP_GT, 5, 7, 4, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_GT, 5, 7, 5, false); \
	EXPECT_SWAP(type, name, PTL_CSWAP_GT, 5, 7, 6, true)

#define SWAPS_ALL(type, name)                                       \
	SWAPS_ORDER(type, name);                                    \
	EXPECT(type, name, PTL_LOR, 0, 0, 0);                       \
	EXPECT(type, name, PTL_LOR, 0, 6, 1);                       \
	EXPECT(type, name, PTL_LAND, 5, 2, 1);                      \
	EXPECT(type, name, PTL_LAND, 5, 0, 0);                      \
	EXPECT(type, name, PTL_LXOR, 5, 2, 0);                      \
	EXPECT(type, name, PTL_LXOR, 5, 0, 1);                      \
	EXPECT(type, name, PTL_BOR, 5, 3, 7);                       \
	EXPECT(type, name, PTL_BAND, 5, 3, 1);                      \
	EXPECT(type, name, PTL_BXOR, 5, 3, 6);                      \
	EXPECT_WITH(type, name, PTL_MSWAP, 0x53, 0x1f, 0x0c, 0x5f); \
	EXPECT_WITH(type, name, PTL_MSWAP, 0x53, 0x0c, 0, 0x53)

static void results(void **state)
{
	(void)state;
	SWAPS_ALL(int8_t, PTL_INT8_T);
	SWAPS_ALL(uint8_t, PTL_UINT8_T);
	SWAPS_ALL(int16_t, PTL_INT16_T);
	SWAPS_ALL(uint16_t, PTL_UINT16_T);
	SWAPS_ALL(int32_t, PTL_INT32_T);
	SWAPS_ALL(uint32_t, PTL_UINT32_T);
	SWAPS_ALL(int64_t, PTL_INT64_T);
	SWAPS_ALL(uint64_t, PTL_UINT64_T);
	SWAPS_ORDER(float, PTL_FLOAT);
	SWAPS_ORDER(double, PTL_DOUBLE);
	SWAPS_ORDER(long double, PTL_LONG_DOUBLE);
	SWAPS_BOTH(float complex, PTL_FLOAT_COMPLEX);
	SWAPS_BOTH(double complex, PTL_DOUBLE_COMPLEX);
	SWAPS_BOTH(long double complex, PTL_LONG_DOUBLE_COMPLEX);
}

static void signs(void **state)
{
	(void)state;
	EXPECT(int8_t, PTL_INT8_T, PTL_MIN, -5, 3, -5);
	EXPECT(uint8_t, PTL_UINT8_T, PTL_MIN, 0xfb, 3, 3);
	EXPECT(int64_t, PTL_INT64_T, PTL_MAX, INT64_MIN, -1, -1);
	EXPECT(uint64_t, PTL_UINT64_T, PTL_MAX, UINT64_C(1) << 63, 1, UINT64_C(1) << 63);
	EXPECT(int32_t, PTL_INT32_T, PTL_SUM, INT32_MAX, 1, INT32_MIN);
	EXPECT(int64_t, PTL_INT64_T, PTL_PROD, INT64_MAX, 2, -2);
	EXPECT(int16_t, PTL_INT16_T, PTL_PROD, -3, 5, -15);
	EXPECT(uint16_t, PTL_UINT16_T, PTL_PROD, 0xffff, 0xffff, 1);
	EXPECT(int8_t, PTL_INT8_T, PTL_SUM, -128, -1, 127);
	EXPECT(double, PTL_DOUBLE, PTL_SUM, 0.5, -0.75, -0.25);
	EXPECT(float complex, PTL_FLOAT_COMPLEX, PTL_PROD, I, I, -1);
	EXPECT_SWAP(double complex, PTL_DOUBLE_COMPLEX, PTL_CSWAP, 1 + I, 3, 1 - I, false);
	EXPECT_SWAP(double complex, PTL_DOUBLE_COMPLEX, PTL_CSWAP, 1 + I, 3, 1 + I, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allowed),
		cmocka_unit_test(results),
		cmocka_unit_test(signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
