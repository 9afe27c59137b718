/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grh.c - building and recognising the header in front of a datagram.
 */
#include "grh.h"

#include <endian.h>
#include <string.h>

#include "fabric/address.h"

/* Bytes behind the GRH of a datagram that its length counts, besides the padded data: BTH, DETH,
 * ICRC; with immediate data ImmDt; for RoCE v2 UDP. */
#define HEADERS     24u
#define IMM_HEADER  4u
#define UDP_HEADER  8u
#define NEXT_BTH    0x1b
#define IP4_BYTES   20u
#define IP4_OFFSET  (sizeof(struct ibv_grh) - IP4_BYTES) /* the header ends where a GRH does */
#define IP4_VERSION 4

/* Returns the checksum of an IPv4 header (RFC 1071); the header's own field counts as 0. */
static uint16_t checksum(const struct iphdr *ip)
{
	uint16_t words[IP4_BYTES / 2];
	uint32_t sum = 0;

	memcpy(words, ip, sizeof(words));
	words[offsetof(struct iphdr, check) / 2] = 0;
	for (unsigned i = 0; i < IP4_BYTES / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

const struct iphdr *shca_grh_ipv4(const struct ibv_grh *grh)
{
	const struct iphdr *ip = (const void *)((const char *)grh + IP4_OFFSET);

	return ip->version == IP4_VERSION && ip->ihl == IP4_BYTES / 4 && ip->check == checksum(ip)
		       ? ip
		       : NULL;
}

uint32_t shca_grh_behind(uint32_t length, bool imm)
{
	/* The data are padded to whole words. */
	return ((length + 3) & ~3u) + HEADERS + (imm ? IMM_HEADER : 0);
}

static void make_ipv4(const union ibv_gid *from, const struct shca_ud_dest *to, uint32_t behind,
		      struct ibv_grh *grh)
{
	struct iphdr *ip = (void *)((char *)grh + IP4_OFFSET);

	ip->version = IP4_VERSION;
	ip->ihl = IP4_BYTES / 4;
	ip->tos = to->traffic_class;
	ip->tot_len = htobe16((uint16_t)(IP4_BYTES + behind));
	ip->frag_off = htobe16(IP_DF);
	ip->ttl = to->hop_limit;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htobe32(shca_gid_unmap(from));
	ip->daddr = htobe32(shca_gid_unmap(&to->dgid));
	ip->check = checksum(ip);
}

/* Kinds of packets on Ethernet, with the numbers that a ConnectX reports. */
#define SL_ROCE_V1      0u
#define SL_ROCE_V2_IPV6 1u
#define SL_ROCE_V2_IPV4 2u

unsigned shca_grh_sl(const struct shca_hca *hca, const struct shca_ud_dest *to)
{
	enum ibv_gid_type type;
	union ibv_gid from;

	if (!shca_is_ethernet(shca_self.fabric.hdr))
		return to->sl & 15u;
	shca_gid_at(shca_self.fabric.hdr, hca, to->sgid_index, &from, &type);
	if (type != IBV_GID_TYPE_ROCE_V2)
		return SL_ROCE_V1;
	return shca_gid_is_ipv4(&from) ? SL_ROCE_V2_IPV4 : SL_ROCE_V2_IPV6;
}

void shca_grh_make(const struct shca_hca *hca, const struct shca_ud_dest *to, uint32_t behind,
		   struct ibv_grh *grh)
{
	enum ibv_gid_type type;
	union ibv_gid from;
	bool v2;

	shca_gid_at(shca_self.fabric.hdr, hca, to->sgid_index, &from, &type);
	v2 = type == IBV_GID_TYPE_ROCE_V2;
	behind += v2 ? UDP_HEADER : 0;
	memset(grh, 0, sizeof(*grh));
	if (v2 && shca_gid_is_ipv4(&from)) {
		make_ipv4(&from, to, behind, grh);
		return;
	}
	grh->version_tclass_flow =
		htobe32(6u << 28 | (uint32_t)to->traffic_class << 20 | (to->flow_label & 0xfffff));
	grh->paylen = htobe16((uint16_t)behind);
	grh->next_hdr = v2 ? IPPROTO_UDP : NEXT_BTH;
	grh->hop_limit = to->hop_limit;
	grh->sgid = from;
	grh->dgid = to->dgid;
}
