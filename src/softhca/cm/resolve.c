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

/* Chooses the interface through which the HCA `to` (-1: a group) is reached, as the routes of a
 * host do: an address of the own node leads to itself, all others are behind the first interface.
 */
static void choose_source(struct shca_fabric *fabric, struct shca_cm_id *id, int to)
{
	const struct shca_fabric_header *hdr = fabric->hdr;
	bool own = to >= 0 && hdr->hcas[to].node == id->node;
	unsigned hca = own ? (unsigned)to : id->node * hdr->devices;

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
	if (!group && to == -ETIMEDOUT) {
		id->state = SHCA_CM_RESOLVING;
		shca_deadline_set(fabric, id, 0, timeout_ms);
		return 0;
	}
	if (!group && to < 0) {
		failed(fabric, id, to);
		return 0;
	}
	choose_source(fabric, id, to);
	id->dest_hca = (uint32_t)(to + 1);
	id->state = SHCA_CM_RESOLVED;
	shca_events_add(fabric, id, SHCA_CM_ADDR_RESOLVED, 0);
	return 0;
}

int shca_resolve_route(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	if (id->state != SHCA_CM_RESOLVED || !id->dest_hca)
		return -EINVAL;
	id->state = SHCA_CM_ROUTED;
	shca_events_add(fabric, id, SHCA_CM_ROUTE_RESOLVED, 0);
	return 0;
}

void shca_resolve_due(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	failed(fabric, id, -ETIMEDOUT);
}
