/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of test_tupleq: which messages go to tuple queues. */
#ifndef TUPLEQ_QUEUES_H
#define TUPLEQ_QUEUES_H

#include "duo.h"

/* Checks that the HCA matches messages where the parameters let it. */
void queues_promoted(struct duo *duo);
/*
 * Checks that a wildcard takes a waiting message if messages may overtake each other, and
 * otherwise recalls the queue first.
 */
void queues_overtaking(struct duo *duo);
/*
 * Has a sender compute, which finds its completions late, and takes them in several polls. Its
 * messages don't count as held, because the receives were posted.
 */
void queues_computing(struct duo *duo);

#endif
