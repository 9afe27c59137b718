/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unposted.c - messages between pairs of ranks while the process has no memory for many of
 * btl/tupleq's receives. A receive that couldn't be posted is posted later, and no message is lost.
 * For --mca pml ob1 --mca btl tupleq,self.
 */
#include "check.h"

#include <errno.h>
#include <tupleq/tupleq.h>

/* The first 200 calls fail, with all of the receives that MPI_Init posts among them, and two of
 * three later ones. */
enum { FIRST = 200, SHARE = 3, MESSAGES = 3000, SIZES = 5 };

typedef int recv_function(struct tq_ctx *, int, int32_t, const struct tq_buf *, void *,
			  struct tq_req **, struct tq_status *);

static unsigned calls, refusals;

/* Stands in front of the library's function. */
int tq_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
	    struct tq_req **req, struct tq_status *status)
{
	static recv_function *real;

	if (!real)
		t_library_function("tq_recv", &real);
	calls++;
	if (calls < FIRST || calls % SHARE) {
		refusals++;
		return -ENOMEM;
	}
	return real(ctx, rank, tag, buf, user, req, status);
}

int main(int argc, char **argv)
{
	static const int sizes[SIZES] = {0, 8, 2000, 9000, 200000};
	char *out = t_alloc(sizes[SIZES - 1]), *in = t_alloc(sizes[SIZES - 1]);
	double since;
	int peer;

	t_init(&argc, &argv, 2);
	t_true(t_size % 2 == 0, "an even number of ranks is needed");
	peer = t_rank ^ 1;
	t_begin("unposted: messages, with receives that can't be posted at first");
	since = MPI_Wtime();
	for (unsigned i = 0; i < MESSAGES && (i % 100 || !t_enough(since)); i++) {
		int size = sizes[i % SIZES];

		t_fill(out, size, (struct t_msg){t_rank, 1, i});
		MPI_Sendrecv(out, size, MPI_BYTE, peer, 1, in, size, MPI_BYTE, peer, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_verify(in, size, (struct t_msg){peer, 1, i});
	}
	t_true(refusals > FIRST, "%u receives were refused", refusals);
	t_end();
	free(out);
	free(in);
	return t_finish();
}
