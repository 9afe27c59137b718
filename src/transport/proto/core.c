/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol's frame: its start and end, and deferred work. */
#include "proto/core.h"

#include <stdlib.h>

#include "proto/common/net_ops.h"
#include "proto/common/prefix.h"
#include "proto/common/req.h"
#include "proto/common/rx_objects.h"
#include "proto/common/settings.h"
#include "proto/common/tx_objects.h"
#include "proto/ctxs.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/held.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/send_pieces.h"
#include "proto/sender/tx_lane.h"
#include "proto/sender/tx_tuple_table.h"

/* ---- start and end ---- */

void tq_core_init(struct tq_core *core, const struct tq_net_ops *ops, struct tq_net *net,
		  const struct tq_net_limits *limits, const struct tq_params *params,
		  struct tq_stats *stats)
{
	*core = (struct tq_core){
		.ops = ops,
		.net = net,
		.limits = limits,
		.params = params,
		.stats = stats,
	};
	tq_settings_init(core);
	core->ended_tail = &core->ended;
	core->send_reqs.stats = core->recv_reqs.stats = core->tx_tuples.stats =
		core->rx_tuples.stats = core->entries.stats = stats;
}

void tq_core_destroy(struct tq_core *core)
{
	struct tq_req *req, *next;
	struct tq_unexpected *message, *next_message;

	core->lock = NULL; /* nobody else uses the core any more */
	tq_ctxs_destroy(core);
	tq_tx_lanes_destroy(core);
	for (req = tq_core_ended(core); req; req = next) {
		next = req->next;
		tq_req_free(req); /* its context is gone */
	}
	for (int kind = 0; kind < TQ_REQ_KINDS; kind++) {
		LL_FOREACH_SAFE(core->free_reqs[kind], req, next) {
			free(req);
		}
	}
	LL_FOREACH_SAFE(core->free_unexpected, message, next_message) {
		free(message);
	}
	tq_prefixes_destroy(core);
	tq_handles_destroy(&core->send_reqs);
	tq_handles_destroy(&core->recv_reqs);
	tq_handles_destroy(&core->tx_tuples);
	tq_handles_destroy(&core->rx_tuples);
	tq_handles_destroy(&core->entries);
}

/* ---- deferred work ---- */

/* Ends the requests of the peers that tq_peer_fail() marked. Returns the number of peers. */
static int poll_failing(struct tq_core *core)
{
	int n = 0;

	for (; core->failing; n++)
		tq_core_on_peer_failed(core, core->failing);
	return n;
}

int tq_core_poll(struct tq_core *core)
{
	int events;

	tq_assert_held(core->lock);
	events = poll_failing(core);
	events += tq_send_pieces_poll(core);
	if (core->room)
		events += tq_held_poll(core);
	events += tq_fetch_poll(core);
	if (core->removed)
		tq_ctxs_reap(core);
	/* Some records are no longer needed. */
	tq_tx_tuples_trim(core, 0);
	tq_rx_tuples_trim(core, 0);
	return events;
}

bool tq_core_is_idle(const struct tq_core *core)
{
	tq_assert_held(core->lock);
	return core->outstanding == 0;
}
