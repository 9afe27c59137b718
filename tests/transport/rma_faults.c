/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA that is refused, or whose peer dies or is removed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rma.h"

static void misuse(struct duo *d)
{
	uint64_t value = 0;
	struct rma_window w;
	struct tq_rma rma = {.kind = TQ_RMA_WRITE, .local = &value, .len = 8, .done = rma_done};
	struct tq_peer *peer = d->peers[!d->me];
	struct tq_mr *mr;

	rma_window_open(d, &w, RMA_PAGE);
	rma.addr = w.addr;
	rma.key = w.key;
	rma.done = NULL;
	t_true(tq_rma(peer, &rma) == -EINVAL, "no rma_done()");
	rma.done = rma_done;
	rma.kind = (enum tq_rma_kind)17;
	t_true(tq_rma(peer, &rma) == -EINVAL, "no such kind");
	rma.kind = TQ_RMA_READ;
	rma.local = NULL;
	rma.len = RMA_PAGE;
	t_true(tq_rma(peer, &rma) == -ENOMEM, "no memory here");
	rma.local = &value;
	rma.kind = TQ_RMA_FETCH_ADD;
	rma.addr++;
	t_true(tq_rma(peer, &rma) == (rma_has_atomics(d) ? -EINVAL : -EOPNOTSUPP), "not aligned");
	t_true(tq_mr_expose(d->ep, w.mem, RMA_PAGE, 8, &mr) == -EINVAL, "no such right");
	t_true(tq_mr_expose(d->ep, NULL, RMA_PAGE, RMA_ALL, &mr) < 0, "no memory to expose");
	if (!rma_has_atomics(d))
		t_true(tq_mr_expose(d->ep, w.mem, RMA_PAGE, TQ_ACCESS_ATOMIC, &mr) == -EOPNOTSUPP,
		       "atomic operations without any");
	t_true(!duo_counter(d, "rma"), "something was started");
	rma_window_close(d, &w);
}

/* Operations that are under way when their peer is removed end without an error. */
static void removed(struct duo *d)
{
	unsigned char *data = calloc(1, RMA_LONG);
	struct rma_end end = {0};
	struct rma_window w;

	rma_window_open(d, &w, RMA_LONG);
	if (!d->me) {
		for (int i = 0; i < 4; i++)
			rma_start(d, 1,
				  (struct tq_rma){.kind = TQ_RMA_WRITE,
						  .local = data,
						  .len = RMA_LONG,
						  .addr = w.addr,
						  .key = w.key},
				  &end);
		tq_ctx_remove(d->ctx);
		tq_peer_remove(d->peers[1]);
		rma_await(d, &end, 4);
		t_true(!end.error, "an operation ended with %d", end.error);
		duo_end();
	}
	duo_gone(d);
	duo_end();
}

/* A refused operation ends with an error, whose sentence names the peer, and so do the operations
 * that were under way with it. */
static void refused(struct duo *d, const struct rma_window *w, enum tq_rma_kind kind)
{
	static uint64_t value[8];
	struct rma_end end = {0};
	int rc;

	for (int i = 0; i < 8; i++)
		rma_start(d, 1,
			  (struct tq_rma){.kind = kind,
					  .local = &value[i],
					  .len = sizeof(value[i]),
					  .addr = w->addr,
					  .key = w->key},
			  &end);
	rc = tq_rma_flush(d->ep, d->peers[1]);
	t_true(rc == -EIO, "flush: %d", rc);
	t_true(end.ended == 8 && end.error == -EIO, "%u of 8 ended, with %d", end.ended, end.error);
	t_true(strstr(d->error, "the other"), "\"%s\" doesn't name the peer", d->error);
	t_true(tq_rma(d->peers[1], &(struct tq_rma){.kind = kind,
						    .local = value,
						    .len = 8,
						    .addr = w->addr,
						    .key = w->key,
						    .done = rma_done,
						    .user = &end}) == -EIO,
	       "the peer is still there");
	t_true(tq_peer_error(d->peers[1]) == -EIO, "no error of the peer");
	t_true(strstr(d->error, "registered"), "\"%s\" doesn't name the cause", d->error);
}

static void key_gone(struct duo *d)
{
	struct rma_window w;

	rma_window_open(d, &w, RMA_PAGE);
	if (d->me)
		tq_mr_deregister(w.mr);
	duo_meet(d);
	if (d->me) {
		duo_gone(d);
		duo_end();
	}
	refused(d, &w, TQ_RMA_WRITE);
	duo_end();
}

static void no_right(struct duo *d)
{
	struct rma_window w;

	rma_window_expose(d, &w, RMA_PAGE, TQ_ACCESS_READ);
	if (d->me) {
		duo_gone(d);
		t_true(!w.mem[0], "written without the right");
		duo_end();
	}
	rma_go_well(d, 1,
		    (struct tq_rma){.kind = TQ_RMA_READ,
				    .local = w.mem,
				    .len = RMA_PAGE,
				    .addr = w.addr,
				    .key = w.key});
	w.mem[0] = 1;
	refused(d, &w, rma_has_atomics(d) ? TQ_RMA_FETCH_ADD : TQ_RMA_WRITE);
	duo_end();
}

/* Only the test's thread makes progress. */
static bool is_alone;

static void dead_peer(struct duo *d)
{
	unsigned char *data = calloc(1, RMA_LONG);
	struct rma_end end = {0};
	struct rma_window w;
	unsigned n = 0;
	int rc;

	rma_window_open(d, &w, RMA_LONG);
	duo_meet(d);
	if (d->me)
		duo_end();
	duo_gone(d);
	do {
		struct tq_rma rma = {.kind = n % 2 ? TQ_RMA_READ : TQ_RMA_WRITE,
				     .local = data,
				     .len = n % 3 ? 8 : RMA_LONG,
				     .addr = w.addr,
				     .key = w.key,
				     .done = rma_done,
				     .user = &end};

		rc = tq_rma(d->peers[1], &rma);
		n += !rc;
	} while (!rc && n < 20);
	t_true(!rc || rc == -EIO, "rma: %d", rc);
	rc = tq_rma_flush(d->ep, NULL);
	t_true(end.ended == n && end.error == -EIO, "%u of %u ended, with %d", end.ended, n,
	       end.error);
	/* The service thread may have seen the failure before the flush began. */
	t_true(rc == -EIO || (!rc && !is_alone), "flush: %d", rc);
	t_eq(tq_rma_flush(d->ep, d->peers[1]), -EIO);
	t_true(strstr(d->error, "the other"), "\"%s\" doesn't name the peer", d->error);
	duo_end();
}

void rma_faults(bool alone)
{
	is_alone = alone;
	duo_run("misuse", misuse);
	duo_run("removed", removed);
	duo_run("key gone", key_gone);
	duo_run("no right", no_right);
	duo_run("dead peer", dead_peer);
}
