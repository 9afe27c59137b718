/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives from a peer in a context, when that ends. */
#ifndef TQ_PROTO_RECV_PAIR_H
#define TQ_PROTO_RECV_PAIR_H

#include "proto/common/rx_objects.h"

/* Ends the receives that only the peer, which has failed, could end. Drops messages whose data are
 * lost with it. RDMA reads end with their completions. */
void tq_recv_pair_fail(struct tq_pair *pair, int error);
/* Returns true if a receive that only this peer's messages fit waits in a queue of the library. */
bool tq_recv_pair_awaits(const struct tq_pair *pair);
/* Returns true if the HCA reads the peer's data into users' memory. */
bool tq_recv_pair_reads(const struct tq_pair *pair);
/* Ends the receives of the pair, and frees its messages and tuples. */
void tq_recv_pair_free(struct tq_pair *pair);

#endif
