/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unposted.c - messages between pairs of ranks while the process has no memory for many of
 * btl/tupleq's receives and sends. A receive that couldn't be posted is posted later, pml/ob1 tries
 * again to send, with all of the data, and no message is lost.
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

typedef int send_function(struct tq_ctx *, int, int32_t, const struct tq_buf *, unsigned, void *,
			  struct tq_req **);

static unsigned calls, refusals;
static bool refuses_sends;
static unsigned sends, unsent;

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

/* Stands in front of the library's function. */
int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req)
{
	static send_function *real;

	if (!real)
		t_library_function("tq_send", &real);
	if (refuses_sends && ++sends % SHARE) {
		unsent++;
		return -ENOMEM;
	}
	return real(ctx, rank, tag, buf, flags, user, req);
}

/* Exchanges messages, every second of which is sent from memory with gaps. */
static void exchange(unsigned messages)
{
	static const int sizes[SIZES] = {0, 8, 2000, 9000, 200000};
	char *out = t_alloc(sizes[SIZES - 1]), *in = t_alloc(sizes[SIZES - 1]);
	char *apart = t_alloc(2 * sizes[SIZES - 1]);
	double since = MPI_Wtime();
	int peer = t_rank ^ 1;

	for (unsigned i = 0; i < messages && (i % 100 || !t_enough(since)); i++) {
		int size = sizes[i % SIZES];
		bool gaps = i / SIZES % 2;
		MPI_Datatype type;

		MPI_Type_vector(size, 1, 1 + gaps, MPI_BYTE, &type);
		MPI_Type_commit(&type);
		t_fill(out, size, (struct t_msg){t_rank, 1, i});
		for (int at = 0; at < size; at++)
			apart[2 * at] = out[at];
		MPI_Sendrecv(gaps ? apart : out, 1, type, peer, 1, in, size, MPI_BYTE, peer, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_verify(in, size, (struct t_msg){peer, 1, i});
		MPI_Type_free(&type);
	}
	free(apart);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	t_true(t_size % 2 == 0, "an even number of ranks is needed");
	t_begin("unposted: messages, with receives that can't be posted at first");
	exchange(MESSAGES);
	t_true(refusals > FIRST, "%u receives were refused", refusals);
	t_end();
	t_begin("unposted: messages, with sends that can't be started at first");
	refuses_sends = true;
	exchange(MESSAGES);
	refuses_sends = false;
	t_true(unsent > SHARE, "%u sends were refused", unsent);
	t_end();
	return t_finish();
}
