/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of test_match: entries that the HCA matches. */
#ifndef MATCH_QUEUES_H
#define MATCH_QUEUES_H

/* Checks that tuples whose entries share a mask get a queue, and that no function of the user's is
 * asked then. */
void match_queues_filled(void);
/* Checks that messages whose entries wait don't recall the queue that is offered to the first. */
void match_queues_window(void);
/* Checks that an entry that could match a queue's messages recalls the queue, and keeps its
 * place. */
void match_queues_recalled(void);
/* Checks that a message that its sender holds goes to the user, if no entry is there for it. */
void match_queues_held(void);
/* Checks that the second of two messages that wait in a lane comes to light although its sender
 * computes. */
void match_queues_overdue(void);
/* Checks that an entry in a queue can be removed after its queue was recalled. */
void match_queues_removed(void);
/* Checks that a closed context is said to have queues until done() has returned for all messages
 * that the HCA matched. */
void match_queues_closed(void);

#endif
