/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the thread that is the adapter while the application computes: it executes what is
 * large, held or due later.
 */
#ifndef SHCA_ENGINE_H
#define SHCA_ENGINE_H

#include "hca/objects.h"

/*
 * Something that is due at a time. Embedded in what it is about; all fields belong to the engine.
 */
struct shca_timer {
	uint64_t when; /* ns */
	uint32_t at;   /* place in the heap + 1; 0 = not set */
};

/* Starts the thread (once; again in a forked child). 0 or -errno. */
int shca_engine_start(void);
/* Ends it: for a clean exit. Nothing of this process is executed afterwards. */
void shca_engine_stop(void);
/* Forgets all of it: nobody runs it any more (reset.c). */
void shca_engine_reset(void);

/* Puts a QP on the list of those with work to do. Holding qp->sq_lock. */
void shca_engine_queue(struct shca_qp *qp);
/* ... at time `when`. `rnr`: it waits for a receive, and a bell may end the wait. */
void shca_engine_queue_at(struct shca_qp *qp, uint64_t when, bool rnr);
/* How often bells have brought RNR waits forward: noted in qp->rnr_seen before a receive is looked
 * for. */
uint32_t shca_engine_rnr_wakes(void);
/* Takes it off again and waits until nobody executes it. Not holding qp->sq_lock. */
void shca_engine_remove(struct shca_qp *qp);

/* Raises a CQ's event at a time when its completion may be seen. */
void shca_engine_event_at(struct shca_hca *hca, struct shca_cq_entry *e, uint64_t when,
			  bool solicited);

/* A peer does not answer: see whether its process has ended. Any thread, also inside an epoch. */
void shca_engine_suspect(void);

/* Acts on what peers flagged in this process's attention word. */
void shca_engine_attend(void);

#endif
