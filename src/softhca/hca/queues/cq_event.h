/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_event.h - events of completions. Under the link model and reordering a completion may not be
 * seen yet: then the engine raises the event when it is due.
 *
 * If events are moderated, the event of a completion for which a queue is armed is held back. The
 * event is raised when a number of completions could be seen since the last event, or when a period
 * has passed since then. mlx5's driver leaves its adapters in this mode, in which the period begins
 * with an event rather than with a completion.
 */
#ifndef SHCA_CQ_EVENT_H
#define SHCA_CQ_EVENT_H

#include "hca/process.h"

/* Returns true if a queue with that arming raises an event for such a completion. */
static inline bool shca_cq_event_wanted(uint64_t arm, bool solicited)
{
	return arm == SHCA_ARM_ANY || (arm == SHCA_ARM_SOLICITED && solicited);
}
/* Raises the completion event of a CQ, if it is armed for that kind of completion. */
void shca_cq_fire(struct shca_hca *hca, struct shca_cq_entry *entry, bool solicited);
/* Counts a completion of a queue whose events are moderated, and raises its event. */
void shca_cq_moderated(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t visible_at,
		       bool solicited);
/* Moderates the events of an own CQ from here on; 0 completions or us: not at all. */
void shca_cq_moderate(struct shca_hca *hca, struct shca_cq_entry *entry, uint32_t count,
		      uint32_t period);
/* Raises a CQ's event at a time when its completion may be seen. Inside an epoch, or for an own
 * CQ. */
void shca_cq_event_at(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t when,
		      bool solicited);
/* Returns when the next event is due; UINT64_MAX if there is none. */
uint64_t shca_cq_event_next(void);
/* Raises one event that is due at `now`. Returns false if there is none. */
bool shca_cq_event_fire(uint64_t now);
/* Forgets all events, in a forked child. */
void shca_cq_event_reset(void);

#endif
