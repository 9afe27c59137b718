/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_access.c - see rma_access.h. */
#include "rma_access.h"

#include <fnmatch.h>

enum { UNUSED = 0xa5 }; /* a byte of a buffer that no element has */

static const char *const names[ACCESS_KINDS] = {
	"put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap",
};

static bool has_origin(const struct access *access)
{
	return access->kind != ACCESS_GET && access->op != MPI_NO_OP;
}

static bool has_result(const struct access *access)
{
	return access->kind == ACCESS_GET || access->kind >= ACCESS_GET_ACCUMULATE;
}

static int choose_count(struct t_rng *rng, size_t extent)
{
	int most = (SLOT / (int)extent - 80) / 4;

	if (t_chance(rng, 60))
		return 1 + t_below(rng, 8);
	if (t_chance(rng, 80))
		return 1 + t_below(rng, 60);
	return 1 + t_below(rng, most < 20000 ? most : 20000);
}

static enum layout_kind choose_layout(struct t_rng *rng)
{
	return t_chance(rng, 40) ? LAYOUT_PLAIN : (enum layout_kind)t_below(rng, LAYOUT_KINDS);
}

static unsigned char *make_buffer(const struct access *access)
{
	size_t size = access->type->extent * (size_t)LAYOUT_SPAN(access->target.n);
	unsigned char *buffer = t_alloc(size);

	memset(buffer, UNUSED, size);
	return buffer;
}

/* Stores elements where a layout has them. */
static void scatter(const struct access *access, const struct layout *layout,
		    const unsigned char *elements, unsigned char *memory)
{
	size_t extent = access->type->extent;

	for (int i = 0; i < layout->n; i++)
		memcpy(memory + layout->at[i], elements + extent * (size_t)i, extent);
}

void access_choose(struct access *access, struct t_rng *rng, enum access_kind kind,
		   const struct rma_type *type, MPI_Op op, int unit)
{
	bool is_single = kind >= ACCESS_FETCH_AND_OP;
	int n = is_single ? 1 : choose_count(rng, type->extent);
	struct layout *const layouts[] = {&access->origin, &access->result, &access->target};

	*access = (struct access){.kind = kind, .type = type, .op = op};
	for (int i = 0; i < 3; i++)
		layout_make(layouts[i], rng, is_single ? LAYOUT_PLAIN : choose_layout(rng),
			    type->type, type->extent, n);
	access->start = (type->extent > (size_t)unit ? type->extent : (size_t)unit) *
			(size_t)t_below(rng, 8);
	access->from = make_buffer(access);
	access->to = make_buffer(access);
	access->values = t_alloc(type->extent * (size_t)n);
	access->want = t_alloc(type->extent * (size_t)n);
	access->compare = t_alloc(type->extent);
	for (int i = 0; i < n; i++)
		rma_type_fill(type, rng, access->values + type->extent * (size_t)i);
	rma_type_fill(type, rng, access->compare);
	scatter(access, &access->origin, access->values, access->from);
	access->request = MPI_REQUEST_NULL;
}

/* Applies the operation to the elements in `old`. */
static void operate(const struct access *access, unsigned char *old)
{
	size_t bytes = access->type->extent * (size_t)access->target.n;

	if (access->kind == ACCESS_GET || access->op == MPI_NO_OP)
		return;
	if (access->kind == ACCESS_COMPARE_AND_SWAP &&
	    !rma_type_equal(access->type, old, access->compare))
		return;
	if (access->op == MPI_REPLACE)
		memcpy(old, access->values, bytes);
	else
		MPI_Reduce_local(access->values, old, access->target.n, access->type->type,
				 access->op);
}

void access_model(struct access *access, unsigned char *slot)
{
	size_t extent = access->type->extent, bytes = extent * (size_t)access->target.n;
	unsigned char *elements = t_alloc(bytes);

	slot += access->start;
	for (int i = 0; i < access->target.n; i++)
		memcpy(access->want + extent * (size_t)i, slot + access->target.at[i], extent);
	/* Half of the swaps find the value that they look for. */
	if (access->kind == ACCESS_COMPARE_AND_SWAP && access->values[0] % 2)
		memcpy(access->compare, access->want, extent);
	memcpy(elements, access->want, bytes);
	operate(access, elements);
	scatter(access, &access->target, elements, slot);
	free(elements);
}

