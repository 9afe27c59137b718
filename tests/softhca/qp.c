/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.c - see qp.h.
 */
#include "qp.h"

#include <sched.h>

#include "check.h"
#include "work.h"

struct t_params t_params(const struct t_dev *d)
{
	return (struct t_params){.port_num = d->port_num,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
				 .qkey = T_QKEY,
				 .mtu = d->port.active_mtu,
				 .max_rd_atomic = 16,
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 12,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .sq_psn = 0x123456,
				 .rq_psn = 0x123456,
				 .grh = d->roce,
				 .sgid_index = d->gid_index};
}

static struct ibv_cq *make_cq(struct t_dev *d, int depth)
{
	struct ibv_cq *cq = ibv_create_cq(d->ctx, depth, NULL, NULL, 0);

	t_true(cq, "ibv_create_cq of %d: %s", depth, strerror(errno));
	return cq;
}

static void drop_cqs(struct t_qp *q)
{
	if (q->own_scq)
		t_ok(ibv_destroy_cq(q->scq));
	if (q->own_rcq)
		t_ok(ibv_destroy_cq(q->rcq));
}

struct t_qp *t_qp_try(struct t_dev *d, const struct t_spec *spec)
{
	static const struct ibv_qp_cap cap = {16, 16, 4, 4, 0};
	static const struct t_spec none;
	const struct t_spec *s = spec ? spec : &none;
	struct t_qp *q = calloc(1, sizeof(*q));
	struct ibv_qp_init_attr_ex a = {.cap = s->cap, .sq_sig_all = s->sq_sig_all};
	int depth = s->cq_depth ? s->cq_depth : 64;

	t_true(q, "out of memory");
	q->dev = d;
	q->type = s->type ? s->type : IBV_QPT_RC;
	if (!memcmp(&a.cap, &none.cap, sizeof(a.cap)))
		a.cap = cap;
	a.qp_type = q->type;
	if (q->type == IBV_QPT_XRC_RECV) {
		a.cap = none.cap;
		a.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		a.xrcd = s->xrcd;
	} else {
		q->own_scq = !s->scq;
		q->own_rcq = !s->rcq;
		q->scq = s->scq ? s->scq : make_cq(d, depth);
		q->rcq = s->rcq ? s->rcq : make_cq(d, depth);
		a.comp_mask = IBV_QP_INIT_ATTR_PD;
		a.pd = s->pd ? s->pd : d->pd;
		a.send_cq = q->scq;
		a.recv_cq = q->rcq;
		a.srq = s->srq;
	}
	if (q->type == IBV_QPT_XRC_SEND) {
		a.recv_cq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	}
	if (s->send_ops) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = s->send_ops;
	}
	q->qp = ibv_create_qp_ex(d->ctx, &a);
	if (!q->qp) {
		int err = errno;

		drop_cqs(q);
		free(q);
		errno = err;
		return NULL;
	}
	q->cap = a.cap;
	if (s->send_ops)
		q->qpx = ibv_qp_to_qp_ex(q->qp);
	return q;
}

struct t_qp *t_qp(struct t_dev *d, const struct t_spec *spec)
{
	struct t_qp *q = t_qp_try(d, spec);

	t_true(q, "creating a QP: %s", strerror(errno));
	return q;
}

void t_qp_free(struct t_qp *q)
{
	t_ok(ibv_destroy_qp(q->qp));
	drop_cqs(q);
	free(q);
}

struct t_addr t_addr(const struct t_qp *q)
{
	return (struct t_addr){.lid = q->dev->port.lid, .qpn = q->qp->qp_num, .gid = q->dev->gid};
}

int t_attr_init(enum ibv_qp_type type, const struct t_params *p, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_INIT;
	attr->pkey_index = p->pkey_index;
	attr->port_num = p->port_num;
	if (type == IBV_QPT_UD) {
		attr->qkey = p->qkey;
		return mask | IBV_QP_QKEY;
	}
	attr->qp_access_flags = p->access;
	if (type == IBV_QPT_UC)
		attr->qp_access_flags &= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return mask | IBV_QP_ACCESS_FLAGS;
}

