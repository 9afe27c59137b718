/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on peers' memory, as the library's users call them. */
#include <errno.h>
#include <unistd.h>

#include "ep/objects.h"
#include "ep/progress.h"
#include "ep/unlock.h"
#include "net/adapter/mem.h"
#include "net/connections.h"
#include "net/peers/link.h"
#include "proto/common/req.h"
#include "proto/rma.h"

enum tq_atomics tq_rma_atomics(const struct tq_ep *ep)
{
	switch (ep->net.dev.attr.atomic_cap) {
	case IBV_ATOMIC_GLOB:
		return TQ_ATOMICS_ALL;
	case IBV_ATOMIC_HCA:
		return TQ_ATOMICS_ADAPTER;
	default:
		return TQ_ATOMICS_NONE;
	}
}

int tq_rma(struct tq_peer *peer, const struct tq_rma *rma)
{
	struct tq_ep *ep = tq_ep_of(peer->core);
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_rma(peer, rma, tq_mem_reg_of(rma->mr));
	tq_ep_unlock(ep);
	return rc;
}

/* Returns true if nothing is under way. Operations of a peer whose connection has failed end when
 * the log has said why. Operations in the list of ended requests still wait for their done(). */
static bool is_flushed(const struct tq_ep *ep, const struct tq_peer *peer)
{
	if (tq_core_has_ended(&ep->core))
		return false;
	if (!peer)
		return !ep->core.nrma && tq_connections_are_settled(&ep->net);
	return !peer->nrma && (peer->failed || !tq_link_has_failed(peer->link));
}

int tq_rma_flush(struct tq_ep *ep, struct tq_peer *peer)
{
	uint64_t failures;
	int rc;

	if (getpid() != ep->pid)
		return -EPERM;
	tq_lock(&ep->lock);
	failures = ep->net.failures;
	while (!is_flushed(ep, peer))
		tq_ep_progress(ep);
	rc = peer ? peer->failed : ep->net.failures == failures ? 0 : -EIO;
	tq_ep_unlock(ep);
	return rc;
}
