/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.c - GIDs, LIDs, MAC addresses, and the HCA that an address leads to.
 */
#include "address.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PORT 1

#define IPV4_PREFIX 0x0000ffffu /* in front of a mapped IPv4 address */

/* Entries of a GID table: one of an InfiniBand port; those of a RoCE port, two for each address. */
#define IB_GIDS  1
#define ETH_GIDS 6

/* ---- GIDs ---- */

static void link_local(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
		       union ibv_gid *gid)
{
	uint8_t mac[6];

	gid->global.subnet_prefix = htobe64(SHCA_GID_PREFIX);
	gid->global.interface_id = htobe64(hca->guid);
	if (!shca_is_ethernet(hdr))
		return;
	/* The interface identifier of a MAC address (RFC 4291, appendix A). */
	shca_mac(hca, mac);
	memcpy(gid->raw + 8, mac, 3);
	gid->raw[8] ^= 2;
	gid->raw[11] = 0xff;
	gid->raw[12] = 0xfe;
	memcpy(gid->raw + 13, mac + 3, 3);
}

void shca_mac(const struct shca_hca *hca, uint8_t mac[6])
{
	uint64_t id = htobe64(hca->guid);

	/* The manufacturer's part of the GUID and its last three bytes; locally administered. */
	memcpy(mac, &id, 3);
	memcpy(mac + 3, (uint8_t *)&id + 5, 3);
	mac[0] |= 2;
}

void shca_gid_map(uint32_t ip, union ibv_gid *gid)
{
	gid->global.subnet_prefix = 0;
	gid->global.interface_id = htobe64((uint64_t)IPV4_PREFIX << 32 | ip);
}

bool shca_gid_is_ipv4(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && be64toh(gid->global.interface_id) >> 32 == IPV4_PREFIX;
}

uint32_t shca_gid_unmap(const union ibv_gid *gid)
{
	return (uint32_t)be64toh(gid->global.interface_id);
}

void shca_interface_name(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
			 char name[IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, shca_is_ethernet(hdr) ? "roce%u" : "ib%u", hca->device);
}

void shca_ipv6(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
	       uint8_t address[16])
{
	const uint64_t halves[2] = {htobe64(SHCA_IPV6_NETWORK),
				    htobe64((uint64_t)(hca - hdr->hcas) + 1)};

	memcpy(address, halves, sizeof(halves));
}

bool shca_gid_at(const struct shca_fabric_header *hdr, const struct shca_hca *hca, unsigned index,
		 union ibv_gid *gid, enum ibv_gid_type *type)
{
	bool ethernet = shca_is_ethernet(hdr);

	memset(gid, 0, sizeof(*gid));
	*type = IBV_GID_TYPE_IB;
	if (index >= (ethernet ? ETH_GIDS : IB_GIDS))
		return false;
	if (index < 2)
		link_local(hdr, hca, gid);
	else if (index < 4)
		shca_gid_map(SHCA_IPV4_BASE + (uint32_t)(hca - hdr->hcas), gid);
	else
		shca_ipv6(hdr, hca, gid->raw);
	if (ethernet)
		*type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return true;
}

int shca_gid_index(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
		   const union ibv_gid *gid, enum ibv_gid_type type)
{
	enum ibv_gid_type t;
	union ibv_gid own;

	for (unsigned i = 0; i < SHCA_GID_TBL_LEN; i++) {
		if (shca_gid_at(hdr, hca, i, &own, &t) && t == type &&
		    !memcmp(&own, gid, sizeof(own)))
			return (int)i;
	}
	return -1;
}

/* ---- from an address to its HCA ---- */

int shca_address_by_lid(const struct shca_fabric_header *hdr, uint16_t lid)
{
	return !shca_is_ethernet(hdr) && lid >= 1 && lid <= hdr->nhcas ? lid - 1 : -1;
}

/* Returns the number of the HCA that may have the GID. IP addresses count HCAs, as does the last
 * byte of a GUID or MAC address. */
static unsigned number_in(const union ibv_gid *gid)
{
	if (shca_gid_is_ipv4(gid))
		return shca_gid_unmap(gid) - SHCA_IPV4_BASE;
	if (be64toh(gid->global.subnet_prefix) == SHCA_IPV6_NETWORK)
		return gid->raw[15] - 1u;
	return gid->raw[15];
}

int shca_address_by_gid(const struct shca_fabric_header *hdr, const union ibv_gid *gid)
{
	unsigned i = number_in(gid);
	enum ibv_gid_type type;
	union ibv_gid own;

	if (i >= hdr->nhcas)
		return -1;
	for (unsigned k = 0; shca_gid_at(hdr, &hdr->hcas[i], k, &own, &type); k++) {
		if (!memcmp(&own, gid, sizeof(own)))
			return (int)i;
	}
	return -1;
}

/* Returns the HCA that an Ethernet path leads to, or -1. Both ends must have addresses of one
 * family. */
static int by_ethernet_path(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
			    const struct ibv_ah_attr *path)
{
	enum ibv_gid_type type;
	union ibv_gid own;

	if (!path->is_global || !shca_gid_at(hdr, hca, path->grh.sgid_index, &own, &type) ||
	    shca_gid_is_ipv4(&own) != shca_gid_is_ipv4(&path->grh.dgid))
		return -1;
	return shca_address_by_gid(hdr, &path->grh.dgid);
}

/*
 * The LID routes within the subnet; a port takes a packet with a GRH only if the GRH names that
 * port (IBA 9.6.1.2). Both must lead to the same HCA.
 */
int shca_address_by_path(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
			 const struct ibv_ah_attr *path)
{
	int by_lid;

	if (shca_is_ethernet(hdr))
		return by_ethernet_path(hdr, hca, path);
	by_lid = shca_address_by_lid(hdr, path->dlid);
	if (path->is_global && by_lid != shca_address_by_gid(hdr, &path->grh.dgid))
		return -1;
	return by_lid;
}

int shca_address_check(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
		       const struct ibv_ah_attr *path)
{
	const union ibv_gid *dgid = &path->grh.dgid;
	enum ibv_gid_type type;
	union ibv_gid own;

	if (path->port_num != PORT)
		return EINVAL;
	if (!path->is_global)
		return shca_is_ethernet(hdr) || hdr->config.value[SHCA_O_GRH_REQUIRED] ? EINVAL : 0;
	if (!shca_gid_at(hdr, hca, path->grh.sgid_index, &own, &type))
		return path->grh.sgid_index < SHCA_GID_TBL_LEN ? ENODATA : EINVAL;
	if (!shca_is_ethernet(hdr) || shca_gid_is_multicast(dgid))
		return 0;
	if (type == IBV_GID_TYPE_ROCE_V1 && be64toh(dgid->global.subnet_prefix) == SHCA_GID_PREFIX)
		return 0;
	return by_ethernet_path(hdr, hca, path) < 0 ? ETIMEDOUT : 0;
}
