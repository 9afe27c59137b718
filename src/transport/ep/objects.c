/* SPDX-License-Identifier: BSD-3-Clause */
#include "ep/objects.h"

#include <sys/eventfd.h>

void tq_ep_wake_service(struct tq_ep *ep)
{
	if (!ep->service->wakes_at)
		return;
	ep->service->wakes_at = 0;
	ep->service->sends_pause = TQ_EP_SENDS_PAUSE / 2; /* the next is TQ_EP_SENDS_PAUSE */
	eventfd_write(ep->service->wake, 1);
}

/* Returns true if the thread sleeps beyond the time at which direct messages that wait are looked
 * after. */
static bool reminds(const struct tq_ep *ep)
{
	return ep->core.reminds && ep->net.remind_timer.due < ep->service->wakes_at;
}

/* Returns true if there are requests or look-ups that have ended, and the thread is to complete
 * them. */
static bool completes(struct tq_ep *ep)
{
	return tq_ep_thread_completes(ep) &&
	       ((tq_ep_thread_awaits_end(ep) && tq_core_has_ended(&ep->core) && !ep->ended_waits) ||
		atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed));
}

void tq_ep_hint_service(struct tq_ep *ep)
{
	if ((!ep->service->sends_pause && tq_ep_awaits_sends(ep)) ||
	    (ep->service->wakes_at == UINT64_MAX && ep->net.ndatagrams) || reminds(ep) ||
	    tq_ep_service_copies(ep) || completes(ep))
		tq_ep_wake_service(ep);
}
