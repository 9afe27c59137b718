/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - from addresses to HCAs, and the paths between HCAs.
 */
#include "route.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "fabric/address.h"

#define PORT      1
#define HOP_LIMIT 64          /* of packets through routers, as Linux has it */
#define SUBNET    0xffff0000u /* of the IPv4 addresses */

/* ---- addresses ---- */

size_t shca_route_size(uint16_t family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case SHCA_AF_IB:
		return sizeof(struct shca_cm_ib_address);
	default:
		return 0;
	}
}

enum shca_route_kind shca_route_kind(const union shca_cm_address *address)
{
	const struct in6_addr *ipv6 = &address->in6.sin6_addr;

	switch (address->family) {
	case AF_INET:
		return SHCA_ROUTE_IPV4;
	case AF_INET6:
		/* The own node's ports answer for the loopback address by their first GIDs. */
		return IN6_IS_ADDR_LINKLOCAL(ipv6) || IN6_IS_ADDR_MC_LINKLOCAL(ipv6) ||
				       shca_route_is_any(address)
			       ? SHCA_ROUTE_LINK_LOCAL
			       : SHCA_ROUTE_IPV6;
	default:
		return SHCA_ROUTE_GID;
	}
}

bool shca_route_is_any(const union shca_cm_address *address)
{
	struct in6_addr gid;

	switch (address->family) {
	case AF_INET:
		return address->in.sin_addr.s_addr == INADDR_ANY ||
		       ntohl(address->in.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr) ||
		       IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
	default:
		memcpy(&gid, address->ib.gid, sizeof(gid));
		return IN6_IS_ADDR_UNSPECIFIED(&gid) || IN6_IS_ADDR_LOOPBACK(&gid);
	}
}

void shca_route_set_loopback(union shca_cm_address *address)
{
	switch (address->family) {
	case AF_INET:
		address->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		break;
	case AF_INET6:
		address->in6.sin6_addr = in6addr_loopback;
		break;
	default:
		memcpy(address->ib.gid, &in6addr_loopback, sizeof(address->ib.gid));
	}
}

bool shca_route_is_group(const union shca_cm_address *address)
{
	if (address->family == AF_INET)
		return IN_MULTICAST(ntohl(address->in.sin_addr.s_addr));
	if (address->family == AF_INET6)
		return IN6_IS_ADDR_MULTICAST(&address->in6.sin6_addr);
	return address->ib.gid[0] == 0xff;
}

bool shca_route_same(const union shca_cm_address *a, const union shca_cm_address *b)
{
	if (a->family != b->family)
		return false;
	switch (a->family) {
	case AF_INET:
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	case AF_INET6:
		return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
	default:
		return !memcmp(a->ib.gid, b->ib.gid, sizeof(a->ib.gid));
	}
}

uint16_t shca_route_port(const union shca_cm_address *address)
{
	switch (address->family) {
	case AF_INET:
		return ntohs(address->in.sin_port);
	case AF_INET6:
		return ntohs(address->in6.sin6_port);
	default:
		return (uint16_t)(be64toh(address->ib.sid) & be64toh(address->ib.sid_mask));
	}
}

void shca_route_set_port(union shca_cm_address *address, uint16_t port)
{
	switch (address->family) {
	case AF_INET:
		address->in.sin_port = htons(port);
		break;
	case AF_INET6:
		address->in6.sin6_port = htons(port);
		break;
	default:
		address->ib.sid = htobe64((be64toh(address->ib.sid) & ~0xffffULL) | port);
		address->ib.sid_mask |= htobe64(0xffff);
	}
}

/* ---- interfaces ---- */

/* Stores the link-local address of an interface: that of IPoIB has the universal bit set (RFC 4391,
 * 8). */
static void link_local(const struct shca_fabric_header *hdr, unsigned hca, uint8_t address[16])
{
	enum ibv_gid_type type;
	union ibv_gid gid;

	shca_gid_at(hdr, &hdr->hcas[hca], 0, &gid, &type);
	memcpy(address, gid.raw, 16);
	if (!shca_is_ethernet(hdr))
		address[8] |= 2;
}

