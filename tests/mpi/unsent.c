/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unsent.c - a message of the set-up of a communicator's barriers can't be sent, for lack of
 * memory. The barrier fails on both ranks: the receiver of that message gets a refusal instead. Two
 * ranks.
 */
#include "check.h"

#include <errno.h>
#include <tupleq/tupleq.h>

typedef int send_function(struct tq_ctx *, int, int32_t, const struct tq_buf *, unsigned, void *,
			  struct tq_req **);

static bool refuses; /* the next send fails */

/* Stands in front of the library's function. */
int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req)
{
	static send_function *real;

	if (!real)
		t_library_function("tq_send", &real);
	if (refuses) {
		refuses = false;
		return -ENOMEM;
	}
	return real(ctx, rank, tag, buf, flags, user, req);
}

int main(int argc, char **argv)
{
	MPI_Comm comm;
	int rc;

	t_init(&argc, &argv, 2);
	if (t_counter("pml_tupleq_puts") < 0) {
		t_skip("unsent", "it is about coll/tupleq on pml/tupleq");
		return t_finish();
	}
	t_begin("unsent: a barrier whose set-up can't send a message");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	refuses = t_rank == 0;
	rc = MPI_Barrier(comm);
	t_true(!refuses, "no message was to be sent");
	t_true(rc != MPI_SUCCESS, "the barrier ended without an error");
	MPI_Comm_free(&comm);
	t_end();
	return t_finish();
}
