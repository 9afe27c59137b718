/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h - completing with WR_FLUSH_ERR the requests of a QP that is in ERR.
 */
#ifndef SHCA_FLUSH_H
#define SHCA_FLUSH_H

#include "hca/queues/queue_pair.h"

/* How long (ns) a flush waits for a sender that may be stopped in the middle of a message. After
 * that the sender's receive is flushed all the same, and the message fails when its sender goes
 * on. */
#define SHCA_FLUSH_PATIENCE 20000000u

/* Completes all requests of a QP in ERR that is no target QP, after a wait of at most `patience` ns
 * until threads that were working on the QP have left their epochs. Only the QP's owner may call
 * this, without sq_lock. */
void shca_flush_qp(struct shca_qp *qp, uint64_t patience);
/* Completes the receive that an interrupted message to the QP holds, in whichever process's CQ. */
void shca_flush_held(struct shca_qp *qp);
/* Flushes each QP of this process that a peer or an error put into ERR, and once more those that
 * may lack a completion, because a peer died since. */
void shca_flush_failed_qps(void);
/* Completes receives that were posted after the QP was flushed. */
void shca_flush_late_receives(struct shca_qp *qp);
/* Keeps shca_flush_failed_qps() from flushing a QP whose queues are about to be emptied or freed.
 */
void shca_flush_disable(struct shca_qp *qp);
/* Lock out shca_flush_failed_qps() while the index of QPs changes. */
void shca_flush_lock(void);
void shca_flush_unlock(void);
/* Forgets holders of the lock, in a forked child. */
void shca_flush_reset(void);

#endif
