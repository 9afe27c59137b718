/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h - the addresses of a port, and the port of an address. An InfiniBand port has a LID and
 * one GID. An Ethernet port (RoCE) has no LID, but a GID for each pair of an address and a kind of
 * packet, in the order in which Linux fills its table; each path has a GRH, whose sgid_index
 * selects the kind of packet.
 */
#ifndef SHCA_ADDRESS_H
#define SHCA_ADDRESS_H

#include <net/if.h>
#include <stdbool.h>

#include "fabric.h"

#define SHCA_GID_TBL_LEN 8 /* entries; some are empty */

/* IPv4 address of the first HCA's interface, 10.77.0.1; the next HCA has the next one. */
#define SHCA_IPV4_BASE 0x0a4d0001u
/* Global IPv6 addresses, of HCAs counted from 1: the network, fd00:10:77::/64, and its bits. */
#define SHCA_IPV6_NETWORK 0xfd00001000770000ULL
#define SHCA_IPV6_BITS    64

static inline bool shca_is_ethernet(const struct shca_fabric_header *hdr)
{
	return hdr->config.value[SHCA_O_LINK_LAYER] == SHCA_LINK_ETHERNET;
}

/* Stores the GID at an index of a port's table, and its type. Returns false, with *gid zero, if
 * the entry is empty. */
bool shca_gid_at(const struct shca_fabric_header *hdr, const struct shca_hca *hca, unsigned index,
		 union ibv_gid *gid, enum ibv_gid_type *type);
/* Returns the index of a GID of that type in the port's table, or -1. */
int shca_gid_index(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
		   const union ibv_gid *gid, enum ibv_gid_type type);
/* Index of the interface of a node's first device, as in the scope of a link-local address. */
#define SHCA_INTERFACE 7700
/* Stores the name of an HCA's interface. */
void shca_interface_name(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
			 char name[IF_NAMESIZE]);
/* Stores the global IPv6 address of an HCA's interface. */
void shca_ipv6(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
	       uint8_t address[16]);
/* Map an IPv4 address to a GID, as IPv6 maps it (RFC 4291, 2.5.5.2); recognise such a GID; and
 * return its address. */
void shca_gid_map(uint32_t ip, union ibv_gid *gid);
bool shca_gid_is_ipv4(const union ibv_gid *gid);
uint32_t shca_gid_unmap(const union ibv_gid *gid);
/* Returns true if a GID names a multicast group; RoCE v2 also has mapped IPv4 groups. */
static inline bool shca_gid_is_multicast(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff || (shca_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}
/* Stores the MAC address of an Ethernet port. */
void shca_mac(const struct shca_hca *hca, uint8_t mac[6]);

/* Return the HCA with that LID or GID, or -1. */
int shca_address_by_lid(const struct shca_fabric_header *hdr, uint16_t lid);
int shca_address_by_gid(const struct shca_fabric_header *hdr, const union ibv_gid *gid);
/* Returns the HCA that an address vector of this HCA leads to, or -1 if no port receives what is
 * sent there. */
int shca_address_by_path(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
			 const struct ibv_ah_attr *path);
/*
 * Checks that the device takes an address vector (IBA 11.2.2.1). Returns 0 or a positive errno:
 * as from the kernel, ENODATA if the source's entry of the GID table is empty. For
 * RoCE the kernel asks the neighbours for the MAC address of a GID: ETIMEDOUT if none has it. A
 * link-local GID of RoCE v1 contains its MAC address, so nobody is asked.
 */
int shca_address_check(const struct shca_fabric_header *hdr, const struct shca_hca *hca,
		       const struct ibv_ah_attr *path);

#endif
