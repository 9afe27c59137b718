/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grh.h - the 40 bytes that receivers of datagrams get in front of the data, when the address
 * vector has a global route: a GRH (IBA 8.3); for RoCE v2 the packet's IPv6 header, or, in the last
 * 20 bytes, its IPv4 header (IBA annex A17.4.5).
 */
#ifndef SHCA_GRH_H
#define SHCA_GRH_H

#include <netinet/ip.h>

#include "hca/objects.h"
#include "hca/queues/qp.h"

/* Of a datagram of so many bytes that this HCA sends. */
void shca_grh_make(const struct shca_hca *hca, const struct shca_ud_dest *to, uint32_t length,
		   struct ibv_grh *grh);
/* What its completion says of the service level: on Ethernet, which has none, the kind of packet,
 * which UCX takes from there. */
unsigned shca_grh_sl(const struct shca_hca *hca, const struct shca_ud_dest *to);
/* The IPv4 header, if it is one. */
const struct iphdr *shca_grh_ipv4(const struct ibv_grh *grh);

#endif
