/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_multicast.c - multicast groups of UD. */
#include "ud.h"

#define MLID 0xc012

/* Makes a QP of the group, with two receives. */
static struct t_qp *member(struct t_dev *dev, struct ud_way *way, const union ibv_gid *group)
{
	struct t_qp *qp = t_qp(dev, &ud_spec);
	struct t_addr self = t_addr(qp);

	t_up(qp, NULL, &self);
	t_ok(ibv_attach_mcast(qp->qp, group, MLID));
	t_recv(qp, 10, &way->to, 1);
	t_recv(qp, 11, &way->to, 1);
	return qp;
}

static void heard(struct ud_way *way, struct t_qp *qp, const union ibv_gid *group)
{
	struct ibv_wc wc = t_next(qp->rcq, 10, IBV_WC_SUCCESS);

	t_eq(wc.byte_len, T_GRH + 50);
	t_eq(wc.src_qp, way->p.a->qp->qp_num);
	t_true(wc.wc_flags & IBV_WC_GRH, "multicast without GRH");
	t_check(way->p.bb.addr + T_GRH, 50, 8);
	t_ok(memcmp(way->p.bb.addr + 24, group->raw, 16));
}

void ud_test_multicast(void **state)
{
	union ibv_gid group = {
		.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}};
	struct t_dev *dev = *state;
	struct ibv_ah_attr a = {.dlid = MLID, .port_num = 1, .is_global = 1};
	struct ud_way w = ud_way(dev, dev->roce);
	struct t_qp *qp[3];
	struct t_spec rc = {.type = IBV_QPT_RC};
	struct t_qp *no = t_qp(dev, &rc);
	struct ibv_sge one = t_sge(&w.p.ba, 0, 50);
	struct ibv_send_wr wr = ud_wr(&w, 1, &one);
	struct ibv_ah *ah;

	a.grh.dgid = group;
	a.grh.hop_limit = 1;
	a.grh.sgid_index = dev->gid_index;
	ah = ibv_create_ah(dev->pd, &a);
	t_true(ah, "ibv_create_ah of a group: %s", strerror(errno));
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	t_rc(ibv_attach_mcast(no->qp, &group, MLID), EINVAL);
	t_rc(ibv_attach_mcast(w.p.b->qp, &dev->gid, MLID), EINVAL);
	for (int i = 0; i < 3; i++)
		qp[i] = member(dev, &w, &group);
	t_recv(w.p.b, 12, &w.to, 1);
	t_fill(w.p.ba.addr, 50, 8);
	wr.wr.ud.remote_qpn = qp[0]->qp->qp_num; /* a group isn't addressed this way */
	t_post(w.p.a, &wr);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	t_none(qp[0]->rcq, 2);
	wr.wr.ud.remote_qpn = 0xffffff;
	t_post(w.p.a, &wr);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++)
		heard(&w, qp[i], &group);
	t_rc(ibv_destroy_qp(qp[0]->qp), EBUSY);
	t_ok(ibv_detach_mcast(qp[0]->qp, &group, MLID));
	t_rc(ibv_detach_mcast(qp[0]->qp, &group, MLID), EINVAL);
	t_post(w.p.a, &wr);
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	for (int i = 1; i < 3; i++) {
		t_next(qp[i]->rcq, 11, IBV_WC_SUCCESS);
		t_none(qp[i]->rcq, 2);
		t_ok(ibv_detach_mcast(qp[i]->qp, &group, MLID));
	}
	t_none(qp[0]->rcq, 2);
	t_none(w.p.b->rcq, 2);
	t_post(w.p.a, &wr); /* the group has no member */
	t_next(w.p.a->scq, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++)
		t_qp_free(qp[i]);
	t_qp_free(no);
	t_ok(ibv_destroy_ah(ah));
	ud_way_free(&w);
}
