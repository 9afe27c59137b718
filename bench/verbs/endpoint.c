/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.c - opens a device and connects the lanes. Plain verbs, as any program would call them;
 * nothing here knows which HCA it runs on.
 */
#define _GNU_SOURCE
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define PORT        1
#define QKEY        0x11111111
#define MAX_INLINE  64
#define CHECK_BYTES (1u << 20)

static const char *const lane_name[LANE_KINDS] = {"RC", "XRC", "UD"};

static void open_device(struct endpoint *endpoint, const char *wanted)
{
	struct ibv_device **list;
	struct ibv_device_attr attr;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (!list || !n)
		die("there is no RDMA device; start this as `softhca run -- verbs_bench`");
	for (int i = 0; i < n && !endpoint->ctx; i++)
		if (!wanted || !strcmp(wanted, ibv_get_device_name(list[i])))
			endpoint->ctx = ibv_open_device(list[i]);
	if (!endpoint->ctx)
		die("device %s can't be opened", wanted ? wanted : ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	if (ibv_query_device(endpoint->ctx, &attr) ||
	    ibv_query_port(endpoint->ctx, PORT, &endpoint->port))
		die("the device or its port can't be queried");
	if (endpoint->port.state != IBV_PORT_ACTIVE ||
	    endpoint->port.link_layer != IBV_LINK_LAYER_INFINIBAND)
		die("port 1 of the device isn't an active InfiniBand port");
	endpoint->has_xrc = attr.device_cap_flags & IBV_DEVICE_XRC;
}

static uint8_t *make_buffer(struct endpoint *endpoint, struct ibv_mr **mr, int access)
{
	size_t bytes = (size_t)endpoint->size + LANE_GRH;
	uint8_t *buf;

	buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		die("no memory for a buffer of %zu bytes", bytes);
	memset(buf, 0x5a, bytes);
	*mr = ibv_reg_mr(endpoint->pd, buf, bytes, access);
	if (!*mr)
		die("%zu bytes can't be registered (%s); raise `ulimit -l`, give softhca --memlock "
		    "unlimited, or use a smaller --max-size",
		    bytes, strerror(errno));
	return buf;
}

static struct ibv_cq *make_cq(struct endpoint *endpoint, int depth)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(endpoint->ctx);
	struct ibv_cq *cq;

	if (!channel)
		die("a completion channel can't be made: %s", strerror(errno));
	cq = ibv_create_cq(endpoint->ctx, depth, NULL, channel, 0);
	if (!cq)
		die("a CQ of %d entries can't be made: %s", depth, strerror(errno));
	return cq;
}

static struct ibv_qp *make_qp(struct endpoint *endpoint, struct lane *lane)
{
	static const enum ibv_qp_type type[] = {IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UD};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = lane->scq,
		.qp_type = type[lane->kind],
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = endpoint->pd,
		.cap = {.max_send_wr = LANE_SQ_DEPTH,
			.max_send_sge = 1,
			.max_inline_data = MAX_INLINE},
	};
	struct ibv_qp *qp;

	if (lane->kind != LANE_XRC) {
		attr.recv_cq = lane->rcq;
		attr.cap.max_recv_wr = LANE_RQ_DEPTH;
		attr.cap.max_recv_sge = 1;
	}
	qp = ibv_create_qp_ex(endpoint->ctx, &attr);
	if (!qp) {
		attr.cap.max_inline_data = 0;
		qp = ibv_create_qp_ex(endpoint->ctx, &attr);
	}
	if (!qp)
		die("the %s QP can't be made: %s", lane_name[lane->kind], strerror(errno));
	lane->max_inline = attr.cap.max_inline_data;
	return qp;
}

static void make_xrc_receiver(struct endpoint *endpoint, struct lane *lane)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = LANE_RQ_DEPTH, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = endpoint->pd,
		.xrcd = endpoint->xrcd,
		.cq = lane->rcq,
	};
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = endpoint->xrcd,
	};

	lane->srq = ibv_create_srq_ex(endpoint->ctx, &srq);
	if (!lane->srq)
		die("the XRC SRQ can't be made: %s", strerror(errno));
	lane->target = ibv_create_qp_ex(endpoint->ctx, &qp);
	if (!lane->target)
		die("the XRC target QP can't be made: %s", strerror(errno));
}

