/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ah.c - address handles: the destinations of datagrams.
 */
#include "verbs.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "hca/execution/ah.h"
#include "hca/execution/grh.h"

#define MCAST_LID_BASE 0xc000 /* multicast LIDs are 0xC000 to 0xFFFE (IBA 4.1.3) */
#define PERMISSIVE_LID 0xffff
#define NO_VLAN        0xffff

static bool is_multicast(const struct ibv_ah_attr *attr)
{
	if (attr->is_global)
		return shca_gid_is_multicast(&attr->grh.dgid);
	return attr->dlid >= MCAST_LID_BASE && attr->dlid != PERMISSIVE_LID;
}

/* As on mlx5 an AH is user memory only: the PD doesn't count it. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct shca_hca *hca = shca_ctx(pd->context)->hca;
	struct shca_ah *ah;
	int ret;

	ret = shca_address_check(shca_self.fabric.hdr, hca, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah) {
		errno = ENOMEM;
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->attr = *attr;
	/* As with mlx5: a priority of Ethernet has 3 bits. */
	ah->attr.sl &= shca_is_ethernet(shca_self.fabric.hdr) ? 7 : 15;
	ah->multicast = is_multicast(attr);
	ah->hca = ah->multicast ? -1 : shca_address_by_path(shca_self.fabric.hdr, hca, attr);
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

/* Fills in the route of an answer from a received datagram's GRH: where it came from, and where
 * it came to. */
static int answer_grh(const struct shca_hca *hca, const struct ibv_grh *grh,
		      struct ibv_global_route *route)
{
	const struct shca_fabric_header *hdr = shca_self.fabric.hdr;
	bool ethernet = shca_is_ethernet(hdr);
	enum ibv_gid_type type = ethernet ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_IB;
	uint32_t version_class_flow = be32toh(grh->version_tclass_flow);
	const struct iphdr *ip = ethernet ? shca_grh_ipv4(grh) : NULL;
	union ibv_gid own;
	int index;

	if (ip) {
		type = IBV_GID_TYPE_ROCE_V2;
		shca_gid_map(be32toh(ip->daddr), &own);
		shca_gid_map(be32toh(ip->saddr), &route->dgid);
		route->traffic_class = ip->tos;
		route->hop_limit = ip->ttl;
	} else {
		if (ethernet && grh->next_hdr == IPPROTO_UDP)
			type = IBV_GID_TYPE_ROCE_V2;
		own = grh->dgid;
		route->dgid = grh->sgid;
		route->flow_label = version_class_flow & 0xfffff;
		route->traffic_class = (version_class_flow >> 20) & 0xff;
		route->hop_limit = grh->hop_limit;
	}
	index = shca_gid_index(hdr, hca, &own, type);
	route->sgid_index = (uint8_t)index;
	return index < 0 ? EINVAL : 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	int ret;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	ret = answer_grh(shca_ctx(context)->hca, grh, &attr->grh);
	if (ret)
		errno = ret;
	return ret ? -1 : 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* Works for Ethernet ports only. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const struct shca_fabric_header *hdr = shca_self.fabric.hdr;
	const struct shca_hca *hca = shca_ctx(context)->hca;
	int to, rc = EOPNOTSUPP;

	if (shca_is_ethernet(hdr))
		rc = shca_address_check(hdr, hca, attr);
	to = rc ? -1 : shca_address_by_path(hdr, hca, attr);
	if (!rc && to < 0)
		rc = ETIMEDOUT;
	if (rc) {
		errno = rc;
		return rc;
	}
	shca_mac(&hdr->hcas[to], eth_mac);
	if (vid)
		*vid = NO_VLAN;
	return 0;
}
