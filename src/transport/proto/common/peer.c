/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on a peer that every file may call: sending a control message, and failing the peer.
 */
#include "proto/common/peer.h"

#include "proto/common/objects.h"

void tq_peer_fail(struct tq_peer *peer, const char *why)
{
	struct tq_core *core = peer->core;

	if (peer->failed || peer->failing)
		return;
	peer->failing = true;
	LL_PREPEND(core->failing, peer);
	core->ops->peer_fail(core->net, peer->link, why);
}

void tq_peer_fail_memory(struct tq_peer *peer)
{
	tq_peer_fail(peer, "there is no memory left for a message from it");
}

int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags)
{
	struct tq_core *core = peer->core;
	int rc = core->ops->control(core->net, peer->link, msg, len, flags);

	if (rc < 0)
		tq_peer_fail(peer, "a control message could not be sent");
	return rc;
}
