/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_type.c - see rma_type.h. */
#include "rma_type.h"

#include <complex.h>
#include <float.h>

struct float_int {
	float value;
	int index;
};

struct double_int {
	double value;
	int index;
};

struct long_int {
	long value;
	int index;
};

struct two_int {
	int value, index;
};

struct short_int {
	short value;
	int index;
};

/* The bytes of a long double that count: 10 in the format of x86. */
#define LONG_DOUBLE_SIZE (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double))

#define INTEGER(type, c)                                                             \
	{                                                                            \
#type, type, sizeof(c), .fields = { {FIELD_INTEGER, 0, sizeof(c) } } \
	}
#define REAL(type, c, class, bytes)                                      \
	{                                                                \
#type, type, sizeof(c), .fields = { {class, 0, bytes } } \
	}
#define COMPLEX(type, c, class)                                                              \
	{                                                                                    \
#type, type, sizeof(c _Complex),                                             \
			.fields = {{class, 0, sizeof(c) }, {class, sizeof(c), sizeof(c) } }, \
				    .is_complex = true                                       \
	}
#define PAIR(type, c, class, bytes)                                                             \
	{                                                                                       \
#type, type, sizeof(struct c),                                                  \
			.fields = {{class, 0, bytes },                                          \
				    {FIELD_INTEGER, offsetof(struct c, index), sizeof(int) } }, \
				    .is_pair = true                                             \
	}

/* MPI's handles are no constants, so the table is made at the first use. Open MPI has no operations
 * on MPI_LONG_DOUBLE_INT. */
static const struct rma_type *table(int *n)
{
	static struct rma_type types[24];
	const struct rma_type all[] = {
		INTEGER(MPI_SIGNED_CHAR, signed char),
		INTEGER(MPI_UNSIGNED_CHAR, unsigned char),
		INTEGER(MPI_SHORT, short),
		INTEGER(MPI_UNSIGNED_SHORT, unsigned short),
		INTEGER(MPI_INT, int),
		INTEGER(MPI_UNSIGNED, unsigned),
		INTEGER(MPI_LONG, long),
		INTEGER(MPI_UINT64_T, uint64_t),
		INTEGER(MPI_AINT, MPI_Aint),
		REAL(MPI_FLOAT, float, FIELD_FLOAT, sizeof(float)),
		REAL(MPI_DOUBLE, double, FIELD_DOUBLE, sizeof(double)),
		REAL(MPI_LONG_DOUBLE, long double, FIELD_LONG_DOUBLE, LONG_DOUBLE_SIZE),
		REAL(MPI_C_BOOL, bool, FIELD_BOOL, sizeof(bool)),
		COMPLEX(MPI_C_FLOAT_COMPLEX, float, FIELD_FLOAT),
		COMPLEX(MPI_C_DOUBLE_COMPLEX, double, FIELD_DOUBLE),
		PAIR(MPI_FLOAT_INT, float_int, FIELD_FLOAT, sizeof(float)),
		PAIR(MPI_DOUBLE_INT, double_int, FIELD_DOUBLE, sizeof(double)),
		PAIR(MPI_LONG_INT, long_int, FIELD_INTEGER, sizeof(long)),
		PAIR(MPI_2INT, two_int, FIELD_INTEGER, sizeof(int)),
		PAIR(MPI_SHORT_INT, short_int, FIELD_INTEGER, sizeof(short)),
		{"MPI_BYTE", MPI_BYTE, 1, .fields = {{FIELD_INTEGER, 0, 1}}, .is_byte = true},
	};

	*n = sizeof(all) / sizeof(all[0]);
	if (!types[0].name)
		memcpy(types, all, sizeof(all));
	return types;
}

const struct rma_type *rma_type_choose(struct t_rng *rng)
{
	const struct rma_type *types;
	int n;

	types = table(&n);
	return &types[t_below(rng, n)];
}

MPI_Op rma_type_operation(const struct rma_type *type, struct t_rng *rng)
{
	const MPI_Op all[] = {MPI_BAND, MPI_BOR, MPI_BXOR, MPI_SUM, MPI_PROD,
			      MPI_MAX,  MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR};
	enum { BITS = 0, SUMS = 3, COMPARISONS = 5, LOGICAL = 7, ALL = 10 };
	int i;

	if (type->is_pair)
		return t_chance(rng, 50) ? MPI_MINLOC : MPI_MAXLOC;
	if (type->is_byte)
		return all[BITS + t_below(rng, SUMS - BITS)];
	if (type->is_complex)
		return all[SUMS + t_below(rng, COMPARISONS - SUMS)];
	if (type->fields[0].class == FIELD_BOOL)
		return all[LOGICAL + t_below(rng, ALL - LOGICAL)];
	if (type->fields[0].class != FIELD_INTEGER)
		return all[SUMS + t_below(rng, LOGICAL - SUMS)];
	do
		i = t_below(rng, ALL);
	while (all[i] == MPI_PROD && type->extent < sizeof(int));
	return all[i];
}

const char *rma_operation_name(MPI_Op op)
{
	const struct {
		MPI_Op op;
		const char *name;
	} names[] = {
		{MPI_BAND, "MPI_BAND"},   {MPI_BOR, "MPI_BOR"},         {MPI_BXOR, "MPI_BXOR"},
		{MPI_SUM, "MPI_SUM"},     {MPI_PROD, "MPI_PROD"},       {MPI_MAX, "MPI_MAX"},
		{MPI_MIN, "MPI_MIN"},     {MPI_LAND, "MPI_LAND"},       {MPI_LOR, "MPI_LOR"},
		{MPI_LXOR, "MPI_LXOR"},   {MPI_MINLOC, "MPI_MINLOC"},   {MPI_MAXLOC, "MPI_MAXLOC"},
		{MPI_NO_OP, "MPI_NO_OP"}, {MPI_REPLACE, "MPI_REPLACE"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].op == op)
			return names[i].name;
	return "";
}

bool rma_type_can_swap(const struct rma_type *type)
{
	return !type->is_pair && !type->is_complex &&
	       (type->fields[0].class == FIELD_INTEGER || type->fields[0].class == FIELD_BOOL);
}

static void fill_field(const struct field *field, struct t_rng *rng, unsigned char *at)
{
	int small = t_below(rng, 19) - 9;
	/* Open MPI adds short integers with saturation in some lengths, so no sum may overflow. */
	uint64_t bits = field->size < sizeof(int) ? (uint64_t)t_below(rng, 16) : t_rand(rng);
	float single = (float)small;
	double twice = small;
	long double longest = small;
	bool truth = small > 0;

	switch (field->class) {
	case FIELD_INTEGER:
		memcpy(at, &bits, field->size);
		break;
	case FIELD_BOOL:
		memcpy(at, &truth, field->size);
		break;
	case FIELD_FLOAT:
		memcpy(at, &single, field->size);
		break;
	case FIELD_DOUBLE:
		memcpy(at, &twice, field->size);
		break;
	case FIELD_LONG_DOUBLE:
		memcpy(at, &longest, field->size);
		break;
	default:
		break;
	}
}

void rma_type_fill(const struct rma_type *type, struct t_rng *rng, unsigned char *value)
{
	memset(value, 0, type->extent);
	for (int i = 0; i < 2; i++)
		fill_field(&type->fields[i], rng, value + type->fields[i].at);
}

bool rma_type_equal(const struct rma_type *type, const unsigned char *a, const unsigned char *b)
{
	for (int i = 0; i < 2; i++)
		if (memcmp(a + type->fields[i].at, b + type->fields[i].at, type->fields[i].size))
			return false;
	return true;
}