void shca_route_of(const struct shca_fabric_header *hdr, unsigned hca, enum shca_route_kind kind,
		   union shca_cm_address *address)
{
	static const uint16_t families[] = {AF_INET, AF_INET6, AF_INET6, SHCA_AF_IB};
	uint16_t port = address->family == families[kind] ? shca_route_port(address) : 0;
	uint64_t sid = address->ib.sid, mask = address->ib.sid_mask;

	memset(address, 0, sizeof(*address));
	address->family = families[kind];
	switch (kind) {
	case SHCA_ROUTE_IPV4:
		address->in.sin_addr.s_addr = htonl(SHCA_IPV4_BASE + hca);
		break;
	case SHCA_ROUTE_IPV6:
		shca_ipv6(hdr, &hdr->hcas[hca], address->in6.sin6_addr.s6_addr);
		break;
	case SHCA_ROUTE_LINK_LOCAL:
		link_local(hdr, hca, address->in6.sin6_addr.s6_addr);
		address->in6.sin6_scope_id = SHCA_INTERFACE + hdr->hcas[hca].device;
		break;
	case SHCA_ROUTE_GID:
		shca_route_gid(hdr, hca, kind, address->ib.gid);
		address->ib.pkey = htobe16(hdr->hcas[hca].pkeys[0]);
		address->ib.sid = sid;
		address->ib.sid_mask = mask;
		return;
	}
	shca_route_set_port(address, port);
}

/* Returns the first HCA of a node. */
static unsigned first_of(const struct shca_fabric_header *hdr, unsigned node)
{
	return node * hdr->devices;
}

static bool needs_scope(const union shca_cm_address *address)
{
	return address->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address->in6.sin6_addr) &&
	       !address->in6.sin6_scope_id;
}

/* Returns the HCA of the fabric whose interface has the address, or -1. */
static int find(const struct shca_fabric_header *hdr, const union shca_cm_address *address)
{
	enum shca_route_kind kind = shca_route_kind(address);
	union shca_cm_address own;

	for (unsigned i = 0; i < hdr->nhcas; i++) {
		memset(&own, 0, sizeof(own));
		shca_route_of(hdr, i, kind, &own);
		if (shca_route_same(&own, address))
			return (int)i;
	}
	return -1;
}

int shca_route_local(const struct shca_fabric_header *hdr, unsigned node,
		     const union shca_cm_address *address)
{
	int hca;

	if (needs_scope(address))
		return -EINVAL;
	hca = find(hdr, address);
	return hca >= 0 && hdr->hcas[hca].node == node ? hca : -EADDRNOTAVAIL;
}

/* Returns true if an interface leads to the address, whoever has it. */
static bool is_near(const union shca_cm_address *address)
{
	uint64_t network;

	switch (shca_route_kind(address)) {
	case SHCA_ROUTE_IPV4:
		return (ntohl(address->in.sin_addr.s_addr) & SUBNET) == (SHCA_IPV4_BASE & SUBNET);
	case SHCA_ROUTE_IPV6:
		memcpy(&network, address->in6.sin6_addr.s6_addr, sizeof(network));
		return be64toh(network) == SHCA_IPV6_NETWORK;
	default:
		return true;
	}
}

int shca_route_remote(const struct shca_fabric_header *hdr, unsigned node,
		      const union shca_cm_address *address)
{
	int hca;

	if (needs_scope(address))
		return -EINVAL;
	if (shca_route_is_any(address))
		return (int)first_of(hdr, node);
	hca = find(hdr, address);
	if (hca >= 0)
		return hca;
	return is_near(address) ? -ETIMEDOUT : -ENODEV;
}

/* ---- paths ---- */

