/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the thread that is the adapter while the application computes. The engine executes
 * what is large, held back or due later.
 */
#ifndef SHCA_ENGINE_H
#define SHCA_ENGINE_H

#include "hca/queues/queue_pair.h"

/* Starts the thread, unless it runs. Returns 0 or -errno. */
int shca_engine_start(void);
/* Ends the thread, for a clean exit. Nothing of this process is executed afterwards. */
void shca_engine_stop(void);
/* Forgets the thread and its work, in a forked child. */
void shca_engine_reset(void);

/* Puts a QP on the list of those with work to do. The caller holds qp->sq_lock. */
void shca_engine_queue(struct shca_qp *qp);
/* Queues a QP for time `when`. `rnr`: the QP waits for a receive, and a wake-up may end the wait.
 * The caller holds qp->sq_lock. */
void shca_engine_queue_at(struct shca_qp *qp, uint64_t when, bool rnr);
/* Returns how often wake-ups have brought RNR waits forward; stored in qp->rnr_seen before the
 * requester looks for a receive. */
uint32_t shca_engine_rnr_wakes(void);
/* Removes a QP from the engine and waits until no thread executes it. The caller doesn't hold
 * qp->sq_lock. */
void shca_engine_remove(struct shca_qp *qp);

/* Has the engine check soon whether peers have ended, because one does not answer. Any thread, also
 * inside an epoch. */
void shca_engine_suspect(void);

#endif
