/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_ack.h - events that the application was given and has not acknowledged yet. Destroying a
 * QP, an SRQ or a CQ waits for them, so that no event ever names an object that is gone.
 *
 * The public structs count the acknowledged events (events_completed, comp_events_completed,
 * async_events_completed), and programs read them; the private halves count the events that were
 * given. Both only grow, and wrap. None is outstanding when they are equal.
 *
 * Lock order: the handout lock, then the object's own mutex, which guards both counters.
 */
#ifndef SHCA_EVENT_ACK_H
#define SHCA_EVENT_ACK_H

#include "objects.h"

/* Held by who reads an event from before it looks the object up (shca_qp_by_idx() and the like in
 * ops.h) until the event counts as handed out. */
void shca_event_ack_lock(void);
void shca_event_ack_unlock(void);
/* In a forked child: nobody holds the lock. */
void shca_event_ack_reset(void);

/* Counts one more event as given. `given` belongs to the object whose mutex is passed. */
void shca_event_ack_expect(pthread_mutex_t *mutex, uint32_t *given);
/* Counts n more events as acknowledged, in the public counter of the object. */
void shca_event_ack_done(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
			 uint32_t n);

/*
 * Wait until all events that were handed out for the object are acknowledged. For a destroyer,
 * after it ended the look-ups of its object: whoever had found it by then is waited for too. Hold
 * no lock.
 */
void shca_wait_qp_acks(struct shca_qp *qp);
void shca_wait_srq_acks(struct shca_srq *srq);
void shca_wait_cq_acks(struct shca_cq *cq); /* completion events too */

#endif
