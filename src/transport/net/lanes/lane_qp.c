/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_qp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "net/peers/node.h"

#define RNR_RETRY_FOREVER 7

static const char *const state_names[TQ_LANE_STATES] = {
	[TQ_LANE_CONNECTING] = "CONNECTING",
	[TQ_LANE_READY] = "READY",
	[TQ_LANE_RETIRED] = "RETIRED",
};

static const uint16_t next_states[TQ_LANE_STATES] = {
	[TQ_LANE_CONNECTING] = 1u << TQ_LANE_READY | 1u << TQ_LANE_RETIRED,
	[TQ_LANE_READY] = 1u << TQ_LANE_RETIRED,
};

static const struct tq_states states = {"lane", state_names, next_states};

static void set_state(struct tq_net *net, struct tq_lane *lane, enum tq_lane_state to)
{
	tq_states_change(&states, net->trace, lane, lane->state, to);
	lane->state = to;
}

static uint32_t depth_of(const struct tq_net *net, enum tq_lane_kind kind)
{
	const struct tq_params *params = net->params;
	int64_t depth = kind == TQ_LANE_CONTROL ? params->control_depth
			: kind == TQ_LANE_BULK  ? params->bulk_depth
						: params->hold_depth;

	return (uint32_t)(depth < net->dev.attr.max_qp_wr ? depth : net->dev.attr.max_qp_wr);
}

static int to_init(struct tq_net *net, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = net->dev.pkey_index,
		.port_num = net->dev.port_num,
	};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int tq_lane_make(struct tq_net *net, struct tq_node *node, enum tq_lane_kind kind,
		 struct tq_lane **made)
{
	struct tq_lane *lane = malloc(sizeof(*lane));
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = net->scq.cq,
		.cap = {.max_send_wr = depth_of(net, kind),
			.max_send_sge = net->limits.max_sge,
			.max_inline_data = net->dev.max_inline},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = net->dev.pd,
	};
	int error;

	if (!lane)
		return -ENOMEM;
	*lane = (struct tq_lane){
		.node = node,
		.kind = kind,
		.state = TQ_LANE_CONNECTING,
		.psn = (uint32_t)tq_random() & 0xffffff,
		.depth = attr.cap.max_send_wr,
	};
	while (lane->mask < (kind == TQ_LANE_HOLD ? 2 : 1) * lane->depth - 1)
		lane->mask = lane->mask * 2 + 1;
	lane->ring = calloc((size_t)lane->mask + 1, sizeof(*lane->ring));
	if (kind == TQ_LANE_CONTROL)
		lane->bytes = malloc(((size_t)lane->mask + 1) * net->dev.max_inline + 1);
	if (!lane->ring || (kind == TQ_LANE_CONTROL && !lane->bytes)) {
		error = -ENOMEM;
		goto free_lane;
	}
	tq_lane_prepare(net, lane);
	lane->qp = ibv_create_qp_ex(net->dev.verbs, &attr);
	if (!lane->qp) {
		error = -errno;
		goto free_lane;
	}
	error = to_init(net, lane->qp);
	if (error)
		goto destroy_qp;
	node->nlanes++;
	TQ_LEVEL(net->stats, lanes, 1);
	*made = lane;
	return 0;
destroy_qp:
	ibv_destroy_qp(lane->qp);
free_lane:
	free(lane->bytes);
	free(lane->ring);
	free(lane);
	return error;
}

uint8_t tq_lane_rd_atomic(const struct tq_net *net)
{
	int64_t most = net->dev.attr.max_qp_init_rd_atom, wanted = net->params->max_rd_atomic;

	return (uint8_t)(wanted < most ? wanted : most);
}

int tq_lane_connect(struct tq_net *net, struct tq_lane *lane, uint32_t tgt_qpn, uint8_t rd_atomic)
{
	uint8_t own = tq_lane_rd_atomic(net);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = lane->node->mtu,
		.dest_qp_num = tgt_qpn,
	};
	int error;

	tq_address_path(net, &lane->node->key.gid, lane->node->lid, &attr.ah_attr);
	error = ibv_modify_qp(lane->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN);
	if (error)
		return -error;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = lane->psn,
		.timeout = (uint8_t)net->params->timeout,
		.retry_cnt = (uint8_t)net->params->retry_count,
		.rnr_retry = RNR_RETRY_FOREVER,
		.max_rd_atomic = own < rd_atomic ? own : rd_atomic,
	};
	error = ibv_modify_qp(lane->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (error)
		return -error;
	lane->tgt_qpn = tgt_qpn;
	set_state(net, lane, TQ_LANE_READY);
	TQ_COUNT(net->stats, connections);
	return 0;
}

void tq_lane_stop(struct tq_net *net, struct tq_lane *lane)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	/* The QP may be in that state already, by a failure of its own. */
	ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE);
	set_state(net, lane, TQ_LANE_RETIRED);
}

void tq_lane_destroy(struct tq_net *net, struct tq_lane *lane)
{
	assert(!lane->requests);
	if (lane->qp)
		ibv_destroy_qp(lane->qp);
	/* When the endpoint closes, work may be outstanding whose completions nobody polls. */
	if (!lane->awaited)
		tq_lane_settle(net, lane);
	tq_lane_drop_drain(net, lane);
	lane->node->nlanes--;
	TQ_LEVEL(net->stats, lanes, -1);
	free(lane->confirmed);
	free(lane->bytes);
	free(lane->ring);
	free(lane);
}
