/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.h - the addresses by which programs name ports, and the way from one port to another. Each
 * HCA has an interface, with an IPv4 address of 10.77.0.0/16, a global IPv6 address of
 * fd00:10:77::/64 and a link-local one, on both link layers. No function here needs the lock.
 */
#ifndef SHCA_CM_ROUTE_H
#define SHCA_CM_ROUTE_H

#include "fabric/fabric.h"

/* Addresses of an interface, in the order in which programs find them, and its GID as an address of
 * family AF_IB. */
enum shca_route_kind {
	SHCA_ROUTE_IPV4,
	SHCA_ROUTE_IPV6,
	SHCA_ROUTE_LINK_LOCAL,
	SHCA_ROUTE_GID,
	SHCA_ROUTE_IP_KINDS = SHCA_ROUTE_GID,
};

/* Returns the kind of address by which an interface reaches, or is reached by, an address. */
enum shca_route_kind shca_route_kind(const union shca_cm_address *address);
/* Returns the bytes of an address of that family, or 0 if there is no such family. */
size_t shca_route_size(uint16_t family);
/* Returns true if the address names no port: it is zero, or the loopback address, which Linux takes
 * for the same. As a destination both mean the own node. */
bool shca_route_is_any(const union shca_cm_address *address);
/* Returns true if the address names a multicast group. */
bool shca_route_is_group(const union shca_cm_address *address);
/* Returns true if both are one address; ports don't count. */
bool shca_route_same(const union shca_cm_address *a, const union shca_cm_address *b);
/* Return and set the port number in an address; of an AF_IB address it is the end of its service
 * ID. */
uint16_t shca_route_port(const union shca_cm_address *address);
void shca_route_set_port(union shca_cm_address *address, uint16_t port);

/* Makes an address the loopback one of its family; the port stays. */
void shca_route_set_loopback(union shca_cm_address *address);
/* Stores the address of that kind of an HCA's interface, and keeps the port. */
void shca_route_of(const struct shca_fabric_header *hdr, unsigned hca, enum shca_route_kind kind,
		   union shca_cm_address *address);
/* Returns the HCA of a node that has the address, or -EADDRNOTAVAIL; -EINVAL: a link-local address
 * without a scope. */
int shca_route_local(const struct shca_fabric_header *hdr, unsigned node,
		     const union shca_cm_address *address);
/* Returns the HCA that a node reaches by that address, -ETIMEDOUT if none in the subnet has it, or
 * -ENODEV if no interface of an HCA leads there. */
int shca_route_remote(const struct shca_fabric_header *hdr, unsigned node,
		      const union shca_cm_address *address);

/* Stores the GID by which connections between addresses of that kind name an HCA, and returns its
 * index in the port's table. */
unsigned shca_route_gid(const struct shca_fabric_header *hdr, unsigned hca,
			enum shca_route_kind kind, uint8_t gid[16]);
/* Fills in the address vector from one HCA to another. */
void shca_route_vector(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		       enum shca_route_kind kind, struct ib_uverbs_ah_attr *vector);
/* Fill in the path from one HCA to another, in the two forms in which programs get it. */
void shca_route_path(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		     enum shca_route_kind kind, struct ib_user_path_rec *path);
void shca_route_record(const struct shca_fabric_header *hdr, unsigned from, unsigned to,
		       enum shca_route_kind kind, struct ib_path_rec_data *data);
/* Exponent of the packet lifetime of all paths (4.096 us * 2^n): what OpenSM says. */
#define SHCA_ROUTE_LIFETIME 18

#endif