static void prepare_requests(struct endpoint *endpoint, struct lane *lane)
{
	lane->sge = (struct ibv_sge){.addr = (uintptr_t)endpoint->send_buf,
				     .lkey = endpoint->send_mr->lkey};
	lane->wr = (struct ibv_send_wr){.sg_list = &lane->sge, .num_sge = 1};
	lane->recv_sge = (struct ibv_sge){
		.addr = (uintptr_t)endpoint->recv_buf,
		.length = lane->kind == LANE_UD ? LANE_GRH + 8 : endpoint->size,
		.lkey = endpoint->recv_mr->lkey,
	};
	for (int i = 0; i < LANE_BATCH; i++)
		lane->recv[i] = (struct ibv_recv_wr){
			.next = i + 1 < LANE_BATCH ? &lane->recv[i + 1] : NULL,
			.sg_list = &lane->recv_sge,
			.num_sge = 1,
		};
	lane_pace(lane, LANE_SQ_DEPTH, LANE_BATCH, false);
	lane->consumed = LANE_RQ_DEPTH;
}

static void make_lane(struct endpoint *endpoint, enum lane_kind kind)
{
	struct lane *lane = &endpoint->lane[kind];
	struct lane_info *mine = &endpoint->pair->sh->info[endpoint->pair->rank].lane[kind];

	lane->pair = endpoint->pair;
	lane->kind = kind;
	lane->scq = make_cq(endpoint, LANE_SQ_DEPTH);
	lane->rcq = make_cq(endpoint, LANE_RQ_DEPTH);
	lane->qp = make_qp(endpoint, lane);
	mine->qpn = mine->ini_qpn = lane->qp->qp_num;
	if (kind == LANE_XRC) {
		make_xrc_receiver(endpoint, lane);
		mine->qpn = lane->target->qp_num;
		if (ibv_get_srq_num(lane->srq, &mine->srqn))
			die("the XRC SRQ has no number");
	}
	prepare_requests(endpoint, lane);
}

static void move_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int rc = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (rc)
		die("a QP can't be moved to state %d: %s", attr->qp_state, strerror(rc));
}

/* Takes a connected QP to RTS. A target QP sends nothing, but takes the same steps. */
static void connect_qp(struct endpoint *endpoint, struct ibv_qp *qp, uint32_t peer_qpn)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = endpoint->port.active_mtu,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = endpoint->pair->sh->info[!endpoint->pair->rank].lid,
			    .port_num = PORT},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int rtr_mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts_mask = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;

	if (qp->qp_type != IBV_QPT_XRC_SEND)
		rtr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (qp->qp_type != IBV_QPT_XRC_RECV)
		rts_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	move_qp(qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	move_qp(qp, &rtr, rtr_mask);
	move_qp(qp, &rts, rts_mask);
}

static void connect_ud(struct endpoint *endpoint, struct lane *lane)
{
	const struct process_info *peer = &endpoint->pair->sh->info[!endpoint->pair->rank];
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_ah_attr ah = {.dlid = peer->lid, .port_num = PORT};

	move_qp(lane->qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	move_qp(lane->qp, &rtr, 0);
	move_qp(lane->qp, &rts, IBV_QP_SQ_PSN);
	lane->ah = ibv_create_ah(endpoint->pd, &ah);
	if (!lane->ah)
		die("an address handle can't be made: %s", strerror(errno));
	lane->wr.wr.ud.ah = lane->ah;
	lane->wr.wr.ud.remote_qpn = peer->lane[LANE_UD].qpn;
	lane->wr.wr.ud.remote_qkey = QKEY;
}

static void connect_lane(struct endpoint *endpoint, struct lane *lane)
{
	const struct process_info *peer = &endpoint->pair->sh->info[!endpoint->pair->rank];

	if (lane->kind == LANE_UD) {
		connect_ud(endpoint, lane);
		return;
	}
	connect_qp(endpoint, lane->qp, peer->lane[lane->kind].qpn);
	if (lane->kind == LANE_XRC) {
		connect_qp(endpoint, lane->target, peer->lane[LANE_XRC].ini_qpn);
		lane->wr.qp_type.xrc.remote_srqn = peer->lane[LANE_XRC].srqn;
	}
	lane->wr.wr.rdma.remote_addr = peer->recv_buf;
	lane->wr.wr.rdma.rkey = peer->rkey;
}

void endpoint_open(struct endpoint *endpoint, struct process_pair *pair, const char *device,
		   uint32_t size, int xrc_fd)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = xrc_fd,
		.oflags = O_CREAT,
	};
	struct process_info *mine = &pair->sh->info[pair->rank];

	*endpoint = (struct endpoint){.pair = pair, .size = size};
	open_device(endpoint, device);
	endpoint->pd = ibv_alloc_pd(endpoint->ctx);
	if (!endpoint->pd)
		die("a protection domain can't be made: %s", strerror(errno));
	endpoint->send_buf = make_buffer(endpoint, &endpoint->send_mr, 0);
	endpoint->recv_buf = make_buffer(endpoint, &endpoint->recv_mr,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (endpoint->has_xrc) {
		endpoint->xrcd = ibv_open_xrcd(endpoint->ctx, &xrcd);
		if (!endpoint->xrcd)
			die("the XRC domain can't be opened: %s", strerror(errno));
	}
	mine->lid = endpoint->port.lid;
	mine->rkey = endpoint->recv_mr->rkey;
	mine->recv_buf = (uintptr_t)endpoint->recv_buf;
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (kind != LANE_XRC || endpoint->has_xrc)
			make_lane(endpoint, kind);
	pair_barrier(pair);
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (endpoint->lane[kind].qp) {
			connect_lane(endpoint, &endpoint->lane[kind]);
			lane_refill(&endpoint->lane[kind]);
		}
	pair_barrier(pair);
}