static struct ibv_ah_attr path(const struct t_params *p, const struct t_addr *peer)
{
	struct ibv_ah_attr ah = {.dlid = peer->lid, .port_num = p->port_num, .is_global = p->grh};

	if (p->grh) {
		ah.grh.dgid = peer->gid;
		ah.grh.hop_limit = 1;
		ah.grh.sgid_index = p->sgid_index;
	}
	return ah;
}

int t_attr_rtr(enum ibv_qp_type type, const struct t_params *p, const struct t_addr *peer,
	       struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTR;
	if (type == IBV_QPT_UD)
		return mask;
	attr->ah_attr = path(p, peer);
	attr->path_mtu = p->mtu;
	attr->dest_qp_num = peer->qpn;
	attr->rq_psn = p->rq_psn;
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV) {
		attr->max_dest_rd_atomic = p->max_dest_rd_atomic;
		attr->min_rnr_timer = p->min_rnr_timer;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return mask;
}

int t_attr_rts(enum ibv_qp_type type, const struct t_params *p, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = IBV_QPS_RTS;
	attr->sq_psn = p->sq_psn;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
		attr->retry_cnt = p->retry_cnt;
		attr->rnr_retry = p->rnr_retry;
		attr->max_rd_atomic = p->max_rd_atomic;
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV) {
		attr->timeout = p->timeout;
		mask |= IBV_QP_TIMEOUT;
	}
	return mask;
}

void t_to_init(struct t_qp *q, const struct t_params *p)
{
	struct t_params d = t_params(q->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_init(q->type, p ? p : &d, &attr);

	t_ok(ibv_modify_qp(q->qp, &attr, mask));
}

void t_to_rtr(struct t_qp *q, const struct t_params *p, const struct t_addr *peer)
{
	struct t_params d = t_params(q->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_rtr(q->type, p ? p : &d, peer, &attr);

	t_ok(ibv_modify_qp(q->qp, &attr, mask));
}

void t_to_rts(struct t_qp *q, const struct t_params *p)
{
	struct t_params d = t_params(q->dev);
	struct ibv_qp_attr attr;
	int mask = t_attr_rts(q->type, p ? p : &d, &attr);

	t_ok(ibv_modify_qp(q->qp, &attr, mask));
}

int t_to_state(struct t_qp *q, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
}

void t_up(struct t_qp *q, const struct t_params *p, const struct t_addr *peer)
{
	t_to_init(q, p);
	t_to_rtr(q, p, peer);
	t_to_rts(q, p);
}

void t_connect(struct t_qp *a, struct t_qp *b, const struct t_params *p)
{
	struct t_addr aa = t_addr(a), ab = t_addr(b);

	t_up(a, p, &ab);
	if (a != b)
		t_up(b, p, &aa);
}

enum ibv_qp_state t_state(struct t_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	t_ok(ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void t_await_state(struct t_qp *q, enum ibv_qp_state state)
{
	uint64_t t0 = t_now();

	while (t_state(q) != state) {
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "QP 0x%x is in state %d, not %d",
		       q->qp->qp_num, t_state(q), state);
		sched_yield();
	}
}

struct t_pair t_pair(struct t_dev *d, const struct t_spec *spec, const struct t_params *p,
		     size_t size)
{
	struct t_pair r = {.dev = d, .a = t_qp(d, spec), .b = t_qp(d, spec)};

	t_connect(r.a, r.b, p);
	r.ba = t_buf(d, size);
	r.bb = t_buf(d, size);
	return r;
}

void t_pair_free(struct t_pair *p)
{
	t_qp_free(p->a);
	t_qp_free(p->b);
	t_buf_free(&p->ba);
	t_buf_free(&p->bb);
	t_drain_events(p->dev->ctx);
}

struct ibv_ah *t_ah(struct t_dev *d, const struct t_addr *peer, bool grh)
{
	struct t_params p = t_params(d);
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	p.grh |= grh;
	attr = path(&p, peer);
	ah = ibv_create_ah(d->pd, &attr);
	t_true(ah, "ibv_create_ah: %s", strerror(errno));
	return ah;
}