/* Calls MPI_R... if the call is to return a request. */
#define CALL(by_request, request, name, rname, ...) \
	((by_request) ? MPI_##rname(__VA_ARGS__, request) : MPI_##name(__VA_ARGS__))

void access_call(struct access *access, int target, MPI_Aint displacement, int unit,
		 bool by_request, MPI_Win win)
{
	const struct layout *o = &access->origin, *r = &access->result, *t = &access->target;
	MPI_Aint at = displacement + (MPI_Aint)access->start / unit;
	MPI_Request *request = &access->request;
	bool has = has_origin(access);
	int rc;

	t_doing(names[access->kind]);
	switch (access->kind) {
	case ACCESS_PUT:
		rc = CALL(by_request, request, Put, Rput, access->from, o->count, o->type, target,
			  at, t->count, t->type, win);
		break;
	case ACCESS_GET:
		rc = CALL(by_request, request, Get, Rget, access->to, r->count, r->type, target, at,
			  t->count, t->type, win);
		break;
	case ACCESS_ACCUMULATE:
		rc = CALL(by_request, request, Accumulate, Raccumulate, access->from, o->count,
			  o->type, target, at, t->count, t->type, access->op, win);
		break;
	case ACCESS_GET_ACCUMULATE:
		rc = CALL(by_request, request, Get_accumulate, Rget_accumulate,
			  has ? access->from : NULL, has ? o->count : 0, has ? o->type : MPI_BYTE,
			  access->to, r->count, r->type, target, at, t->count, t->type, access->op,
			  win);
		break;
	case ACCESS_FETCH_AND_OP:
		rc = MPI_Fetch_and_op(has ? access->from : NULL, access->to, access->type->type,
				      target, at, access->op, win);
		break;
	default:
		rc = MPI_Compare_and_swap(access->from, access->compare, access->to,
					  access->type->type, target, at, win);
	}
	t_eq(rc, MPI_SUCCESS);
	t_doing("");
}

bool access_verify(const struct access *access)
{
	size_t extent = access->type->extent;
	size_t size = extent * (size_t)LAYOUT_SPAN(access->target.n);
	unsigned char *rest;
	bool is_right = true;

	if (!has_result(access))
		return true;
	rest = t_alloc(size);
	memcpy(rest, access->to, size);
	for (int i = 0; i < access->target.n; i++) {
		unsigned char *element = rest + access->result.at[i];

		is_right = is_right &&
			   rma_type_equal(access->type, element, access->want + extent * (size_t)i);
		memset(element, UNUSED, extent);
	}
	for (size_t i = 0; i < size; i++)
		is_right = is_right && rest[i] == UNUSED;
	free(rest);
	return is_right;
}

void access_free(struct access *access)
{
	layout_free(&access->origin);
	layout_free(&access->result);
	layout_free(&access->target);
	free(access->from);
	free(access->to);
	free(access->values);
	free(access->want);
	free(access->compare);
}

void access_describe(const struct access *access, char *text, size_t size)
{
	snprintf(text, size, "%s of %d %s%s%s, target %s%s%s%s%s", names[access->kind],
		 access->target.n, access->type->name, access->op == MPI_OP_NULL ? "" : " by ",
		 rma_operation_name(access->op), layout_names[access->target.kind],
		 has_origin(access) ? ", origin " : "",
		 has_origin(access) ? layout_names[access->origin.kind] : "",
		 has_result(access) ? ", result " : "",
		 has_result(access) ? layout_names[access->result.kind] : "");
}

bool access_is_named(const struct access *access, char *const *patterns)
{
	char text[ACCESS_TEXT];

	access_describe(access, text, sizeof(text));
	for (; *patterns; patterns++)
		if (!fnmatch(*patterns, text, 0))
			return true;
	return false;
}
