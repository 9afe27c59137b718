/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resolve.c - the steps of an identifier from idle to where it may connect.
 */
#include "resolve.h"

#include <errno.h>
#include <string.h>

#include "bind.h"
#include "deadline.h"
#include "events.h"
#include "fabric/address.h"
#include "message.h"
#include "route.h"

/* Binds an identifier that the program has not bound. */
static int bind_source(struct shca_fabric *fabric, struct shca_cm_id *id,
		       const union shca_cm_address *source,
		       const union shca_cm_address *destination)
{
	union shca_cm_address any;

	if (source->family)
		return shca_bind_address(fabric, id, source);
	memset(&any, 0, sizeof(any));
	any.family = destination->family;
	return shca_bind_address(fabric, id, &any);
}

/* Chooses the interface through which the destination is reached, as the routes of a host do: an
 * address of the own node leads to itself, all others are behind the first interface. */
static void choose_source(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	const struct shca_fabric_header *hdr = fabric->hdr;
	bool own = id->dest_hca && hdr->hcas[id->dest_hca - 1].node == id->node;
	unsigned hca = own ? id->dest_hca - 1 : id->node * hdr->devices;

	if (id->hca)
		return;
	id->hca = hca + 1;
	if (shca_route_is_any(&id->destination)) {
		shca_route_set_loopback(&id->source);
		return;
	}
	shca_route_of(hdr, hca, shca_route_kind(&id->destination), &id->source);
}

static void failed(struct shca_fabric *fabric, struct shca_cm_id *id, int status)
{
	memset(&id->destination, 0, sizeof(id->destination));
	id->state = SHCA_CM_BOUND;
	id->deadline = 0;
	shca_events_add(fabric, id, SHCA_CM_ADDR_ERROR, status);
}

static void resolved(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	choose_source(fabric, id);
	id->state = SHCA_CM_RESOLVED;
	shca_events_add(fabric, id, SHCA_CM_ADDR_RESOLVED, 0);
}

static void routed(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	id->state = SHCA_CM_ROUTED;
	shca_events_add(fabric, id, SHCA_CM_ROUTE_RESOLVED, 0);
}

/* Returns when the answer to a question is there that an identifier asks the other node now; 0: at
 * once. The own node asks nobody. */
static uint64_t answered_at(const struct shca_fabric *fabric, const struct shca_cm_id *id)
{
	if (!id->dest_hca || fabric->hdr->hcas[id->dest_hca - 1].node == id->node)
		return 0;
	return shca_message_arrives(fabric, id, shca_message_arrives(fabric, id, 0));
}

static void wait_until(struct shca_fabric *fabric, struct shca_cm_id *id, enum shca_cm_state state,
		       uint64_t when)
{
	id->state = (uint8_t)state;
	id->deadline = when;
	shca_deadline_announce(fabric, id->proc, when);
}

/* Asks for the owner of the address that an identifier wants to reach. A GID needs no such
 * question. */
static void ask_address(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t timeout_ms)
{
	uint64_t when =
		shca_route_kind(&id->destination) == SHCA_ROUTE_GID ? 0 : answered_at(fabric, id);
	uint64_t gives_up = shca_deadline_now(fabric) + timeout_ms * 1000000ull;

	if (when > gives_up) {
		id->dest_hca = 0;
		when = gives_up;
	}
	if (when)
		wait_until(fabric, id, SHCA_CM_RESOLVING, when);
	else
		resolved(fabric, id);
}

int shca_resolve_address(struct shca_fabric *fabric, struct shca_cm_id *id,
			 const union shca_cm_address *source,
			 const union shca_cm_address *destination, uint32_t timeout_ms)
{
	bool group = shca_route_is_group(destination);
	int rc = 0, to = -1;

	if (!shca_route_size(destination->family))
		return -EINVAL;
	if (id->state == SHCA_CM_IDLE)
		rc = bind_source(fabric, id, source, destination);
	if (rc)
		return rc;
	if (id->state != SHCA_CM_BOUND || id->source.family != destination->family)
		return -EINVAL;
	if (!group)
		to = shca_route_remote(fabric->hdr, id->node, destination);
	if (to == -EINVAL)
		return to;
	id->destination = *destination;
	id->dest_hca = to < 0 ? 0 : (uint32_t)to + 1;
	if (!group && to == -ETIMEDOUT) {
		id->state = SHCA_CM_RESOLVING;
		shca_deadline_set(fabric, id, 0, timeout_ms);
		return 0;
	}
	if (!group && to < 0) {
		failed(fabric, id, to);
		return 0;
	}
	ask_address(fabric, id, timeout_ms);
	return 0;
}

int shca_resolve_route(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	uint64_t when;

	if (id->state != SHCA_CM_RESOLVED || !id->dest_hca)
		return -EINVAL;
	/* On Ethernet the kernel makes the path itself; on InfiniBand it asks the subnet's
	 * administration. */
	when = shca_is_ethernet(fabric->hdr) ? 0 : answered_at(fabric, id);
	if (when)
		wait_until(fabric, id, SHCA_CM_ROUTING, when);
	else
		routed(fabric, id);
	return 0;
}

int shca_resolve_take_route(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	if (id->state != SHCA_CM_RESOLVED || !id->dest_hca)
		return -EINVAL;
	routed(fabric, id);
	return 0;
}

void shca_resolve_due(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	if (id->state == SHCA_CM_ROUTING)
		routed(fabric, id);
	else if (id->dest_hca)
		resolved(fabric, id);
	else
		failed(fabric, id, -ETIMEDOUT);
}
