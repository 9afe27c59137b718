/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct messages with match bits that wait for long at their sender. */
#ifndef TQ_PROTO_OVERDUE_H
#define TQ_PROTO_OVERDUE_H

#include "proto/common/tx_objects.h"

/* Watches a tuple on which a direct message was posted. */
void tq_overdue_watch(struct tq_tx_tuple *tuple);
/* Stops watching a tuple, if it is watched. */
void tq_overdue_unwatch(struct tq_tx_tuple *tuple);

#endif
