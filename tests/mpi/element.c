/* SPDX-License-Identifier: BSD-3-Clause */
/* element.c - see element.h. */
#include "element.h"

enum { MARGIN = 64 };

static const struct {
	int extent, a, b; /* bytes; a and b: displacements of the numbers */
} layouts[LAYOUTS] = {
	[PLAIN] = {4, 0, 0},
	[PAIR] = {8, 0, 4},
	[GAPS] = {20, 0, 8},
	[SHIFTED] = {28, 8, 20},
};

struct value value_of(uint64_t salt, int rank, int i)
{
	struct t_rng rng = t_rng(salt, (uint64_t)rank, (uint64_t)i);
	uint64_t bits = t_rand(&rng);

	return (struct value){(uint32_t)bits, (uint32_t)(bits >> 32)};
}

struct value combined(enum arithmetic arithmetic, struct value first, struct value second)
{
	switch (arithmetic) {
	case COMPOSE: /* of x -> a x + b */
		return (struct value){first.a * second.a, first.b * second.a + second.b};
	case XOR:
		return (struct value){first.a ^ second.a, first.b ^ second.b};
	default:
		return (struct value){first.a + second.a, first.b + second.b};
	}
}

/* Reduces `n` elements. The numbers are at both ends of an element, whatever its layout. */
static void reduce(enum arithmetic arithmetic, const char *in, char *inout, int n,
		   MPI_Datatype type)
{
	MPI_Aint lb, extent, true_extent;

	MPI_Type_get_extent(type, &lb, &extent);
	MPI_Type_get_true_extent(type, &lb, &true_extent);
	for (int i = 0; i < n; i++) {
		const uint32_t *a = (const void *)(in + i * extent + lb);
		const uint32_t *b = (const void *)(in + i * extent + lb + true_extent - 4);
		uint32_t *to_a = (void *)(inout + i * extent + lb);
		uint32_t *to_b = (void *)(inout + i * extent + lb + true_extent - 4);
		struct value v =
			combined(arithmetic, (struct value){*a, *b}, (struct value){*to_a, *to_b});

		*to_b = v.b;
		*to_a = v.a;
	}
}

static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	reduce(COMPOSE, in, inout, *n, *type);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	reduce(ADD, in, inout, *n, *type);
}

MPI_Op make_operation(enum arithmetic arithmetic)
{
	MPI_Op op;

	if (arithmetic == SUM)
		return MPI_SUM;
	if (arithmetic == XOR)
		return MPI_BXOR;
	MPI_Op_create(arithmetic == COMPOSE ? compose : add, arithmetic != COMPOSE, &op);
	return op;
}

static MPI_Datatype make_type(enum layout layout)
{
	int displacements[2] = {layouts[layout].a / 4, layouts[layout].b / 4};
	MPI_Datatype type, resized;

	if (layout == PLAIN)
		MPI_Type_contiguous(1, MPI_UNSIGNED, &type);
	else
		MPI_Type_create_indexed_block(2, 1, displacements, MPI_UNSIGNED, &type);
	MPI_Type_create_resized(type, layout == SHIFTED ? 4 : 0, layouts[layout].extent, &resized);
	MPI_Type_free(&type);
	MPI_Type_commit(&resized);
	return resized;
}

struct buffer make_buffer(struct t_rng *rng, enum layout layout, int n)
{
	struct buffer buffer = {
		.bytes = (size_t)(n + 1) * (size_t)layouts[layout].extent + 2 * MARGIN,
		.layout = layout,
		.type = layout == PLAIN ? MPI_UNSIGNED : make_type(layout),
	};

	buffer.memory = t_alloc(buffer.bytes);
	buffer.base = buffer.memory + MARGIN;
	for (size_t i = 0; i + sizeof(uint32_t) <= buffer.bytes; i += sizeof(uint32_t)) {
		uint32_t v = (uint32_t)t_rand(rng);

		memcpy(buffer.memory + i, &v, sizeof(v));
	}
	return buffer;
}

struct buffer copy_buffer(const struct buffer *buffer)
{
	struct buffer copy = *buffer;

	copy.type = MPI_DATATYPE_NULL;
	copy.memory = t_alloc(buffer->bytes);
	copy.base = copy.memory + MARGIN;
	memcpy(copy.memory, buffer->memory, buffer->bytes);
	return copy;
}

void free_type(struct buffer *buffer)
{
	if (buffer->layout != PLAIN)
		MPI_Type_free(&buffer->type);
}

void free_memory(struct buffer *buffer)
{
	free(buffer->memory);
}

void put(const struct buffer *buffer, int i, struct value value)
{
	unsigned char *at = buffer->base + (ptrdiff_t)i * layouts[buffer->layout].extent;

	memcpy(at + layouts[buffer->layout].b, &value.b, sizeof(value.b));
	memcpy(at + layouts[buffer->layout].a, &value.a, sizeof(value.a));
}

void compare_buffers(const struct buffer *got, const struct buffer *want, const char *what)
{
	int extent = layouts[got->layout].extent;

	if (!memcmp(got->memory, want->memory, got->bytes))
		return;
	for (size_t i = 0; i < got->bytes; i++)
		t_true(got->memory[i] == want->memory[i],
		       "%s: byte %td, of element %td of layout %d, is %#x, not %#x", what,
		       (ptrdiff_t)i - MARGIN, ((ptrdiff_t)i - MARGIN) / extent, (int)got->layout,
		       got->memory[i], want->memory[i]);
}
