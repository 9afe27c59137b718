/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_layout.c - see rma_layout.h. Where the elements are doesn't come from MPI's types. */
#include "rma_layout.h"

const char *const layout_names[LAYOUT_KINDS] = {
	"plain",     "contiguous", "vector",   "indexed", "indexed_block",
	"backwards", "struct",     "subarray", "resized", "rows",
};

/* Blocks of elements; displacements are in elements. */
struct blocks {
	int n, *lengths, *displs;
};

/* Returns a random divisor of n. */
static int divisor(struct t_rng *rng, int n)
{
	int d = 1 + t_below(rng, t_chance(rng, 50) ? n : (n < 4 ? n : 4));

	while (n % d)
		d--;
	return d;
}

/* Makes blocks of one length and distance. */
static void make_regular(struct blocks *blocks, int n, int length, int first, int stride)
{
	blocks->n = n / length;
	for (int i = 0; i < blocks->n; i++) {
		blocks->lengths[i] = length;
		blocks->displs[i] = first + i * stride;
	}
}

static void make_irregular(struct blocks *blocks, struct t_rng *rng, int n)
{
	int at = t_below(rng, 3), length;

	blocks->n = 0;
	for (; n > 0; n -= length) {
		length = 1 + t_below(rng, n < 3 ? n : 1 + n / 3);
		blocks->lengths[blocks->n] = length;
		blocks->displs[blocks->n++] = at;
		at += length + t_below(rng, 3);
	}
}

static void reverse(struct blocks *blocks)
{
	for (int i = 0, j = blocks->n - 1; i < j; i++, j--) {
		int length = blocks->lengths[i], displ = blocks->displs[i];

		blocks->lengths[i] = blocks->lengths[j];
		blocks->displs[i] = blocks->displs[j];
		blocks->lengths[j] = length;
		blocks->displs[j] = displ;
	}
}

static void in_bytes(const struct blocks *blocks, size_t extent, MPI_Aint *displs)
{
	for (int i = 0; i < blocks->n; i++)
		displs[i] = (MPI_Aint)extent * blocks->displs[i];
}

static MPI_Datatype struct_type(const struct blocks *blocks, MPI_Datatype element, size_t extent)
{
	MPI_Datatype *types = t_alloc(sizeof(MPI_Datatype) * (size_t)blocks->n), type;
	MPI_Aint *displs = t_alloc(sizeof(MPI_Aint) * (size_t)blocks->n);

	in_bytes(blocks, extent, displs);
	for (int i = 0; i < blocks->n; i++)
		types[i] = element;
	MPI_Type_create_struct(blocks->n, blocks->lengths, displs, types, &type);
	free(displs);
	free(types);
	return type;
}

static MPI_Datatype backwards_type(const struct blocks *blocks, MPI_Datatype element, size_t extent)
{
	MPI_Aint *displs = t_alloc(sizeof(MPI_Aint) * (size_t)blocks->n);
	MPI_Datatype type;

	in_bytes(blocks, extent, displs);
	MPI_Type_create_hindexed(blocks->n, blocks->lengths, displs, element, &type);
	free(displs);
	return type;
}

/* Returns a type of `length` elements, whose extent is that of `stride` elements. */
static MPI_Datatype row_type(MPI_Datatype element, size_t extent, int length, int stride)
{
	MPI_Datatype row, type;

	MPI_Type_contiguous(length, element, &row);
	MPI_Type_create_resized(row, 0, (MPI_Aint)extent * stride, &type);
	MPI_Type_free(&row);
	return type;
}

static MPI_Datatype subarray_type(MPI_Datatype element, int rows, int columns)
{
	const int sizes[] = {rows + 1, columns + 2}, part[] = {rows, columns}, start[] = {1, 1};
	MPI_Datatype type;

	MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, element, &type);
	return type;
}

/* Makes the blocks, and the type with its count. */
static void make_blocks(struct layout *layout, struct blocks *blocks, struct t_rng *rng,
			MPI_Datatype element, size_t extent)
{
	int n = layout->n, length = divisor(rng, n), stride = length + t_below(rng, 4);

	switch (layout->kind) {
	case LAYOUT_CONTIGUOUS:
		make_regular(blocks, n, n, 0, n);
		MPI_Type_contiguous(n, element, &layout->type);
		break;
	case LAYOUT_VECTOR:
		make_regular(blocks, n, length, 0, stride);
		MPI_Type_vector(n / length, length, stride, element, &layout->type);
		break;
	case LAYOUT_INDEXED:
		make_irregular(blocks, rng, n);
		MPI_Type_indexed(blocks->n, blocks->lengths, blocks->displs, element,
				 &layout->type);
		break;
	case LAYOUT_INDEXED_BLOCK:
		make_regular(blocks, n, length, t_below(rng, 4), stride);
		MPI_Type_create_indexed_block(blocks->n, length, blocks->displs, element,
					      &layout->type);
		break;
	case LAYOUT_BACKWARDS:
		make_irregular(blocks, rng, n);
		reverse(blocks);
		layout->type = backwards_type(blocks, element, extent);
		break;
	case LAYOUT_STRUCT:
		make_irregular(blocks, rng, n);
		layout->type = struct_type(blocks, element, extent);
		break;
	case LAYOUT_SUBARRAY:
		make_regular(blocks, n, length, length + 3, length + 2);
		layout->type = subarray_type(element, n / length, length);
		break;
	case LAYOUT_RESIZED:
		length = 1;
		stride = 2;
		/* fall through */
	case LAYOUT_ROWS:
		make_regular(blocks, n, length, 0, stride);
		layout->count = blocks->n;
		layout->type = row_type(element, extent, length, stride);
		break;
	default:
		make_regular(blocks, n, n, 0, n);
		layout->count = n;
		layout->type = element;
		return;
	}
	MPI_Type_commit(&layout->type);
}

void layout_make(struct layout *layout, struct t_rng *rng, enum layout_kind kind,
		 MPI_Datatype element, size_t extent, int n)
{
	struct blocks blocks;
	int element_index = 0;

	*layout = (struct layout){.kind = kind, .n = n, .count = 1};
	layout->at = t_alloc(sizeof(*layout->at) * (size_t)n);
	blocks.lengths = t_alloc(sizeof(int) * (size_t)n);
	blocks.displs = t_alloc(sizeof(int) * (size_t)n);
	make_blocks(layout, &blocks, rng, element, extent);
	for (int i = 0; i < blocks.n; i++)
		for (int j = 0; j < blocks.lengths[i]; j++)
			layout->at[element_index++] = extent * (size_t)(blocks.displs[i] + j);
	t_eq(element_index, n);
	free(blocks.displs);
	free(blocks.lengths);
}

void layout_free(struct layout *layout)
{
	if (layout->kind != LAYOUT_PLAIN)
		MPI_Type_free(&layout->type);
	free(layout->at);
}
