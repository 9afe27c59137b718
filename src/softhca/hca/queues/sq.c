/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq.c - taking and freeing the slots of a send queue.
 */
#include "sq.h"

#include <errno.h>

int shca_sq_complete(struct shca_qp *qp, uint32_t n, uint64_t *wr_id)
{
	if (n - atomic_load_explicit(&qp->tail, memory_order_relaxed) >= qp->max_wr)
		return -ENOENT;
	*wr_id = shca_swqe(qp, n)->wr_id;
	/* release: the poster may write over the slots that this gives back. */
	atomic_store_explicit(&qp->tail, n + 1, memory_order_release);
	/* If the engine executed the send, its CPU has this line, and the next post will want it.
	 */
	shca_prefetch_write(&qp->sq_lock);
	return 0;
}
