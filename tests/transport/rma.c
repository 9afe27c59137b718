/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <stdlib.h>
#include <string.h>

bool rma_has_atomics(const struct duo *duo)
{
	return tq_rma_atomics(duo->ep) != TQ_ATOMICS_NONE;
}

void rma_window_expose(struct duo *duo, struct rma_window *window, size_t size, unsigned access)
{
	int rc;

	window->mem = aligned_alloc(RMA_PAGE, (size + RMA_PAGE - 1) / RMA_PAGE * RMA_PAGE);
	t_true(window->mem, "no memory");
	memset(window->mem, 0, size);
	if (rma_has_atomics(duo) && access == RMA_ALL)
		access |= TQ_ACCESS_ATOMIC;
	rc = tq_mr_expose(duo->ep, window->mem, size, access, &window->mr);
	t_true(!rc, "expose: %d", rc);
	duo_swap_memory(duo, window->mem, window->mr, &window->addr, &window->key);
}

void rma_window_open(struct duo *duo, struct rma_window *window, size_t size)
{
	rma_window_expose(duo, window, size, RMA_ALL);
}

void rma_window_close(struct duo *duo, struct rma_window *window)
{
	duo_meet(duo);
	tq_mr_deregister(window->mr);
	free(window->mem);
}

void rma_done(void *user, int error)
{
	struct rma_end *end = user;

	if (error) {
		end->failed++;
		end->error = error;
	}
	__atomic_add_fetch(&end->ended, 1, __ATOMIC_RELEASE);
}

void rma_await(struct duo *duo, struct rma_end *end, unsigned n)
{
	while (__atomic_load_n(&end->ended, __ATOMIC_ACQUIRE) < n)
		tq_progress(duo->ep);
}

void rma_start(struct duo *duo, int rank, struct tq_rma rma, struct rma_end *end)
{
	int rc;

	rma.done = rma_done;
	rma.user = end;
	rc = tq_rma(duo->peers[rank], &rma);
	t_true(!rc, "rma: %d", rc);
}

int rma_go(struct duo *duo, int rank, struct tq_rma rma)
{
	struct rma_end end = {0};

	rma_start(duo, rank, rma, &end);
	rma_await(duo, &end, 1);
	return end.error;
}

void rma_go_well(struct duo *duo, int rank, struct tq_rma rma)
{
	int error = rma_go(duo, rank, rma);

	t_true(!error, "an operation ended with %d", error);
}
