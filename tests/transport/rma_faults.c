/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA that is refused, or whose peer dies or is removed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rma.h"

static void misuse(struct duo *duo)
{
	uint64_t value = 0;
	struct rma_window w;
	struct tq_rma rma = {.kind = TQ_RMA_WRITE, .local = &value, .len = 8, .done = rma_done};
	struct tq_peer *peer = duo->peers[!duo->me];
	struct tq_mr *mr;

	rma_window_open(duo, &w, RMA_PAGE);
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
	t_true(tq_rma(peer, &rma) == (rma_has_atomics(duo) ? -EINVAL : -EOPNOTSUPP), "not aligned");
	t_true(tq_mr_expose(duo->ep, w.mem, RMA_PAGE, 8, &mr) == -EINVAL, "no such right");
	t_true(tq_mr_expose(duo->ep, NULL, RMA_PAGE, RMA_ALL, &mr) < 0, "no memory to expose");
	if (!rma_has_atomics(duo))
		t_true(tq_mr_expose(duo->ep, w.mem, RMA_PAGE, TQ_ACCESS_ATOMIC, &mr) == -EOPNOTSUPP,
		       "atomic operations without any");
	t_true(!duo_counter(duo, "rma"), "something was started");
	rma_window_close(duo, &w);
}

/* Operations that are under way when their peer is removed end without an error. */
static void removed(struct duo *duo)
{
	unsigned char *data = calloc(1, RMA_LONG);
	struct rma_end end = {0};
	struct rma_window w;

	rma_window_open(duo, &w, RMA_LONG);
	if (!duo->me) {
		for (int i = 0; i < 4; i++)
			rma_start(duo, 1,
				  (struct tq_rma){.kind = TQ_RMA_WRITE,
						  .local = data,
						  .len = RMA_LONG,
						  .addr = w.addr,
						  .key = w.key},
				  &end);
		tq_ctx_remove(duo->ctx);
		tq_peer_remove(duo->peers[1]);
		rma_await(duo, &end, 4);
		t_true(!end.error, "an operation ended with %d", end.error);
		duo_end();
	}
	duo_gone(duo);
	duo_end();
}

/* A refused operation ends with an error, whose sentence names the peer, and so do the operations
 * that were under way with it. The library may know before all are started, and refuses the rest.
 */
static void refused(struct duo *duo, const struct rma_window *window, enum tq_rma_kind kind)
{
	static uint64_t value[8];
	struct rma_end end = {0};
	struct tq_rma rma = {.kind = kind,
			     .local = value,
			     .len = sizeof(*value),
			     .addr = window->addr,
			     .key = window->key,
			     .done = rma_done,
			     .user = &end};
	unsigned n = 0;
	int rc;

	do {
		rma.local = &value[n];
		rc = tq_rma(duo->peers[1], &rma);
		n += !rc;
	} while (!rc && n < 8);
	t_true(n && (!rc || rc == -EIO), "rma: %d after %u", rc, n);
	rc = tq_rma_flush(duo->ep, duo->peers[1]);
	t_true(rc == -EIO, "flush: %d", rc);
	t_true(end.ended == n && end.failed == n && end.error == -EIO,
	       "%u of %u ended, %u with an error, the last with %d", end.ended, n, end.failed,
	       end.error);
	t_true(strstr(duo->error, "the other"), "\"%s\" doesn't name the peer", duo->error);
	rc = tq_rma(duo->peers[1], &rma);
	t_true(rc == -EIO, "the peer is still there: %d", rc);
	t_true(tq_peer_error(duo->peers[1]) == -EIO, "no error of the peer");
	t_true(strstr(duo->error, "registered"), "\"%s\" doesn't name the cause", duo->error);
}

static void key_gone(struct duo *duo)
{
	struct rma_window w;

	rma_window_open(duo, &w, RMA_PAGE);
	if (duo->me)
		tq_mr_deregister(w.mr);
	duo_meet(duo);
	if (duo->me) {
		duo_gone(duo);
		duo_end();
	}
	refused(duo, &w, TQ_RMA_WRITE);
	duo_end();
}

static void no_right(struct duo *duo)
{
	struct rma_window w;

	rma_window_expose(duo, &w, RMA_PAGE, TQ_ACCESS_READ);
	if (duo->me) {
		duo_gone(duo);
		t_true(!w.mem[0], "written without the right");
		duo_end();
	}
	rma_go_well(duo, 1,
		    (struct tq_rma){.kind = TQ_RMA_READ,
				    .local = w.mem,
				    .len = RMA_PAGE,
				    .addr = w.addr,
				    .key = w.key});
	w.mem[0] = 1;
	refused(duo, &w, rma_has_atomics(duo) ? TQ_RMA_FETCH_ADD : TQ_RMA_WRITE);
	duo_end();
}

/* Only the test's thread makes progress. */
static bool is_alone;

static void dead_peer(struct duo *duo)
{
	unsigned char *data = calloc(1, RMA_LONG);
	struct rma_end end = {0};
	struct rma_window w;
	unsigned n = 0;
	int rc;

	rma_window_open(duo, &w, RMA_LONG);
	duo_meet(duo);
	if (duo->me)
		duo_end();
	duo_gone(duo);
	do {
		struct tq_rma rma = {.kind = n % 2 ? TQ_RMA_READ : TQ_RMA_WRITE,
				     .local = data,
				     .len = n % 3 ? 8 : RMA_LONG,
				     .addr = w.addr,
				     .key = w.key,
				     .done = rma_done,
				     .user = &end};

		rc = tq_rma(duo->peers[1], &rma);
		n += !rc;
	} while (!rc && n < 20);
	t_true(!rc || rc == -EIO, "rma: %d", rc);
	rc = tq_rma_flush(duo->ep, NULL);
	t_true(end.ended == n && end.failed == n && end.error == -EIO,
	       "%u of %u ended, %u with an error, the last with %d", end.ended, n, end.failed,
	       end.error);
	/* The service thread may have seen the failure before the flush began. */
	t_true(rc == -EIO || (!rc && !is_alone), "flush: %d", rc);
	t_eq(tq_rma_flush(duo->ep, duo->peers[1]), -EIO);
	t_true(strstr(duo->error, "the other"), "\"%s\" doesn't name the peer", duo->error);
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
