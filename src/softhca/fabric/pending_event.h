/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending_event.h - asynchronous events that follow from a change which any process may make in an
 * object's entry: a QP goes to ERR, an SRQ's limit is disarmed. A process notes the event before it
 * makes the change. If it dies before it has sent the event, the reaper sends it; if it died while
 * sending, the event is sent twice, which does no harm.
 */
#ifndef SHCA_PENDING_EVENT_H
#define SHCA_PENDING_EVENT_H

#include "fabric.h"

/* No event is due, because a completion shows the error; the owner of the QP still has to flush
 * it. */
#define SHCA_NO_EVENT ((enum ibv_event_type) - 1)

/* Notes that this thread is about to change the object with that number: a QP, an SRQ or a CQ,
 * as the type of the event says. */
void shca_pending_event_note(const struct shca_fabric *fabric, const struct shca_hca *hca,
			     enum ibv_event_type type, uint32_t number);
/* Sends the event after the change was made, has the owner's engine flush a QP that was put into
 * ERR, and clears the note. */
void shca_pending_event_send(struct shca_fabric *fabric, struct shca_hca *hca,
			     enum ibv_event_type type, uint32_t number);
/* Clears the note: there was nothing to change. */
void shca_pending_event_clear(void);
/* Sends the events that threads of a dead process noted, if they had made the change. */
void shca_pending_event_reap(struct shca_fabric *fabric, unsigned proc);

#endif
