/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - the GID of a multicast address, and memberships.
 */
#include "group.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "events.h"
#include "fabric/address.h"
#include "message.h"
#include "route.h"

#define MULTICAST_QPN 0xffffffu
#define FIRST_LID     0xc000u /* multicast LIDs: 0xc000 to 0xfffe */
#define LIDS          0x3fffu
#define HOP_LIMIT     64

/* Signatures in a GID of a group: of IPv4 and IPv6 over InfiniBand (RFC 4391, 4), and the one that
 * librdmacm's datagrams have in their place. */
#define IPV4_SIGNATURE 0x401b
#define IPV6_SIGNATURE 0x601b
#define CM_SIGNATURE   0x0001

/* Stores a GID with that signature and the P_Key of the port. */
static void begin_gid(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		      unsigned signature, uint8_t gid[16])
{
	uint16_t pkey = htobe16(fabric->hdr->hcas[id->hca - 1].pkeys[0] | 0x8000);

	memset(gid, 0, 16);
	gid[0] = 0xff;
	gid[1] = 0x12; /* transient, link-local */
	gid[2] = (uint8_t)(signature >> 8);
	gid[3] = (uint8_t)(id->port_space == RDMA_PS_UDP ? CM_SIGNATURE : signature);
	memcpy(gid + 4, &pkey, 2);
}

static void ib_gid(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		   const union shca_cm_address *address, uint8_t gid[16])
{
	uint32_t ip;

	if (address->family == SHCA_AF_IB) {
		memcpy(gid, address->ib.gid, 16);
	} else if (address->family == AF_INET6) {
		const uint8_t *ipv6 = address->in6.sin6_addr.s6_addr;

		begin_gid(fabric, id, IPV6_SIGNATURE, gid);
		memcpy(gid + 6, ipv6 + 6, 10);
	} else {
		begin_gid(fabric, id, IPV4_SIGNATURE, gid);
		ip = htonl(ntohl(address->in.sin_addr.s_addr) & 0x0fffffff);
		memcpy(gid + 12, &ip, sizeof(ip));
	}
}

static void ethernet_gid(const union shca_cm_address *address, uint8_t gid[16])
{
	union ibv_gid mapped;

	if (address->family == AF_INET) {
		shca_gid_map(ntohl(address->in.sin_addr.s_addr), &mapped);
		memcpy(gid, mapped.raw, 16);
	} else if (address->family == AF_INET6) {
		memcpy(gid, address->in6.sin6_addr.s6_addr, 16);
	} else {
		memcpy(gid, address->ib.gid, 16);
	}
}

/* Returns the LID that a subnet manager gives to a group. */
static uint16_t lid(const uint8_t gid[16])
{
	uint32_t hash = 0;

	for (unsigned i = 0; i < 16; i++)
		hash = hash * 31 + gid[i];
	return (uint16_t)(FIRST_LID + hash % LIDS);
}

static void fill(struct shca_fabric *fabric, const struct shca_cm_id *id,
		 const struct shca_cm_group *group, struct rdma_ucm_ud_param *ud)
{
	enum shca_route_kind kind = shca_route_kind(&id->source);

	ud->qp_num = MULTICAST_QPN;
	ud->qkey = id->qkey;
	shca_route_vector(fabric->hdr, id->hca - 1, id->hca - 1, kind, &ud->ah_attr);
	ud->ah_attr.is_global = 1;
	ud->ah_attr.dlid = shca_is_ethernet(fabric->hdr) ? 0 : lid(group->gid);
	memcpy(ud->ah_attr.grh.dgid, group->gid, 16);
	ud->ah_attr.grh.hop_limit = shca_is_ethernet(fabric->hdr) ? HOP_LIMIT : 0;
}

int64_t shca_group_join(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t uid,
			const union shca_cm_address *address)
{
	struct shca_cm_group *group;
	struct shca_cm_event *event;
	uint32_t idx;

	if (!id->hca || (id->state != SHCA_CM_BOUND && id->state != SHCA_CM_RESOLVED) ||
	    !shca_message_is_datagram(id) || !shca_route_size(address->family) ||
	    !shca_route_is_group(address))
		return -EINVAL;
	group = shca_cells_take(fabric, SHCA_CM_GROUP, &idx);
	if (!group)
		return -ENOMEM;
	group->id = shca_cm_id_index(fabric, id);
	group->uid = uid;
	if (shca_is_ethernet(fabric->hdr))
		ethernet_gid(address, group->gid);
	else
		ib_gid(fabric, id, address, group->gid);
	shca_message_set_qkey(id, 0);
	group->used = 1;
	event = shca_events_add(fabric, id, SHCA_CM_MULTICAST_JOIN, 0);
	if (!event) {
		group->used = 0;
		return -ENOMEM;
	}
	event->group = idx + 1;
	event->resp.uid = uid;
	event->resp.id = idx;
	fill(fabric, id, group, &event->resp.param.ud);
	return idx;
}
