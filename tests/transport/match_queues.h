/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of test_match: entries that the HCA matches. */
#ifndef MATCH_QUEUES_H
#define MATCH_QUEUES_H

void match_queued(void);
void match_recalled(void);
void match_held(void);
void match_overdue(void);
void match_removed_from_queue(void);
void match_closed_in_done(void);

#endif
