/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic that libfabric's atomic operations have, and Portals' have not (unit_atomic.c
 * tests the rest): logical operations of all types, integers of 128 bits, and reads. */
#include <complex.h>
#include <string.h>

#include "arith/arith.h"
#include "check.h"

/* Expects the item `a` to become `want` with data `b`. */
#define EXPECT(type, name, op, a, b, want)                              \
	do {                                                            \
		type old = (a), data = (b), expected = (want), got;     \
		union arith_item item;                                  \
                                                                        \
		memcpy(&item, &old, sizeof(old));                       \
		t_holds(arith_is_valid(op, name));                      \
		arith_apply(&item, &data, NULL, op, name);              \
		memcpy(&got, &item, sizeof(got));                       \
		t_true(got == expected, #name " " #op ": " #a ", " #b); \
	} while (0)

#define LOGICAL(type, name)                        \
	EXPECT(type, name, ARITH_LOR, 0, 0, 0);    \
	EXPECT(type, name, ARITH_LOR, 0, 0.5, 1);  \
	EXPECT(type, name, ARITH_LAND, 0.5, 2, 1); \
	EXPECT(type, name, ARITH_LAND, 0.5, 0, 0); \
	EXPECT(type, name, ARITH_LXOR, 0.5, 2, 0); \
	EXPECT(type, name, ARITH_LXOR, 0, 0.5, 1)

static void logical(void **state)
{
	(void)state;
	LOGICAL(float, ARITH_FLOAT);
	LOGICAL(double, ARITH_DOUBLE);
	LOGICAL(long double, ARITH_LONG_DOUBLE);
	LOGICAL(float complex, ARITH_FLOAT_COMPLEX);
	LOGICAL(double complex, ARITH_DOUBLE_COMPLEX);
	LOGICAL(long double complex, ARITH_LONG_DOUBLE_COMPLEX);
	EXPECT(double complex, ARITH_DOUBLE_COMPLEX, ARITH_LOR, 0, 2 * I, 1);
}

static void wide(void **state)
{
	const __int128 large = (__int128)1 << 100;

	(void)state;
	EXPECT(__int128, ARITH_INT128, ARITH_SUM, large, large - 1, 2 * large - 1);
	EXPECT(__int128, ARITH_INT128, ARITH_PROD, large, -3, -3 * large);
	EXPECT(__int128, ARITH_INT128, ARITH_MIN, -large, 1, -large);
	EXPECT(unsigned __int128, ARITH_UINT128, ARITH_MIN, -large, 1, 1);
	EXPECT(unsigned __int128, ARITH_UINT128, ARITH_BXOR, large + 5, large, 5);
	EXPECT(unsigned __int128, ARITH_UINT128, ARITH_SUM, -(unsigned __int128)1, 2, 1);
}

static void reads(void **state)
{
	union arith_item item = {.ldc = 3 + 4 * I};

	(void)state;
	arith_apply(&item, NULL, NULL, ARITH_READ, ARITH_LONG_DOUBLE_COMPLEX);
	t_true(item.ldc == 3 + 4 * I, "a read changes the item");
	item.u8 = 7;
	arith_apply(&item, NULL, NULL, ARITH_READ, ARITH_UINT8);
	t_eq(item.u8, 7);
}

/* A message of a peer may name any type and operation. */
static void invalid(void **state)
{
	(void)state;
	t_eq(arith_size(ARITH_TYPES), 0);
	t_eq(arith_size(0xffffffff), 0);
	t_holds(!arith_is_integer(ARITH_TYPES));
	t_holds(!arith_is_valid(ARITH_OPS, ARITH_INT8));
	t_holds(!arith_is_valid(ARITH_SUM, ARITH_TYPES));
	t_holds(!arith_is_valid(0xffffffff, 0xffffffff));
	t_holds(!arith_is_valid(ARITH_MIN, ARITH_DOUBLE_COMPLEX));
	t_holds(!arith_is_valid(ARITH_BOR, ARITH_DOUBLE));
	t_holds(!arith_is_valid(ARITH_MSWAP, ARITH_FLOAT));
	for (unsigned type = 0; type < ARITH_TYPES; type++)
		t_holds(arith_size(type) && arith_size(type) <= ARITH_ITEM_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logical),
		cmocka_unit_test(wide),
		cmocka_unit_test(reads),
		cmocka_unit_test(invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
