/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registered.c - long messages between pairs of ranks, always in the same few buffers, which are
 * registered once and not for each message. For --mca pml ob1 --mca btl tupleq,self.
 */
#include "check.h"

#include <tupleq/tupleq.h>

enum { BUFFERS = 3, BYTES = 1 << 20, WARM_UP = 10, MESSAGES = 200, MOST = 4 };

typedef int open_function(const struct tq_params *, const struct tq_job *,
			  const struct tq_mr_cache *, struct tq_ep **);

static struct tq_ep *endpoint;

/* Stands in front of the library's function, and notes the endpoint for its counters. */
int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep)
{
	open_function *real;
	int rc;

	t_library_function("tq_open", &real);
	rc = real(params, job, cache, ep);
	endpoint = rc ? NULL : *ep;
	return rc;
}

static uint64_t registrations(void)
{
	const struct tq_counter_desc *counter;

	for (unsigned i = 0; (counter = tq_counter_desc(i)); i++) {
		if (!strcmp(counter->name, "registrations"))
			return tq_counter(endpoint, i);
	}
	t_fail("there is no such counter");
	return 0;
}

static void exchange(char *const buffers[], unsigned messages)
{
	int peer = t_rank ^ 1;

	for (unsigned i = 0; i < messages; i++) {
		char *out = buffers[i % BUFFERS], *in = buffers[(i + 1) % BUFFERS];

		t_fill(out, BYTES, (struct t_msg){t_rank, 1, i});
		MPI_Sendrecv(out, BYTES, MPI_BYTE, peer, 1, in, BYTES, MPI_BYTE, peer, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_verify(in, BYTES, (struct t_msg){peer, 1, i});
	}
}

int main(int argc, char **argv)
{
	char *buffers[BUFFERS];
	uint64_t before, grown;

	t_init(&argc, &argv, 2);
	t_true(t_size % 2 == 0, "an even number of ranks is needed");
	t_begin("registered: %d long messages in %d buffers", MESSAGES, BUFFERS);
	t_true(endpoint != NULL, "no endpoint of libtupleq is open");
	for (int i = 0; i < BUFFERS; i++)
		buffers[i] = t_alloc(BYTES);
	exchange(buffers, WARM_UP);
	before = registrations();
	exchange(buffers, MESSAGES);
	grown = registrations() - before;
	t_true(grown <= MOST, "%llu registrations, not %d at most", (unsigned long long)grown,
	       MOST);
	for (int i = 0; i < BUFFERS; i++)
		free(buffers[i]);
	t_end();
	return t_finish();
}
