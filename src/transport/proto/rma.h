/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on peers' memory. */
#ifndef TQ_PROTO_RMA_H
#define TQ_PROTO_RMA_H

#include "proto/common/objects.h"

struct tq_rma_req;

/* Ends an operation that the network has carried out, or given up; `status` is 0 or -EIO. */
void tq_rma_on_done(struct tq_rma_req *op, int status);

/* ---- for ep/ ---- */

/* Starts an operation on the peer's memory; `reg` is the caller's registration of the local memory,
 * NULL: there is none. Returns as tq_rma(). If that is 0, the request will be among those of
 * tq_core_ended(), for tq_core_rma_call_done(). */
int tq_core_rma(struct tq_peer *peer, const struct tq_rma *rma, struct tq_reg *reg);
/* Calls done() of an ended request of the kind TQ_REQ_RMA. Called without the endpoint's lock. */
void tq_core_rma_call_done(const struct tq_req *req);

#endif
