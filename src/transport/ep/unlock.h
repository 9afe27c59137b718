/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a turn with the endpoint's lock: what is left to do is the service thread's, if there
 * is one. */
#ifndef TQ_EP_UNLOCK_H
#define TQ_EP_UNLOCK_H

#include "ep/objects.h"

/* Wakes the thread, which exists, so that it looks at once for what is to be done. Called with the
 * lock. */
void tq_ep_wake_service(struct tq_ep *ep);
/* Wakes the thread, which exists, if there is work that the application may not come back for soon.
 * Called with the lock, before that is released. */
void tq_ep_hint_service(struct tq_ep *ep);

/* Returns true if work goes on when sends complete, or when the peer has room again: RECALLED is
 * due then, or a message, a write or more of what the bulk lane takes can be posted. */
static inline bool tq_ep_awaits_sends(const struct tq_ep *ep)
{
	return tq_core_awaits_sends(&ep->core) || ep->net.bulk_busy || ep->net.waiting ||
	       ep->net.putting || (ep->net.owing && ep->net.credit_waits);
}

/* Returns true if the service thread is to go on with copies. */
static inline bool tq_ep_service_copies(const struct tq_ep *ep)
{
	return ep->service->completes && tq_core_has_copies(&ep->core);
}

/* Returns true if there may be something for the service thread to do. Mostly there isn't, which
 * this function finds out with few instructions: each call comes here. */
static inline bool tq_ep_has_service(const struct tq_ep *ep)
{
	const struct tq_core *core = &ep->core;
	const struct tq_net *net = &ep->net;

	if (!ep->service)
		return false;
	return (core->nrecalling | core->ngranted | core->nunwatched | net->ndatagrams |
		core->reminds | ep->service->completes) ||
	       net->bulk_busy || net->waiting || net->putting || net->owing;
}

static inline void tq_ep_unlock(struct tq_ep *ep)
{
	if (tq_ep_has_service(ep))
		tq_ep_hint_service(ep);
	tq_unlock(&ep->lock);
}

#endif
