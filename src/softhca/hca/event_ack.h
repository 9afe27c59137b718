/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event_ack.h - events that the application was given and has not acknowledged yet. Destroying a
 * QP, an SRQ or a CQ waits for them, so that no event ever names an object that is gone.
 *
 * The public structs count acknowledged events (events_completed, comp_events_completed,
 * async_events_completed), and programs read these fields; the private halves count the events that
 * were given. Both counters only grow, and wrap. No event is outstanding when they are equal. The
 * object's own mutex guards both; the lock declared here comes before it.
 */
#ifndef SHCA_EVENT_ACK_H
#define SHCA_EVENT_ACK_H

#include <pthread.h>
#include <stdint.h>

/* Locks and unlocks the look-up of the object that an event names: from before the look-up
 * (shca_qp_by_idx(), shca_srq_by_idx(), shca_cq_by_idx()) until the event counts as given. */
void shca_event_ack_lock(void);
void shca_event_ack_unlock(void);
/* Forgets holders of the lock, in a forked child. */
void shca_event_ack_reset(void);

/* Counts one more event as given, so that its acknowledgement is expected. `given` belongs to the
 * object whose mutex is passed. */
void shca_event_ack_expect(pthread_mutex_t *mutex, uint32_t *given);
/* Counts n more events as acknowledged, in the public counter of the object. */
void shca_event_ack_done(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed,
			 uint32_t n);

/*
 * Waits until as many events are acknowledged as were given. A destroyer calls this after it ended
 * the look-ups of its object; threads that had found the object before are waited for too. The
 * caller holds no lock.
 */
void shca_event_ack_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
			 const uint32_t *given);

#endif