static void close_lane(struct lane *lane)
{
	struct ibv_comp_channel *channel[2] = {lane->scq->channel, lane->rcq->channel};

	if (lane->ah)
		ibv_destroy_ah(lane->ah);
	ibv_destroy_qp(lane->qp);
	if (lane->target)
		ibv_destroy_qp(lane->target);
	if (lane->srq)
		ibv_destroy_srq(lane->srq);
	ibv_destroy_cq(lane->scq);
	ibv_destroy_cq(lane->rcq);
	ibv_destroy_comp_channel(channel[0]);
	ibv_destroy_comp_channel(channel[1]);
}

void endpoint_close(struct endpoint *endpoint)
{
	pair_barrier(endpoint->pair);
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (endpoint->lane[kind].qp)
			close_lane(&endpoint->lane[kind]);
	if (endpoint->xrcd)
		ibv_close_xrcd(endpoint->xrcd);
	ibv_dereg_mr(endpoint->send_mr);
	ibv_dereg_mr(endpoint->recv_mr);
	ibv_dealloc_pd(endpoint->pd);
	if (ibv_close_device(endpoint->ctx))
		die("the device can't be closed: %s", strerror(errno));
}

static void fill(uint8_t *buf, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		buf[i] = (uint8_t)(seed >> 24);
	}
}

static void check_one(struct endpoint *endpoint, struct lane *lane, enum ibv_wr_opcode op,
		      int sender)
{
	uint32_t len = lane->kind == LANE_UD          ? 8
		       : endpoint->size < CHECK_BYTES ? endpoint->size
						      : CHECK_BYTES;
	uint32_t seed = (uint32_t)lane->kind * 16 + (uint32_t)op * 2 + (uint32_t)sender;
	uint8_t *arrived = endpoint->recv_buf + (lane->kind == LANE_UD ? LANE_GRH : 0);

	if (endpoint->pair->rank == sender) {
		fill(endpoint->send_buf, len, seed);
		lane_send(lane, op, len, true);
		lane_flush(lane);
	} else if (op == IBV_WR_SEND) {
		lane_take(lane, 1, true);
		lane_refill(lane);
	}
	pair_barrier(endpoint->pair);
	if (endpoint->pair->rank != sender) {
		fill(endpoint->send_buf, len, seed);
		if (memcmp(endpoint->send_buf, arrived, len))
			die("%s changed data on its way; nothing was measured",
			    lane_name[lane->kind]);
	}
	pair_barrier(endpoint->pair);
}

void endpoint_check(struct endpoint *endpoint)
{
	for (int kind = 0; kind < LANE_KINDS; kind++) {
		struct lane *lane = &endpoint->lane[kind];

		for (int sender = 0; lane->qp && sender < 2; sender++) {
			check_one(endpoint, lane, IBV_WR_SEND, sender);
			if (kind != LANE_UD)
				check_one(endpoint, lane, IBV_WR_RDMA_WRITE, sender);
		}
	}
}
