/* SPDX-License-Identifier: BSD-3-Clause */
#include "ep/look_up.h"

#include <stdlib.h>

#include "ep/unlock.h"
#include "net/connections.h"
#include "net/peers/contact.h"
#include "net/peers/link.h"
#include "net/peers/look_up.h"

int tq_locator(const struct tq_ep *ep, struct tq_locator *locator)
{
	return tq_look_up_locator(&ep->net.connections->address, locator);
}

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator)
{
	/* The address stays as it is while the peer is there. */
	return tq_look_up_locator(&peer->link->contact->address, locator);
}

void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg)
{
	tq_lock(&ep->lock);
	ep->found_arg = arg;
	ep->found = found;
	tq_look_up_enable(&ep->net);
	tq_unlock(&ep->lock);
}

int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator)
{
	int rc;

	tq_lock(&ep->lock);
	rc = tq_look_up_start(&ep->net, locator);
	tq_ep_unlock(ep);
	return rc;
}

bool tq_ep_call_found(struct tq_ep *ep)
{
	struct tq_look_up_result *result, *next;

	if (!atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed))
		return false;
	tq_lock(&ep->lock);
	result = tq_look_up_results(&ep->net);
	tq_unlock(&ep->lock);
	for (; result; result = next) {
		next = result->next;
		ep->found(ep->found_arg, &result->locator, result->error ? NULL : &result->address,
			  sizeof(result->address), result->error);
		free(result);
	}
	return true;
}
