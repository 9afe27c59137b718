/* SPDX-License-Identifier: BSD-3-Clause */
/* ud.c - see ud.h. */
#include "ud.h"

const struct t_spec ud_spec = {.type = IBV_QPT_UD, .cap = {32, 32, 4, 4, 64}};

struct ud_way ud_way(struct t_dev *dev, bool grh)
{
	struct ud_way w = {.p = t_pair(dev, &ud_spec, NULL, 1 << 16)};
	struct t_addr ab = t_addr(w.p.b);

	w.ah = t_ah(dev, &ab, grh);
	w.to = t_sge(&w.p.bb, 0, 8192);
	return w;
}

void ud_way_free(struct ud_way *way)
{
	t_ok(ibv_destroy_ah(way->ah));
	t_pair_free(&way->p);
}

struct ibv_send_wr ud_wr(struct ud_way *way, uint64_t id, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, id, sge, 1);

	wr.wr.ud.ah = way->ah;
	wr.wr.ud.remote_qpn = way->p.b->qp->qp_num;
	wr.wr.ud.remote_qkey = T_QKEY;
	return wr;
}

void ud_marker(struct ud_way *way, uint64_t recv_id)
{
	struct ibv_sge one = t_sge(&way->p.ba, 60000, 3);
	struct ibv_send_wr wr = ud_wr(way, 777, &one);

	t_post(way->p.a, &wr);
	t_eq(t_next(way->p.b->rcq, recv_id, IBV_WC_SUCCESS).byte_len, T_GRH + 3);
	t_next(way->p.a->scq, 777, IBV_WC_SUCCESS);
}
