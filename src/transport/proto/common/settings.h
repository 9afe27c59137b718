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
	return core->settings.has_tuples;
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
	return core->settings.eager_limit;
}

/* Returns the length of the longest message that goes eagerly where its tuple has no queue. */
static inline uint64_t tq_eager_max(const struct tq_core *core)
{
	return core->settings.eager_max;
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
	return len >= core->settings.asks_from;
}

/* Works the settings out when the core begins: parameters and limits stay as they are. */
static inline void tq_settings_init(struct tq_core *core)
{
	const struct tq_params *params = core->params;
	uint64_t most = core->limits->control_data_max;
	struct tq_settings *settings = &core->settings;

	settings->has_tuples =
		params->protocol == TQ_PROTOCOL_TUPLEQ || params->protocol == TQ_PROTOCOL_COPY;
	settings->eager_limit = tq_min64((uint64_t)params->eager_limit, most);
	settings->eager_max = settings->eager_limit;
	if (settings->has_tuples && params->eager_max > params->eager_limit)
		settings->eager_max = tq_min64((uint64_t)params->eager_max, most);
	settings->asks_from = settings->eager_max + 1;
	if (!settings->has_tuples)
		settings->asks_from = UINT64_MAX;
	else if (!params->promote_after)
		settings->asks_from = 0;
}

#endif
