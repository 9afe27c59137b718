/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bind.c - ports. Each node has the ports of each port space for itself, as each host has.
 */
#include "bind.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "route.h"

/* As Linux has them: the ports that are chosen for a program (ip_local_port_range), those that need
 * a privilege, and the most requests that may wait for a program (rdma_ucm.max_backlog). */
#define FIRST_CHOICE 32768u
#define CHOICES      28232u
#define PRIVILEGED   1024u
#define MAX_BACKLOG  1024

/* Where a service ID has its port space (IBA A11). */
#define SPACE_SHIFT          16
#define SPACE_MASK           0xffffffffffff0000ULL
#define IB_SPACE(port_space) ((uint64_t)(port_space) << SPACE_SHIFT)

/* Chooses the space of an AF_IB address, whose service ID may leave open which one it is. Returns
 * 0 if there is none. */
static uint16_t ib_space(const struct shca_cm_id *id, struct shca_cm_ib_address *ib)
{
	static const uint16_t spaces[] = {RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP};
	uint64_t mask = be64toh(ib->sid_mask) & SPACE_MASK, sid = be64toh(ib->sid) & mask;

	for (unsigned i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		if (id->port_space != RDMA_PS_IB && id->port_space != spaces[i])
			continue;
		if (sid != (IB_SPACE(spaces[i]) & mask))
			continue;
		ib->sid = htobe64(IB_SPACE(spaces[i]) |
				  (be64toh(ib->sid) & be64toh(ib->sid_mask) & ~SPACE_MASK));
		ib->sid_mask |= htobe64(SPACE_MASK);
		return spaces[i];
	}
	return 0;
}

static uint16_t space(const struct shca_cm_id *id, union shca_cm_address *address)
{
	return address->family == SHCA_AF_IB ? ib_space(id, &address->ib) : id->port_space;
}

/* Returns 0 if an identifier may have its address and port beside all others. */
static int check(struct shca_fabric *fabric, const struct shca_cm_id *id, bool reuse)
{
	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		const struct shca_cm_id *other = shca_cell(fabric, SHCA_CM_ID, i);

		if (!other->used || other == id || other->port != id->port ||
		    other->port_kind != id->port_kind || other->node != id->node ||
		    (reuse && other->reuse_address))
			continue;
		if (id->own_family_only && other->own_family_only &&
		    id->source.family != other->source.family)
			continue;
		/* These two are what Linux says. */
		if (shca_route_is_any(&id->source) || shca_route_is_any(&other->source))
			return -EADDRNOTAVAIL;
		if (shca_route_same(&id->source, &other->source))
			return -EADDRINUSE;
	}
	return 0;
}

static bool is_taken(struct shca_fabric *fabric, const struct shca_cm_id *id, uint16_t port)
{
	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		const struct shca_cm_id *other = shca_cell(fabric, SHCA_CM_ID, i);

		if (other->used && other->port == port && other->port_kind == id->port_kind &&
		    other->node == id->node)
			return true;
	}
	return false;
}

/* Chooses a port that nobody of the node has. */
static int choose_port(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	for (uint32_t i = 0; i < CHOICES; i++) {
		uint16_t port = (uint16_t)(FIRST_CHOICE + fabric->hdr->cm.last_port++ % CHOICES);

		if (!is_taken(fabric, id, port)) {
			id->port = port;
			shca_route_set_port(&id->source, port);
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

static int take_port(struct shca_fabric *fabric, struct shca_cm_id *id)
{
	uint16_t port = shca_route_port(&id->source);
	int rc;

	id->port_kind = space(id, &id->source);
	if (!id->port_kind)
		return -EPROTONOSUPPORT;
	if (!port)
		return choose_port(fabric, id);
	if (port < PRIVILEGED && geteuid())
		return -EACCES;
	id->port = port;
	rc = check(fabric, id, id->reuse_address);
	if (rc)
		id->port = 0;
	return rc;
}

int shca_bind_address(struct shca_fabric *fabric, struct shca_cm_id *id,
		      const union shca_cm_address *address)
{
	int rc, hca = -1;

	if (id->state != SHCA_CM_IDLE)
		return -EINVAL;
	if (!shca_route_size(address->family))
		return -EAFNOSUPPORT;
	if (!shca_route_is_any(address)) {
		hca = shca_route_local(fabric->hdr, id->node, address);
		if (hca < 0)
			return hca;
	}
	id->source = *address;
	id->hca = (uint32_t)(hca + 1);
	rc = take_port(fabric, id);
	if (rc) {
		id->source.family = 0;
		id->hca = 0;
		return rc;
	}
	id->state = SHCA_CM_BOUND;
	return 0;
}

int shca_bind_listen(struct shca_fabric *fabric, struct shca_cm_id *id, int32_t backlog)
{
	const union shca_cm_address any = {.in.sin_family = AF_INET};
	int rc = 0;

	if (id->state == SHCA_CM_IDLE)
		rc = shca_bind_address(fabric, id, &any);
	if (rc)
		return rc;
	if (id->state != SHCA_CM_BOUND)
		return -EINVAL;
	/* One that listens shares its port with nobody. */
	if (id->reuse_address) {
		rc = check(fabric, id, false);
		if (rc)
			return rc;
		id->reuse_address = false;
	}
	id->backlog = (uint32_t)(backlog > 0 && backlog < MAX_BACKLOG ? backlog : MAX_BACKLOG);
	id->state = SHCA_CM_LISTEN;
	return 0;
}

/* Returns true if a listener is meant by the address to which a request is sent. */
static bool is_meant(const struct shca_cm_id *listener, const union shca_cm_address *to)
{
	bool any = shca_route_is_any(&listener->source);

	if (any && !listener->own_family_only)
		return true;
	return listener->source.family == to->family &&
	       (any || to->family == SHCA_AF_IB || shca_route_same(&listener->source, to));
}

struct shca_cm_id *shca_bind_listener(struct shca_fabric *fabric, const struct shca_cm_id *from)
{
	union shca_cm_address to = from->destination;
	uint16_t kind = space(from, &to), port = shca_route_port(&to);
	unsigned node = fabric->hdr->hcas[from->dest_hca - 1].node;

	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (id->used && id->state == SHCA_CM_LISTEN && id->node == node &&
		    id->port_kind == kind && id->port == port &&
		    (!id->hca || id->hca == from->dest_hca) && is_meant(id, &to))
			return id;
	}
	return NULL;
}
