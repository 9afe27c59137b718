/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runqueue.h - the QPs that the engine is to execute, now or later.
 */
#ifndef SHCA_RUNQUEUE_H
#define SHCA_RUNQUEUE_H

#include "hca/queues/queue_pair.h"

/* Has the engine execute a QP's send queue, and wakes it. The caller holds qp->sq_lock. */
void shca_runqueue_add(struct shca_qp *qp);
/* Has the engine do so at time `when`. `rnr`: the QP waits for a receive, and a wake-up may end the
 * wait. The caller holds qp->sq_lock. */
void shca_runqueue_add_at(struct shca_qp *qp, uint64_t when, bool rnr);
/* Returns how often wake-ups have brought RNR waits forward; stored in qp->rnr_seen before the
 * requester looks for a receive. */
uint32_t shca_runqueue_rnr_wakes(void);
/* Removes a QP and waits until no thread executes it. The caller doesn't hold
 * qp->sq_lock. */
void shca_runqueue_remove(struct shca_qp *qp);

/* Takes a QP that has work to do at `now`, and makes it RUNNING. Returns NULL if there is none. */
struct shca_qp *shca_runqueue_take(uint64_t now);
/* Returns true if a QP has work to do at once. */
bool shca_runqueue_has_ready(void);
/* Returns when the first deadline of this process's connections is; UINT64_MAX: there is none. */
uint64_t shca_runqueue_connections_due(void);
/* Returns when the next QP or event of a CQ is due; UINT64_MAX if none is. */
uint64_t shca_runqueue_next(void);
/* Lets all QPs that wait after an RNR NAK try at the end of their timers, because a receive was
 * posted for one of them. */
void shca_runqueue_end_rnr_waits(void);
/* Notes when the engine has work next (shca_timing.schedule()), after it has worked. */
void shca_runqueue_schedule(void);
/* Forgets all, in a forked child. */
void shca_runqueue_reset(void);

#endif
