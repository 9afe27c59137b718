/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.c - opens a device and connects the lanes. Plain verbs, as any program would call them;
 * nothing here knows which HCA it runs on.
 */
#define _GNU_SOURCE
#include "lane.h"

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

static void open_device(struct endpoint *e, const char *wanted)
{
	struct ibv_device **list;
	struct ibv_device_attr attr;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (!list || !n)
		die("there is no RDMA device; start this as `softhca run -- verbs_bench`");
	for (int i = 0; i < n && !e->ctx; i++)
		if (!wanted || !strcmp(wanted, ibv_get_device_name(list[i])))
			e->ctx = ibv_open_device(list[i]);
	if (!e->ctx)
		die("device %s can't be opened", wanted ? wanted : ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	if (ibv_query_device(e->ctx, &attr) || ibv_query_port(e->ctx, PORT, &e->port))
		die("the device or its port can't be queried");
	if (e->port.state != IBV_PORT_ACTIVE || e->port.link_layer != IBV_LINK_LAYER_INFINIBAND)
		die("port 1 of the device isn't an active InfiniBand port");
	e->has_xrc = attr.device_cap_flags & IBV_DEVICE_XRC;
}

static uint8_t *make_buffer(struct endpoint *e, struct ibv_mr **mr, int access)
{
	size_t bytes = (size_t)e->size + LANE_GRH;
	uint8_t *buf;

	buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		die("no memory for a buffer of %zu bytes", bytes);
	memset(buf, 0x5a, bytes);
	*mr = ibv_reg_mr(e->pd, buf, bytes, access);
	if (!*mr)
		die("%zu bytes can't be registered (%s); raise `ulimit -l`, give softhca --memlock "
		    "unlimited, or use a smaller --max-size",
		    bytes, strerror(errno));
	return buf;
}

static struct ibv_cq *make_cq(struct endpoint *e, int depth)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(e->ctx);
	struct ibv_cq *cq;

	if (!channel)
		die("a completion channel can't be made: %s", strerror(errno));
	cq = ibv_create_cq(e->ctx, depth, NULL, channel, 0);
	if (!cq)
		die("a CQ of %d entries can't be made: %s", depth, strerror(errno));
	return cq;
}

static struct ibv_qp *make_qp(struct endpoint *e, struct lane *l)
{
	static const enum ibv_qp_type type[] = {IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UD};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = l->scq,
		.qp_type = type[l->kind],
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
		.cap = {.max_send_wr = LANE_SQ_DEPTH,
			.max_send_sge = 1,
			.max_inline_data = MAX_INLINE},
	};
	struct ibv_qp *qp;

	if (l->kind != LANE_XRC) {
		attr.recv_cq = l->rcq;
		attr.cap.max_recv_wr = LANE_RQ_DEPTH;
		attr.cap.max_recv_sge = 1;
	}
	qp = ibv_create_qp_ex(e->ctx, &attr);
	if (!qp) {
		attr.cap.max_inline_data = 0;
		qp = ibv_create_qp_ex(e->ctx, &attr);
	}
	if (!qp)
		die("the %s QP can't be made: %s", lane_name[l->kind], strerror(errno));
	l->max_inline = attr.cap.max_inline_data;
	return qp;
}

static void make_xrc_receiver(struct endpoint *e, struct lane *l)
{
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = LANE_RQ_DEPTH, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->pd,
		.xrcd = e->xrcd,
		.cq = l->rcq,
	};
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = e->xrcd,
	};

	l->srq = ibv_create_srq_ex(e->ctx, &srq);
	if (!l->srq)
		die("the XRC SRQ can't be made: %s", strerror(errno));
	l->target = ibv_create_qp_ex(e->ctx, &qp);
	if (!l->target)
		die("the XRC target QP can't be made: %s", strerror(errno));
}

static void prepare_requests(struct endpoint *e, struct lane *l)
{
	l->sge = (struct ibv_sge){.addr = (uintptr_t)e->send_buf, .lkey = e->send_mr->lkey};
	l->wr = (struct ibv_send_wr){.sg_list = &l->sge, .num_sge = 1};
	l->recv_sge = (struct ibv_sge){
		.addr = (uintptr_t)e->recv_buf,
		.length = l->kind == LANE_UD ? LANE_GRH + 8 : e->size,
		.lkey = e->recv_mr->lkey,
	};
	for (int i = 0; i < LANE_BATCH; i++)
		l->recv[i] = (struct ibv_recv_wr){
			.next = i + 1 < LANE_BATCH ? &l->recv[i + 1] : NULL,
			.sg_list = &l->recv_sge,
			.num_sge = 1,
		};
	lane_pace(l, LANE_SQ_DEPTH, LANE_BATCH, false);
	l->owed = LANE_RQ_DEPTH;
}

static void make_lane(struct endpoint *e, enum lane_kind kind)
{
	struct lane *l = &e->lane[kind];
	struct lane_info *mine = &e->pair->sh->info[e->pair->rank].lane[kind];

	l->pair = e->pair;
	l->kind = kind;
	l->scq = make_cq(e, LANE_SQ_DEPTH);
	l->rcq = make_cq(e, LANE_RQ_DEPTH);
	l->qp = make_qp(e, l);
	mine->qpn = mine->ini_qpn = l->qp->qp_num;
	if (kind == LANE_XRC) {
		make_xrc_receiver(e, l);
		mine->qpn = l->target->qp_num;
		if (ibv_get_srq_num(l->srq, &mine->srqn))
			die("the XRC SRQ has no number");
	}
	prepare_requests(e, l);
}

static void move_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int rc = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (rc)
		die("a QP can't be moved to state %d: %s", attr->qp_state, strerror(rc));
}

