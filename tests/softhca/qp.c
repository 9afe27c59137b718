/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.c - see qp.h.
 */
#include "qp.h"

#include <sched.h>

#include "check.h"
#include "work.h"

struct t_params t_params(const struct t_dev *dev)
{
	return (struct t_params){.port_num = dev->port_num,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
				 .qkey = T_QKEY,
				 .mtu = dev->port.active_mtu,
				 .max_rd_atomic = 16,
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 12,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .sq_psn = 0x123456,
				 .rq_psn = 0x123456,
				 .grh = dev->roce,
				 .sgid_index = dev->gid_index};
}

struct t_params t_params_quick(const struct t_dev *dev, uint8_t retry_cnt)
{
	struct t_params params = t_params(dev);

	params.timeout = 8;
	params.retry_cnt = retry_cnt;
	return params;
}

static struct ibv_cq *make_cq(struct t_dev *dev, int depth)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, depth, NULL, NULL, 0);

	t_true(cq, "ibv_create_cq of %d: %s", depth, strerror(errno));
	return cq;
}

static void drop_cqs(struct t_qp *qp)
{
	if (qp->own_scq)
		t_ok(ibv_destroy_cq(qp->scq));
	if (qp->own_rcq)
		t_ok(ibv_destroy_cq(qp->rcq));
}

struct t_qp *t_qp_try(struct t_dev *dev, const struct t_spec *spec)
{
	static const struct ibv_qp_cap cap = {16, 16, 4, 4, 0};
	static const struct t_spec none;
	const struct t_spec *want = spec ? spec : &none;
	struct t_qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp_init_attr_ex attr = {.cap = want->cap, .sq_sig_all = want->sq_sig_all};
	int depth = want->cq_depth ? want->cq_depth : 64;

	t_true(qp, "out of memory");
	qp->dev = dev;
	qp->type = want->type ? want->type : IBV_QPT_RC;
	if (!memcmp(&attr.cap, &none.cap, sizeof(attr.cap)))
		attr.cap = cap;
	attr.qp_type = qp->type;
	if (qp->type == IBV_QPT_XRC_RECV) {
		attr.cap = none.cap;
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = want->xrcd;
	} else {
		qp->own_scq = !want->scq;
		qp->own_rcq = !want->rcq;
		qp->scq = want->scq ? want->scq : make_cq(dev, depth);
		qp->rcq = want->rcq ? want->rcq : make_cq(dev, depth);
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.pd = want->pd ? want->pd : dev->pd;
		attr.send_cq = qp->scq;
		attr.recv_cq = qp->rcq;
		attr.srq = want->srq;
	}
	if (qp->type == IBV_QPT_XRC_SEND) {
		attr.recv_cq = NULL;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	if (want->send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = want->send_ops;
	}
	qp->qp = ibv_create_qp_ex(dev->ctx, &attr);
	if (!qp->qp) {
		int err = errno;

		drop_cqs(qp);
		free(qp);
		errno = err;
		return NULL;
	}
	qp->cap = attr.cap;
	if (want->send_ops)
		qp->qpx = ibv_qp_to_qp_ex(qp->qp);
	return qp;
}

struct t_qp *t_qp(struct t_dev *dev, const struct t_spec *spec)
{
	struct t_qp *qp = t_qp_try(dev, spec);

	t_true(qp, "creating a QP: %s", strerror(errno));
	return qp;
}

void t_qp_free(struct t_qp *qp)
{
	t_ok(ibv_destroy_qp(qp->qp));
	drop_cqs(qp);
	free(qp);
}

struct t_addr t_addr(const struct t_qp *qp)
{
	return (struct t_addr){
		.lid = qp->dev->port.lid, .qpn = qp->qp->qp_num, .gid = qp->dev->gid};
}

int t_attr_init(enum ibv_qp_type type, const struct t_params *params, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_INIT;
	attr->pkey_index = params->pkey_index;
	attr->port_num = params->port_num;
	if (type == IBV_QPT_UD) {
		attr->qkey = params->qkey;
		return mask | IBV_QP_QKEY;
	}
	attr->qp_access_flags = params->access;
	if (type == IBV_QPT_UC)
		attr->qp_access_flags &= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return mask | IBV_QP_ACCESS_FLAGS;
}

static struct ibv_ah_attr path(const struct t_params *params, const struct t_addr *peer)
{
	struct ibv_ah_attr ah = {
		.dlid = peer->lid, .port_num = params->port_num, .is_global = params->grh};

