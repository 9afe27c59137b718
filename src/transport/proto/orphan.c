/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages for contexts that are not here yet. They stay in memory of the library, as their control
 * buffers go back to their senders.
 */
#include "proto/orphan.h"

#include <stdlib.h>
#include <string.h>

#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/peer.h"
#include "proto/receiver/unexpected.h"

struct tq_orphan {
	struct tq_peer *peer;
	uint32_t len;
	struct tq_orphan *next, *prev;
	unsigned char msg[];
};

/*
 * Orphans that one peer can have here. Each RTS has a handle at the peer. The peer sends nothing
 * eagerly any more when it is told that unexpected_limit is passed; until then credits may go to
 * it once more, and what it has queued still comes. So twice the limit, and what its credits
 * allow, is more than a correct peer can have.
 */
#define ORPHAN_RTS_MAX (1u << TQ_HANDLE_INDEX_BITS)
#define ORPHAN_CREDITS 1024u

static bool orphan_fits(struct tq_core *core, const struct tq_peer *peer, uint8_t type,
			uint32_t len)
{
	uint64_t most = 2 * (uint64_t)core->params->unexpected_limit +
			(uint64_t)ORPHAN_CREDITS * core->limits->control_data_max;

	return type == TQ_MSG_RTS ? peer->orphan_rts < ORPHAN_RTS_MAX
				  : peer->orphan_bytes + len <= most;
}

static void orphan_count(struct tq_core *core, struct tq_orphan *orphan, int n)
{
	if (((const struct tq_msg_hdr *)orphan->msg)->type == TQ_MSG_RTS)
		orphan->peer->orphan_rts += (uint32_t)n;
	else
		orphan->peer->orphan_bytes += (uint64_t)((int64_t)orphan->len * n);
	TQ_LEVEL(core->stats, early_messages, n);
	tq_unexpected_count(core, (int64_t)(sizeof(*orphan) + orphan->len) * n);
}

void tq_orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len)
{
	struct tq_orphan *orphan;

	if (!orphan_fits(core, peer, ((const struct tq_msg_hdr *)msg)->type, len)) {
		TQ_COUNT(core->stats, excesses);
		tq_peer_fail(peer,
			     "it sent more for a communicator that is not here yet than it can");
		return;
	}
	orphan = malloc(sizeof(*orphan) + len);
	if (!orphan) {
		tq_peer_fail_memory(peer);
		return;
	}
	orphan->peer = peer;
	orphan->len = len;
	memcpy(orphan->msg, msg, len);
	DL_APPEND(core->orphans, orphan);
	orphan_count(core, orphan, 1);
}

static void orphan_free(struct tq_core *core, struct tq_orphan *orphan)
{
	DL_DELETE(core->orphans, orphan);
	orphan_count(core, orphan, -1);
	free(orphan);
}

void tq_orphans_take(struct tq_core *core, uint32_t id,
		     bool (*deliver)(struct tq_core *core, struct tq_peer *peer, const void *msg,
				     uint32_t len, struct tq_bounce *bounce))
{
	struct tq_orphan *orphan, *next;

	DL_FOREACH_SAFE(core->orphans, orphan, next) {
		const struct tq_msg_eager *head = (const void *)orphan->msg;

		if (tq_get32(head->env.ctx) != id)
			continue;
		if (!orphan->peer->failed)
			deliver(core, orphan->peer, orphan->msg, orphan->len, NULL);
		orphan_free(core, orphan);
	}
}

void tq_orphans_drop(struct tq_core *core, const struct tq_peer *peer)
{
	struct tq_orphan *orphan, *next;

	DL_FOREACH_SAFE(core->orphans, orphan, next) {
		if (!peer || orphan->peer == peer)
			orphan_free(core, orphan);
	}
}
