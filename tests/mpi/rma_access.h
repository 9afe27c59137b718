/* SPDX-License-Identifier: BSD-3-Clause */
/* rma_access.h - one-sided operations of rma_model.c, and what they do by the model. */
#ifndef T_RMA_ACCESS_H
#define T_RMA_ACCESS_H

#include "rma_layout.h"
#include "rma_type.h"

enum {
	SLOT = 1 << 15, /* bytes of a target's memory for the elements of an access */
	ACCESS_TEXT = 200
};

enum access_kind {
	ACCESS_PUT,
	ACCESS_GET,
	ACCESS_ACCUMULATE,
	ACCESS_GET_ACCUMULATE,
	ACCESS_FETCH_AND_OP,
	ACCESS_COMPARE_AND_SWAP,
	ACCESS_KINDS
};

struct access {
	enum access_kind kind;
	const struct rma_type *type;
	MPI_Op op;
	size_t start; /* in the slot */
	struct layout origin, result, target;
	unsigned char *from, *to;        /* buffers of the origin and the result */
	unsigned char *values, *compare; /* the origin's elements; the value to compare with */
	unsigned char *want;             /* the result by the model, elements without gaps */
	MPI_Request request;
};

/* Chooses an access to a slot with elements of that type, in a window with units of `unit` bytes.
 */
void access_choose(struct access *access, struct t_rng *rng, enum access_kind kind,
		   const struct rma_type *type, MPI_Op op, int unit);
/* Changes the slot of the model as the access does, and stores the result by the model. */
void access_model(struct access *access, unsigned char *slot);
/* Calls MPI for the access to the slot at `displacement` of the target, with units of `unit` bytes.
 * With `by_request` the call returns a request, if MPI has such a call. */
void access_call(struct access *access, int target, MPI_Aint displacement, int unit,
		 bool by_request, MPI_Win win);
/* Returns true if the result is that of the model, and no other byte of the buffer has changed. */
bool access_verify(const struct access *access);
void access_free(struct access *access);
/* Stores the description of the access. */
void access_describe(const struct access *access, char *text, size_t size);
/* Returns true if that text matches one of the patterns, which are those of the shell. */
bool access_is_named(const struct access *access, char *const *patterns);

#endif
