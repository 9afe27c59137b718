/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query.c - answers to queries.
 */
#include "query.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "message.h"
#include "route.h"

#define PORT 1

/* Exponent of the adapters' delay before they acknowledge, as a device query says. */
#define CA_ACK_DELAY 16

static uint64_t guid(const struct shca_fabric *fabric, const struct shca_cm_id *id)
{
	return htobe64(fabric->hdr->hcas[id->hca - 1].guid);
}

static bool has_path(const struct shca_cm_id *id)
{
	return id->hca && id->dest_hca && id->state >= SHCA_CM_ROUTED &&
	       id->state != SHCA_CM_LISTEN;
}

/* Stores a GID as an AF_IB address. */
static void put_gid(const struct shca_fabric *fabric, uint32_t hca,
		    const union shca_cm_address *address, struct __kernel_sockaddr_storage *to)
{
	struct shca_cm_ib_address ib = {.family = SHCA_AF_IB};

	if (address->family == SHCA_AF_IB)
		ib = address->ib;
	ib.pkey = htobe16(0xffff);
	if (hca)
		shca_route_gid(fabric->hdr, hca - 1, shca_route_kind(address), ib.gid);
	memcpy(to, &ib, sizeof(ib));
}

static void put_device(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		       struct rdma_ucm_query_addr_resp *resp)
{
	if (!id->hca)
		return;
	resp->node_guid = guid(fabric, id);
	resp->port_num = PORT;
	resp->pkey = htobe16(fabric->hdr->hcas[id->hca - 1].pkeys[0]);
	resp->ibdev_index = fabric->hdr->hcas[id->hca - 1].device;
}

void shca_query_addresses(const struct shca_fabric *fabric, const struct shca_cm_id *id,
			  struct rdma_ucm_query_addr_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
	resp->src_size = (uint16_t)shca_route_size(id->source.family);
	memcpy(&resp->src_addr, &id->source, resp->src_size);
	resp->dst_size = (uint16_t)shca_route_size(id->destination.family);
	memcpy(&resp->dst_addr, &id->destination, resp->dst_size);
	put_device(fabric, id, resp);
}

void shca_query_gids(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		     struct rdma_ucm_query_addr_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
	put_device(fabric, id, resp);
	resp->src_size = resp->dst_size = sizeof(struct shca_cm_ib_address);
	put_gid(fabric, id->hca, &id->source, &resp->src_addr);
	put_gid(fabric, id->dest_hca, &id->destination, &resp->dst_addr);
}

static void fill_route(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		       struct ib_user_path_rec *path)
{
	shca_route_path(fabric->hdr, id->hca - 1, id->dest_hca - 1,
			shca_route_kind(&id->destination), path);
	path->traffic_class = id->tos;
}

void shca_query_route(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		      struct rdma_ucm_query_route_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
	if (id->source.family != SHCA_AF_IB)
		memcpy(&resp->src_addr, &id->source, shca_route_size(id->source.family));
	if (id->destination.family != SHCA_AF_IB)
		memcpy(&resp->dst_addr, &id->destination, shca_route_size(id->destination.family));
	if (!id->hca)
		return;
	resp->node_guid = guid(fabric, id);
	resp->port_num = PORT;
	resp->ibdev_index = fabric->hdr->hcas[id->hca - 1].device;
	if (has_path(id)) {
		resp->num_paths = 1;
		fill_route(fabric, id, &resp->ib_route[0]);
		return;
	}
	resp->ib_route[0].pkey = htobe16(fabric->hdr->hcas[id->hca - 1].pkeys[0]);
	shca_route_gid(fabric->hdr, id->hca - 1, shca_route_kind(&id->source),
		       resp->ib_route[0].sgid);
	if (id->dest_hca)
		shca_route_gid(fabric->hdr, id->dest_hca - 1, shca_route_kind(&id->destination),
			       resp->ib_route[0].dgid);
}

