/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending_event.h - asynchronous events that follow from a change which any process may make in an
 * object's entry: a QP goes to ERR, an SRQ's limit is disarmed. Who is about to make the change
 * notes first that it owes the event. If it dies before it has told the owner, the reaper tells;
 * where it died in the middle of that, once more: one too many does no harm.
 */
#ifndef SHCA_PENDING_EVENT_H
#define SHCA_PENDING_EVENT_H

#include "fabric.h"

/* No event is due, as the error shows in a completion; but the owner of the QP has to flush it. */
#define SHCA_NO_EVENT ((enum ibv_event_type) - 1)

/* This thread is about to change the object (a QP, an SRQ or a CQ, as the event's type says) with
 * that number. */
void shca_pending_event_note(const struct shca_fabric *f, const struct shca_hca *hca,
			     enum ibv_event_type type, uint32_t number);
/* It has made the change: tells the owner, and has its engine flush a QP that was put into ERR. */
void shca_pending_event_send(struct shca_fabric *f, struct shca_hca *hca, enum ibv_event_type type,
			     uint32_t number);
/* There was nothing to change. */
void shca_pending_event_clear(void);
/* Pays for all threads of a process that died, if they had made the change. */
void shca_pending_event_reap(struct shca_fabric *f, unsigned proc);

#endif
