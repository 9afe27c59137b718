/* SPDX-License-Identifier: BSD-3-Clause */
/* ah.c - address handles: where a UD send goes. */
#include "verbs.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "hca/mcast.h"

#define MCAST_LID_BASE 0xc000 /* IBA 4.1.3: multicast LIDs are 0xC000 to 0xFFFE */
#define PERMISSIVE_LID 0xffff
#define MAX_SL         15

static int check_attr(const struct ibv_ah_attr *attr)
{
	if (attr->port_num != SHCA_PORT || attr->sl > MAX_SL)
		return -EINVAL;
	/* Only the first entry of the table has a GID. */
	if (attr->is_global && attr->grh.sgid_index)
		return -EINVAL;
	return 0;
}

static bool is_multicast(const struct ibv_ah_attr *attr)
{
	if (attr->is_global)
		return shca_gid_is_multicast(&attr->grh.dgid);
	return attr->dlid >= MCAST_LID_BASE && attr->dlid != PERMISSIVE_LID;
}

/* An AH is user memory only, as on mlx5: the PD doesn't count it. */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct shca_ah *ah;
	int ret;

	ret = check_attr(attr);
	if (ret) {
		errno = -ret;
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
	ah->multicast = is_multicast(attr);
	ah->hca = ah->multicast ? -1 : shca_fabric_hca_by_path(&shca_self.fabric, attr);
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

static int find_gid_index(const struct shca_hca *hca, const union ibv_gid *gid)
{
	union ibv_gid own;

	for (unsigned i = 0; i < SHCA_GID_TBL_LEN; i++) {
		shca_gid_at(hca, i, &own);
		if (memcmp(&own, gid, sizeof(own)) == 0)
			return (int)i;
	}
	return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	uint32_t version_class_flow;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	index = find_gid_index(shca_ctx(context)->hca, &grh->dgid);
	if (index < 0) {
		errno = EINVAL;
		return -1;
	}
	version_class_flow = be32toh(grh->version_tclass_flow);
	attr->is_global = 1;
	attr->grh.dgid = grh->sgid;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.flow_label = version_class_flow & 0xfffff;
	attr->grh.traffic_class = (version_class_flow >> 20) & 0xff;
	attr->grh.hop_limit = grh->hop_limit;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* For Ethernet ports only; ours is InfiniBand. */
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}