unsigned shca_route_gid(const struct shca_fabric_header *hdr, unsigned hca,
			enum shca_route_kind kind, uint8_t gid[16])
{
	/* On Ethernet RoCE v2 is what the kernel prefers. */
	static const unsigned roce_v2[] = {[SHCA_ROUTE_IPV4] = 3,
					   [SHCA_ROUTE_IPV6] = 5,
					   [SHCA_ROUTE_LINK_LOCAL] = 1,
					   [SHCA_ROUTE_GID] = 1};
	unsigned index = shca_is_ethernet(hdr) ? roce_v2[kind] : 0;
	enum ibv_gid_type type;
	union ibv_gid own;

	shca_gid_at(hdr, &hdr->hcas[hca], index, &own, &type);
	memcpy(gid, own.raw, 16);
	return index;
}

static bool is_global(const struct shca_fabric_header *hdr)
{
	return shca_is_ethernet(hdr) || hdr->config.value[SHCA_O_GRH_REQUIRED];
}

void shca_route_vector(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		       enum shca_route_kind kind, struct ib_uverbs_ah_attr *vector)
{
	uint8_t own[16];

	memset(vector, 0, sizeof(*vector));
	vector->port_num = PORT;
	vector->dlid = hdr->hcas[to].lid;
	if (!is_global(hdr))
		return;
	vector->is_global = 1;
	vector->grh.sgid_index = (uint8_t)shca_route_gid(hdr, from, kind, own);
	vector->grh.hop_limit = HOP_LIMIT;
	shca_route_gid(hdr, to, kind, vector->grh.dgid);
}

/* Returns the code of the ports' rate (enum ibv_rate). */
static uint8_t rate(const struct shca_fabric_header *hdr)
{
	switch (shca_config_port_speed(&hdr->config)->code) {
	case 1:
		return IBV_RATE_10_GBPS;
	case 2:
		return IBV_RATE_20_GBPS;
	case 4:
		return IBV_RATE_40_GBPS;
	case 16:
		return IBV_RATE_56_GBPS;
	case 64:
		return IBV_RATE_200_GBPS;
	case 128:
		return IBV_RATE_400_GBPS;
	default:
		return IBV_RATE_100_GBPS;
	}
}

void shca_route_path(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		     enum shca_route_kind kind, struct ib_user_path_rec *path)
{
	memset(path, 0, sizeof(*path));
	shca_route_gid(hdr, to, kind, path->dgid);
	shca_route_gid(hdr, from, kind, path->sgid);
	path->dlid = htobe16(hdr->hcas[to].lid);
	path->slid = htobe16(hdr->hcas[from].lid);
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = htobe16(hdr->hcas[from].pkeys[0]);
	path->hop_limit = is_global(hdr) ? HOP_LIMIT : 0;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2;
	path->mtu = IBV_MTU_256 + (uint32_t)hdr->config.value[SHCA_O_MTU];
	path->rate = rate(hdr);
	path->packet_life_time = SHCA_ROUTE_LIFETIME;
}

void shca_route_record(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		       enum shca_route_kind kind, struct ib_path_rec_data *data)
{
	/* A PathRecord as on the wire (IBA 15.2.5.16), and the selector "exactly". */
	enum { DGID = 8, SGID = 24, DLID = 40, SLID = 42, HOPS = 47, NUMB = 49, PKEY = 50 };
	enum { MTU = 54, RATE = 55, LIFETIME = 56, EXACTLY = 2 << 6 };
	uint8_t *record = (uint8_t *)data->path_rec;
	struct ib_user_path_rec path;

	shca_route_path(hdr, from, to, kind, &path);
	memset(data, 0, sizeof(*data));
	data->flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(record + DGID, path.dgid, 16);
	memcpy(record + SGID, path.sgid, 16);
	memcpy(record + DLID, &path.dlid, 2);
	memcpy(record + SLID, &path.slid, 2);
	record[HOPS] = path.hop_limit;
	record[NUMB] = 1 << 7 | 1;
	memcpy(record + PKEY, &path.pkey, 2);
	record[MTU] = (uint8_t)(EXACTLY | path.mtu);
	record[RATE] = EXACTLY | path.rate;
	record[LIFETIME] = EXACTLY | path.packet_life_time;
}
