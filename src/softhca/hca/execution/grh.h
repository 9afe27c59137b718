/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grh.h - the 40 bytes in front of a packet's BTH, and of a datagram's data in the receive buffer,
 * when the address vector has a global route: a GRH (IBA 8.3). For RoCE v2 these are the packet's
 * IPv6 header or, in the last 20 bytes, its IPv4 header (IBA annex A17.4.5).
 */
#ifndef SHCA_GRH_H
#define SHCA_GRH_H

#include <netinet/ip.h>

#include "hca/queues/queue_pair.h"

/* Writes the header of a packet that this HCA sends, with `behind` bytes from the BTH to the ICRC.
 */
void shca_grh_make(const struct shca_hca *hca, const struct shca_ud_dest *to, uint32_t behind,
		   struct ibv_grh *grh);
/* Returns the number of bytes from the BTH to the ICRC of a datagram with `length` bytes of data,
 * and with immediate data if `imm`.
 */
uint32_t shca_grh_behind(uint32_t length, bool imm);
/* Returns the service level that the completion reports. On Ethernet, which has none, that field
 * holds the kind of packet; UCX reads it. */
unsigned shca_grh_sl(const struct shca_hca *hca, const struct shca_ud_dest *to);
/* Returns the IPv4 header, or NULL if the bytes hold none. */
const struct iphdr *shca_grh_ipv4(const struct ibv_grh *grh);

#endif