	if (params->grh) {
		ah.grh.dgid = peer->gid;
		ah.grh.hop_limit = 1;
		ah.grh.sgid_index = params->sgid_index;
	}
	return ah;
}

int t_attr_rtr(enum ibv_qp_type type, const struct t_params *params, const struct t_addr *peer,
	       struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTR;
	if (type == IBV_QPT_UD)
		return mask;
	attr->ah_attr = path(params, peer);
	attr->path_mtu = params->mtu;
	attr->dest_qp_num = peer->qpn;
	attr->rq_psn = params->rq_psn;
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV) {
		attr->max_dest_rd_atomic = params->max_dest_rd_atomic;
		attr->min_rnr_timer = params->min_rnr_timer;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return mask;
}

int t_attr_rts(enum ibv_qp_type type, const struct t_params *params, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTS;
	attr->sq_psn = params->sq_psn;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
		attr->retry_cnt = params->retry_cnt;
		attr->rnr_retry = params->rnr_retry;
		attr->max_rd_atomic = params->max_rd_atomic;
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV) {
		attr->timeout = params->timeout;
		mask |= IBV_QP_TIMEOUT;
	}
	return mask;
}

void t_to_init(struct t_qp *qp, const struct t_params *params)
{
	struct t_params d = t_params(qp->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_init(qp->type, params ? params : &d, &attr);

	t_ok(ibv_modify_qp(qp->qp, &attr, mask));
}

void t_to_rtr(struct t_qp *qp, const struct t_params *params, const struct t_addr *peer)
{
	struct t_params d = t_params(qp->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_rtr(qp->type, params ? params : &d, peer, &attr);

	t_ok(ibv_modify_qp(qp->qp, &attr, mask));
}

void t_to_rts(struct t_qp *qp, const struct t_params *params)
{
	struct t_params d = t_params(qp->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_rts(qp->type, params ? params : &d, &attr);

	t_ok(ibv_modify_qp(qp->qp, &attr, mask));
}

int t_to_state(struct t_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

void t_up(struct t_qp *qp, const struct t_params *params, const struct t_addr *peer)
{
	t_to_init(qp, params);
	t_to_rtr(qp, params, peer);
	t_to_rts(qp, params);
}

void t_connect(struct t_qp *a, struct t_qp *b, const struct t_params *params)
{
	struct t_addr aa = t_addr(a), ab = t_addr(b);

	t_up(a, params, &ab);
	if (a != b)
		t_up(b, params, &aa);
}

enum ibv_qp_state t_state(struct t_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	t_ok(ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void t_await_state(struct t_qp *qp, enum ibv_qp_state state)
{
	uint64_t t0 = t_now();

	while (t_state(qp) != state) {
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "QP 0x%x is in state %d, not %d",
		       qp->qp->qp_num, t_state(qp), state);
		sched_yield();
	}
}

struct t_pair t_pair(struct t_dev *dev, const struct t_spec *spec, const struct t_params *params,
		     size_t size)
{
	struct t_pair r = {.dev = dev, .a = t_qp(dev, spec), .b = t_qp(dev, spec)};

	t_connect(r.a, r.b, params);
	r.ba = t_buf(dev, size);
	r.bb = t_buf(dev, size);
	return r;
}

void t_pair_free(struct t_pair *pair)
{
	t_qp_free(pair->a);
	t_qp_free(pair->b);
	t_buf_free(&pair->ba);
	t_buf_free(&pair->bb);
	t_drain_events(pair->dev->ctx);
}

struct ibv_ah *t_ah(struct t_dev *dev, const struct t_addr *peer, bool grh)
{
	struct t_params p = t_params(dev);
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	p.grh |= grh;
	attr = path(&p, peer);
	ah = ibv_create_ah(dev->pd, &attr);
	t_true(ah, "ibv_create_ah: %s", strerror(errno));
	return ah;
}
