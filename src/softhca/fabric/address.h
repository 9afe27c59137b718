/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h - what a port is called and who is called so. An InfiniBand port has a LID and one GID.
 * An Ethernet port (RoCE) has no LID, but a GID for each pair of an address and a kind of packet,
 * in the order in which Linux fills its table; each path has a GRH, whose sgid_index says what
 * packets it makes.
 */
#ifndef SHCA_ADDRESS_H
#define SHCA_ADDRESS_H

#include <stdbool.h>

#include "fabric.h"

#define SHCA_GID_TBL_LEN 8 /* entries; some are empty */

static inline bool shca_is_ethernet(const struct shca_fabric_header *h)
{
	return h->config.value[SHCA_O_LINK_LAYER] == SHCA_LINK_ETHERNET;
}

/* The GID at an index of a port's table, and its type. False: the entry is empty; *gid is zero. */
bool shca_gid_at(const struct shca_fabric_header *h, const struct shca_hca *hca, unsigned index,
		 union ibv_gid *gid, enum ibv_gid_type *type);
/* The index of a GID of that type in the port's table; -1 if it isn't there. */
int shca_gid_index(const struct shca_fabric_header *h, const struct shca_hca *hca,
		   const union ibv_gid *gid, enum ibv_gid_type type);
/* IPv4 addresses as GIDs: mapped into IPv6 (RFC 4291, 2.5.5.2). Is it one, and which? */
void shca_gid_map(uint32_t ip, union ibv_gid *gid);
bool shca_gid_is_ipv4(const union ibv_gid *gid);
uint32_t shca_gid_unmap(const union ibv_gid *gid);
/* The MAC address of an Ethernet port. */
void shca_mac(const struct shca_hca *hca, uint8_t mac[6]);

/* The HCA with that LID or GID; -1 if there is none. */
int shca_address_by_lid(const struct shca_fabric_header *h, uint16_t lid);
int shca_address_by_gid(const struct shca_fabric_header *h, const union ibv_gid *gid);
/* The HCA that an address vector of this HCA's leads to; -1: nobody receives what is sent there. */
int shca_address_by_path(const struct shca_fabric_header *h, const struct shca_hca *hca,
			 const struct ibv_ah_attr *path);
/*
 * Does the device take that address vector (IBA 11.2.2.1)? 0 or a positive errno. For RoCE the
 * kernel finds the MAC address to a GID, by asking the neighbours: ETIMEDOUT if none has it. Of
 * RoCE v1's link-local GIDs the MAC address is a part, and nobody is asked.
 */
int shca_address_check(const struct shca_fabric_header *h, const struct shca_hca *hca,
		       const struct ibv_ah_attr *path);

#endif
