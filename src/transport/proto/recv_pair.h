/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives from a peer in a context, when that ends. */
#ifndef TQ_PROTO_RECV_PAIR_H
#define TQ_PROTO_RECV_PAIR_H

#include "proto/rx_objects.h"

/* The peer has failed: ends what only it could end. */
void tq_recv_pair_failed(struct tq_pair *pair, int error);
/* Returns true if a receive is posted that only this peer's messages fit. */
bool tq_recv_pair_awaits(const struct tq_pair *pair);
/* Returns true if the HCA reads the peer's data into users' memory. */
bool tq_recv_pair_reads(const struct tq_pair *pair);
/* Ends the receives of the pair, and frees its messages and tuples. */
void tq_recv_pair_free(struct tq_pair *pair);

#endif