/* One connected QP up to RTS; a target QP sends nothing but takes the same steps. */
static void connect_qp(struct endpoint *e, struct ibv_qp *qp, uint32_t peer_qpn)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = e->port.active_mtu,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.dlid = e->pair->sh->info[!e->pair->rank].lid, .port_num = PORT},
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

static void connect_ud(struct endpoint *e, struct lane *l)
{
	const struct process_info *peer = &e->pair->sh->info[!e->pair->rank];
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_ah_attr ah = {.dlid = peer->lid, .port_num = PORT};

	move_qp(l->qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	move_qp(l->qp, &rtr, 0);
	move_qp(l->qp, &rts, IBV_QP_SQ_PSN);
	l->ah = ibv_create_ah(e->pd, &ah);
	if (!l->ah)
		die("an address handle can't be made: %s", strerror(errno));
	l->wr.wr.ud.ah = l->ah;
	l->wr.wr.ud.remote_qpn = peer->lane[LANE_UD].qpn;
	l->wr.wr.ud.remote_qkey = QKEY;
}

static void connect_lane(struct endpoint *e, struct lane *l)
{
	const struct process_info *peer = &e->pair->sh->info[!e->pair->rank];

	if (l->kind == LANE_UD) {
		connect_ud(e, l);
		return;
	}
	connect_qp(e, l->qp, peer->lane[l->kind].qpn);
	if (l->kind == LANE_XRC) {
		connect_qp(e, l->target, peer->lane[LANE_XRC].ini_qpn);
		l->wr.qp_type.xrc.remote_srqn = peer->lane[LANE_XRC].srqn;
	}
	l->wr.wr.rdma.remote_addr = peer->recv_buf;
	l->wr.wr.rdma.rkey = peer->rkey;
}

void endpoint_open(struct endpoint *e, struct pair *p, const char *device, uint32_t size,
		   int xrc_fd)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = xrc_fd,
		.oflags = O_CREAT,
	};
	struct process_info *mine = &p->sh->info[p->rank];

	*e = (struct endpoint){.pair = p, .size = size};
	open_device(e, device);
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		die("a protection domain can't be made: %s", strerror(errno));
	e->send_buf = make_buffer(e, &e->send_mr, 0);
	e->recv_buf = make_buffer(e, &e->recv_mr, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (e->has_xrc) {
		e->xrcd = ibv_open_xrcd(e->ctx, &xrcd);
		if (!e->xrcd)
			die("the XRC domain can't be opened: %s", strerror(errno));
	}
	mine->lid = e->port.lid;
	mine->rkey = e->recv_mr->rkey;
	mine->recv_buf = (uintptr_t)e->recv_buf;
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (kind != LANE_XRC || e->has_xrc)
			make_lane(e, kind);
	pair_barrier(p);
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (e->lane[kind].qp) {
			connect_lane(e, &e->lane[kind]);
			lane_refill(&e->lane[kind]);
		}
	pair_barrier(p);
}

static void close_lane(struct lane *l)
{
	struct ibv_comp_channel *channel[2] = {l->scq->channel, l->rcq->channel};

	if (l->ah)
		ibv_destroy_ah(l->ah);
	ibv_destroy_qp(l->qp);
	if (l->target)
		ibv_destroy_qp(l->target);
	if (l->srq)
		ibv_destroy_srq(l->srq);
	ibv_destroy_cq(l->scq);
	ibv_destroy_cq(l->rcq);
	ibv_destroy_comp_channel(channel[0]);
	ibv_destroy_comp_channel(channel[1]);
}

void endpoint_close(struct endpoint *e)
{
	pair_barrier(e->pair);
	for (int kind = 0; kind < LANE_KINDS; kind++)
		if (e->lane[kind].qp)
			close_lane(&e->lane[kind]);
	if (e->xrcd)
		ibv_close_xrcd(e->xrcd);
	ibv_dereg_mr(e->send_mr);
	ibv_dereg_mr(e->recv_mr);
	ibv_dealloc_pd(e->pd);
	if (ibv_close_device(e->ctx))
		die("the device can't be closed: %s", strerror(errno));
}

static void fill(uint8_t *buf, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		buf[i] = (uint8_t)(seed >> 24);
	}
}

static void check_one(struct endpoint *e, struct lane *l, enum ibv_wr_opcode op, int sender)
{
	uint32_t len = l->kind == LANE_UD ? 8 : e->size < CHECK_BYTES ? e->size : CHECK_BYTES;
	uint32_t seed = (uint32_t)l->kind * 16 + (uint32_t)op * 2 + (uint32_t)sender;
	uint8_t *arrived = e->recv_buf + (l->kind == LANE_UD ? LANE_GRH : 0);

	if (e->pair->rank == sender) {
		fill(e->send_buf, len, seed);
		lane_send(l, op, len, true);
		lane_flush(l);
	} else if (op == IBV_WR_SEND) {
		lane_take(l, 1, true);
		lane_refill(l);
	}
	pair_barrier(e->pair);
	if (e->pair->rank != sender) {
		fill(e->send_buf, len, seed);
		if (memcmp(e->send_buf, arrived, len))
			die("%s changed data on its way; nothing was measured", lane_name[l->kind]);
	}
	pair_barrier(e->pair);
}

void endpoint_check(struct endpoint *e)
{
	for (int kind = 0; kind < LANE_KINDS; kind++) {
		struct lane *l = &e->lane[kind];

		for (int sender = 0; l->qp && sender < 2; sender++) {
			check_one(e, l, IBV_WR_SEND, sender);
			if (kind != LANE_UD)
				check_one(e, l, IBV_WR_RDMA_WRITE, sender);
		}
	}
}
