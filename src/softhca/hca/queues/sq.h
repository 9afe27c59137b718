/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq.h - the ring of a send queue: where its WQEs come from, and when their slots are free again.
 */
#ifndef SHCA_SQ_H
#define SHCA_SQ_H

#include <errno.h>

#include "queue_pair.h"

/* Returns the WQE for the next send, or NULL with *err set: ENOMEM if the queue is full, EINVAL if
 * the QP takes no sends: as with mlx5, from RTS on it does, also in ERR. The caller holds
 * sq_lock. */
static inline struct shca_swqe *shca_sq_next(struct shca_qp *qp, int *err)
{
	if (!qp->may_send) {
		*err = EINVAL;
		return NULL;
	}
	if (qp->head - atomic_load_explicit(&qp->tail, memory_order_acquire) >= qp->max_wr) {
		*err = ENOMEM;
		return NULL;
	}
	return shca_swqe(qp, qp->head);
}
/* Frees the slots up to that of a send whose completion was polled, and stores its wr_id. Returns
 * 0, or -ENOENT if the queue has no place for send number n, which another process wrote. */
int shca_sq_complete(struct shca_qp *qp, uint32_t n, uint64_t *wr_id);

#endif
