/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that were decided on: the operation, its events, its answer; and the unexpected list.
 * All with the lock. */
#ifndef P4_ARRIVAL_H
#define P4_ARRIVAL_H

#include "target.h"

struct p4_ni;

/* Carries the operation out and answers it when the data are there, or answers with the failure of
 * the arrival. If `error` isn't 0 the data were lost. */
void p4_arrival_finish(struct p4_arrival *arrival, int error);
/* Decides on an unexpected message that fits an entry that is being appended, or a search. */
enum tq_verdict p4_arrival_decide_hit(struct p4_arrival *arrival, struct p4_entry *entry,
				      struct tq_take *take);
/* Takes note that the message has left the unexpected list. */
void p4_arrival_leave_list(struct p4_arrival *arrival);
/* Frees the messages that are still in the unexpected list when the interface has ended. */
void p4_arrivals_destroy(struct p4_ni *ni);
/* Ends a get, fetch or swap, whose reply was sent, or could not be sent (`error`). */
void p4_arrival_on_replied(struct p4_arrival *arrival, int error);

#endif
