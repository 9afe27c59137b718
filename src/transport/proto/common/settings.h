/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways that messages may go, and their lengths, by the parameters and the network's limits.
 */
#ifndef TQ_PROTO_SETTINGS_H
#define TQ_PROTO_SETTINGS_H

#include "base/min.h"
#include "proto/common/objects.h"

/* Returns true if messages may go to tuple queues at all. */
static inline bool tq_wants_tuples(const struct tq_core *core)
{
	return core->params->protocol == TQ_PROTOCOL_TUPLEQ ||
	       core->params->protocol == TQ_PROTOCOL_COPY;
}

/* Returns true if an RTS is answered by an RDMA read, where that is possible. */
static inline bool tq_wants_rget(const struct tq_core *core)
{
	return core->params->protocol == TQ_PROTOCOL_RGET ||
	       (tq_wants_tuples(core) && core->params->rendezvous == TQ_RENDEZVOUS_RGET);
}

/* Returns the length up to which messages go eagerly in every protocol. */
static inline uint64_t tq_eager_limit(const struct tq_core *core)
{
	return tq_min64((uint64_t)core->params->eager_limit, core->limits->control_data_max);
}

/* Returns the length of the longest message that goes eagerly where its tuple has no queue. */
static inline uint64_t tq_eager_max(const struct tq_core *core)
{
	uint64_t limit = tq_eager_limit(core);

	if (!tq_wants_tuples(core) || core->params->eager_max <= core->params->eager_limit)
		return limit;
	return tq_min64((uint64_t)core->params->eager_max, core->limits->control_data_max);
}

/* Returns the length of the longest message that loses by a hold: it goes eagerly, or its transfer
 * takes no longer than four of the adapter's pauses after an RNR NAK. A message of that length
 * loses a twentieth (POLICY.md). */
static inline uint64_t tq_hold_max(const struct tq_core *core)
{
	uint64_t eager = tq_eager_max(core), pauses = 4 * core->limits->rnr_bytes;

	return pauses > eager ? pauses : eager;
}

/* Returns true if a message of `len` bytes makes its tuple ask for a queue. No other message needs
 * a record of its tuple as long as that has no queue. */
static inline bool tq_asks_for_queue(const struct tq_core *core, uint64_t len)
{
	return !core->params->promote_after || len > tq_eager_max(core);
}

#endif
