/* SPDX-License-Identifier: BSD-3-Clause */
#include "ep/unlock.h"

#include <sys/eventfd.h>

void tq_ep_wake_service(struct tq_ep *ep)
{
	if (!ep->service->wakes_at)
		return;
	ep->service->wakes_at = 0;
	ep->service->sends_pause = TQ_EP_SENDS_PAUSE / 2; /* the next is TQ_EP_SENDS_PAUSE */
	eventfd_write(ep->service->wake, 1);
}
