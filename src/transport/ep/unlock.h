/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a turn with the endpoint's lock: what is left to do is the service thread's, if there
 * is one. */
#ifndef TQ_EP_UNLOCK_H
#define TQ_EP_UNLOCK_H

#include "ep/objects.h"

/* Wakes the thread, which exists, so that it looks at once for what is to be done. Called with the
 * lock. */
void tq_ep_wake_service(struct tq_ep *ep);

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

/* Returns true if the service thread sleeps beyond the time at which direct messages that wait are
 * looked after. */
static inline bool tq_ep_service_reminds(const struct tq_ep *ep)
{
	return ep->core.reminds && ep->net.remind_timer.due < ep->service->wakes_at;
}

/* Returns true if there are requests or look-ups that have ended, and the service thread is to
 * complete them. */
static inline bool tq_ep_service_completes(struct tq_ep *ep)
{
	return ep->service->completes &&
	       ((tq_core_has_ended(&ep->core) && !ep->ended_waits) ||
		atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed));
}

/* Wakes the service thread, before the lock is released, if there is work that the application
 * may not come back for soon. */
static inline void tq_ep_hint_service(struct tq_ep *ep)
{
	if (!ep->service)
		return;
	if ((!ep->service->sends_pause && tq_ep_awaits_sends(ep)) ||
	    (ep->service->wakes_at == UINT64_MAX && ep->net.ndatagrams) ||
	    tq_ep_service_reminds(ep) || tq_ep_service_copies(ep) || tq_ep_service_completes(ep))
		tq_ep_wake_service(ep);
}

static inline void tq_ep_unlock(struct tq_ep *ep)
{
	tq_ep_hint_service(ep);
	tq_unlock(&ep->lock);
}

#endif
