/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <stdlib.h>
#include <string.h>

bool rma_has_atomics(const struct duo *d)
{
	return tq_rma_atomics(d->ep) != TQ_ATOMICS_NONE;
}

void rma_window_expose(struct duo *d, struct rma_window *w, size_t size, unsigned access)
{
	int rc;

	w->mem = aligned_alloc(RMA_PAGE, (size + RMA_PAGE - 1) / RMA_PAGE * RMA_PAGE);
	t_true(w->mem, "no memory");
	memset(w->mem, 0, size);
	if (rma_has_atomics(d) && access == RMA_ALL)
		access |= TQ_ACCESS_ATOMIC;
	rc = tq_mr_expose(d->ep, w->mem, size, access, &w->mr);
	t_true(!rc, "expose: %d", rc);
	duo_swap_memory(d, w->mem, w->mr, &w->addr, &w->key);
}

void rma_window_open(struct duo *d, struct rma_window *w, size_t size)
{
	rma_window_expose(d, w, size, RMA_ALL);
}

void rma_window_close(struct duo *d, struct rma_window *w)
{
	duo_meet(d);
	tq_mr_deregister(w->mr);
	free(w->mem);
}

void rma_done(void *user, int error)
{
	struct rma_end *end = user;

	end->error = error;
	__atomic_add_fetch(&end->ended, 1, __ATOMIC_RELEASE);
}

void rma_await(struct duo *d, struct rma_end *end, unsigned n)
{
	while (__atomic_load_n(&end->ended, __ATOMIC_ACQUIRE) < n)
		tq_progress(d->ep);
}

void rma_start(struct duo *d, int rank, struct tq_rma rma, struct rma_end *end)
{
	int rc;

	rma.done = rma_done;
	rma.user = end;
	rc = tq_rma(d->peers[rank], &rma);
	t_true(!rc, "rma: %d", rc);
}

int rma_go(struct duo *d, int rank, struct tq_rma rma)
{
	struct rma_end end = {0};

	rma_start(d, rank, rma, &end);
	rma_await(d, &end, 1);
	return end.error;
}

void rma_go_well(struct duo *d, int rank, struct tq_rma rma)
{
	int error = rma_go(d, rank, rma);

	t_true(!error, "an operation ended with %d", error);
}