size_t shca_query_path(const struct shca_fabric *fabric, const struct shca_cm_id *id,
		       struct rdma_ucm_query_path_resp *resp, size_t len)
{
	memset(resp, 0, sizeof(*resp));
	if (!has_path(id) || len < sizeof(*resp) + sizeof(resp->path_data[0]))
		return sizeof(*resp);
	resp->num_paths = 1;
	shca_route_record(fabric->hdr, id->hca - 1, id->dest_hca - 1,
			  shca_route_kind(&id->destination), &resp->path_data[0]);
	return sizeof(*resp) + sizeof(resp->path_data[0]);
}

/* ---- attributes of the QP ---- */

/* Returns the exponent of the QP's timeout, which Linux makes of the packet lifetime and of the
 * delay of the adapters (IBA 12.7.34). */
static uint8_t timeout(const struct shca_cm_id *id)
{
	uint8_t round_trip = SHCA_ROUTE_LIFETIME + 1;

	if (id->ack_timeout)
		return id->ack_timeout;
	return (uint8_t)(round_trip + (CA_ACK_DELAY >= round_trip - 1));
}

static int to_init(const struct shca_fabric *fabric, struct shca_cm_id *id,
		   struct ib_uverbs_qp_attr *attr)
{
	(void)fabric;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = PORT;
	if (shca_message_is_datagram(id)) {
		shca_message_set_qkey(id, 0);
		attr->qkey = id->qkey;
		attr->qp_attr_mask |= IBV_QP_QKEY;
		return 0;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	if (id->link == SHCA_CM_LINK_NONE)
		return 0;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

/* Returns true if both ends of a connection are known. */
static bool is_known(const struct shca_cm_id *id)
{
	switch (id->link) {
	case SHCA_CM_LINK_REQ_RCVD:
	case SHCA_CM_LINK_REP_SENT:
	case SHCA_CM_LINK_REP_RCVD:
	case SHCA_CM_LINK_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

static int to_rtr(const struct shca_fabric *fabric, struct shca_cm_id *id,
		  struct ib_uverbs_qp_attr *attr)
{
	if (!is_known(id))
		return -EINVAL;
	attr->qp_attr_mask =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	shca_route_vector(fabric->hdr, id->hca - 1, id->dest_hca - 1,
			  shca_route_kind(&id->destination), &attr->ah_attr);
	attr->ah_attr.grh.traffic_class = attr->ah_attr.is_global ? id->tos : 0;
	attr->path_mtu = IBV_MTU_256 + (uint32_t)fabric->hdr->config.value[SHCA_O_MTU];
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->psn;
	if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_RECV) {
		attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = id->responder_resources;
		/* 655 ms: Linux leaves it at that. */
		attr->min_rnr_timer = 0;
	}
	return 0;
}

static int to_rts(const struct shca_fabric *fabric, struct shca_cm_id *id,
		  struct ib_uverbs_qp_attr *attr)
{
	(void)fabric;
	if (!is_known(id))
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = id->remote_psn;
	if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_SEND) {
		attr->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT;
		attr->retry_cnt = id->retry_count;
		attr->rnr_retry = id->rnr_retry_count;
		attr->max_rd_atomic = id->initiator_depth;
		attr->timeout = timeout(id);
	} else if (id->qp_type == IBV_QPT_XRC_RECV) {
		attr->qp_attr_mask |= IBV_QP_TIMEOUT;
		attr->timeout = timeout(id);
	}
	return 0;
}

int shca_query_qp(const struct shca_fabric *fabric, struct shca_cm_id *id,
		  struct ib_uverbs_qp_attr *attr)
{
	uint32_t state = attr->qp_state;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	/* The QPs of datagrams and those before a request need the first step alone. */
	if (state == IBV_QPS_INIT || shca_message_is_datagram(id) || id->link == SHCA_CM_LINK_NONE)
		return id->hca ? to_init(fabric, id, attr) : -EINVAL;
	if (state == IBV_QPS_RTR)
		return to_rtr(fabric, id, attr);
	if (state == IBV_QPS_RTS)
		return to_rts(fabric, id, attr);
	return -EINVAL;
}
