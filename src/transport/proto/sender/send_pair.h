/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of sends that are under way to a peer in a context. */
#ifndef TQ_PROTO_SEND_PAIR_H
#define TQ_PROTO_SEND_PAIR_H

#include "proto/common/tx_objects.h"

/* Ends the sends to a peer that has failed, except those that the HCA has: they end with their
 * completions. Takes the pair's tuples back to CONTROL. */
void tq_send_pair_fail(struct tq_pair *pair, int error);
/* Frees the pair's sends and tuples. */
void tq_send_pair_free(struct tq_pair *pair);

#endif
