/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot_connections.c - the identifiers of librdmacm's programs as JSON.
 */
#include <arpa/inet.h>
#include <string.h>

#include "cm/cells.h"
#include "cm/route.h"
#include "render.h"
#include "snapshot.h"

static const char *space_name(uint16_t port_space)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IPOIB:
		return "IPOIB";
	default:
		return "IB";
	}
}

static const char *state_name(const struct shca_cm_id *id)
{
	static const char *const states[] = {
		[SHCA_CM_IDLE] = "idle",           [SHCA_CM_BOUND] = "bound",
		[SHCA_CM_RESOLVING] = "resolving", [SHCA_CM_RESOLVED] = "resolved",
		[SHCA_CM_ROUTING] = "routing",     [SHCA_CM_ROUTED] = "routed",
		[SHCA_CM_LISTEN] = "listening",
	};
	static const char *const links[] = {
		[SHCA_CM_LINK_NONE] = "none",
		[SHCA_CM_LINK_IDLE] = "ended",
		[SHCA_CM_LINK_REQ_SENT] = "request sent",
		[SHCA_CM_LINK_REQ_RCVD] = "request received",
		[SHCA_CM_LINK_REP_SENT] = "answer sent",
		[SHCA_CM_LINK_REP_RCVD] = "answer received",
		[SHCA_CM_LINK_ESTABLISHED] = "established",
		[SHCA_CM_LINK_DREQ_SENT] = "disconnecting",
		[SHCA_CM_LINK_DREQ_RCVD] = "disconnected",
		[SHCA_CM_LINK_TIMEWAIT] = "timewait",
		[SHCA_CM_LINK_SIDR_SENT] = "request sent",
		[SHCA_CM_LINK_SIDR_RCVD] = "request received",
	};

	if (id->state < sizeof(states) / sizeof(*states) && states[id->state])
		return states[id->state];
	return id->link < sizeof(links) / sizeof(*links) ? links[id->link] : "?";
}

/* Returns an address with its port, or null. */
static json_t *address_text(const union shca_cm_address *address)
{
	char text[INET6_ADDRSTRLEN], both[INET6_ADDRSTRLEN + 16];
	const void *bytes = address->ib.gid;

	if (!shca_route_size(address->family))
		return json_null();
	if (address->family == AF_INET)
		bytes = &address->in.sin_addr;
	else if (address->family == AF_INET6)
		bytes = &address->in6.sin6_addr;
	inet_ntop(address->family == AF_INET ? AF_INET : AF_INET6, bytes, text, sizeof(text));
	snprintf(both, sizeof(both), address->family == AF_INET ? "%s:%u" : "[%s]:%u", text,
		 shca_route_port(address));
	return json_string(both);
}

json_t *shca_snapshot_connections(const struct shca_fabric *fabric)
{
	uint32_t high = shca_cells_high(fabric, SHCA_CM_ID);
	json_t *list = json_array();

	for (uint32_t i = 0; i < high && i < SHCA_CM_IDS; i++) {
		struct shca_cm_id id;
		unsigned proc;

		/* A copy, because processes change it meanwhile. */
		memcpy(&id, shca_cell(fabric, SHCA_CM_ID, i), sizeof(id));
		proc = id.proc;
		if (!id.used || proc >= SHCA_MAX_PROCS)
			continue;
		json_array_append_new(
			list,
			json_pack("{s:i, s:o, s:i, s:i, s:s, s:s, s:o, s:o}", "pid",
				  (int)atomic_load(&fabric->hdr->procs[proc].pid), "comm",
				  shca_json_text(fabric->hdr->procs[proc].comm), "node",
				  (int)id.node, "id", (int)i, "space", space_name(id.port_space),
				  "state", state_name(&id), "source", address_text(&id.source),
				  "destination", address_text(&id.destination)));
	}
	return list;
}

json_t *shca_snapshot_cells(const struct shca_fabric *fabric)
{
	static const char *const names[SHCA_CM_KINDS] = {
		[SHCA_CM_CHANNEL] = "channels",
		[SHCA_CM_ID] = "identifiers",
		[SHCA_CM_GROUP] = "memberships",
		[SHCA_CM_EVENT] = "events",
	};
	json_t *cells = json_object();

	for (unsigned kind = 0; kind < SHCA_CM_KINDS; kind++) {
		uint32_t high = shca_cells_high(fabric, kind);
		json_int_t used = 0;

		for (uint32_t i = 0; i < high && i < shca_cm_cell_count(kind); i++)
			used += shca_cells_find(fabric, kind, i) != NULL;
		json_object_set_new(cells, names[kind], json_integer(used));
	}
	return cells;
}
