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

#define NS_PER_MS 1000000u
#define NEVER     UINT64_MAX

/* Tries of Linux to ask the subnet's administration after the first one. */
#define SA_RETRIES 10u

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
	id->dest_hca = 0;
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

static void not_routed(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	id->state = SHCA_CM_RESOLVED;
	shca_events_add(fabric, id, SHCA_CM_ROUTE_ERROR, -ETIMEDOUT);
}

/* Returns when the answer to a question is there that an identifier asks the other node now; 0: at
 * once. The own node asks nobody. */
static uint64_t answered_at(const struct shca_fabric *fabric, const struct shca_cm_id *id)
{
	if (!id->dest_hca || fabric->hdr->hcas[id->dest_hca - 1].node == id->node)
		return 0;
	return shca_message_arrives(fabric, id, shca_message_arrives(fabric, id, 0));
}

/* Waits in a state for the answer to a question, or until the timeout. */
static void wait_for_answer(struct shca_fabric *fabric, struct shca_cm_id *id,
			    enum shca_cm_state state, uint64_t answered, uint64_t timeout_ms)
{
	uint64_t gives_up = shca_deadline_now(fabric) + timeout_ms * NS_PER_MS;

	id->state = (uint8_t)state;
	id->unanswered = answered > gives_up;
	id->deadline = id->unanswered ? gives_up : answered;
	shca_deadline_announce(fabric, id->proc, id->deadline);
}

/* Asks for the owner of the address that an identifier wants to reach. A GID needs no such
 * question. */
static void ask_address(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t timeout_ms)
{
	uint64_t when =
		shca_route_kind(&id->destination) == SHCA_ROUTE_GID ? 0 : answered_at(fabric, id);

	if (when)
		wait_for_answer(fabric, id, SHCA_CM_RESOLVING, when, timeout_ms);
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
		wait_for_answer(fabric, id, SHCA_CM_RESOLVING, NEVER, timeout_ms);
		return 0;
	}
	if (!group && to < 0) {
		failed(fabric, id, to);
		return 0;
	}
	ask_address(fabric, id, timeout_ms);
	return 0;
}

/* Returns after how many ms Linux has no answer of the subnet's administration: it divides the
 * timeout among the tries, each of which takes 1 ms at least. */
static uint64_t route_timeout(uint32_t timeout_ms)
{
	if (timeout_ms < SA_RETRIES)
		return timeout_ms + 1;
	return (uint64_t)(timeout_ms / SA_RETRIES) * (SA_RETRIES + 1);
}

int shca_resolve_route(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t timeout_ms)
{
	uint64_t when;

	if (id->state != SHCA_CM_RESOLVED || !id->dest_hca)
		return -EINVAL;
	/* On Ethernet the kernel makes the path itself; on InfiniBand it asks the subnet's
	 * administration. */
	when = shca_is_ethernet(fabric->hdr) ? 0 : answered_at(fabric, id);
	if (when)
		wait_for_answer(fabric, id, SHCA_CM_ROUTING, when, route_timeout(timeout_ms));
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
	bool routing = id->state == SHCA_CM_ROUTING;

	if (id->unanswered && routing)
		not_routed(fabric, id);
	else if (id->unanswered)
		failed(fabric, id, -ETIMEDOUT);
	else if (routing)
		routed(fabric, id);
	else
		resolved(fabric, id);
}
