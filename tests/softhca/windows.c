/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * windows.c - memory windows, and a place to bind them at.
 */
#include "windows.h"

struct ibv_mw *t_mw(struct t_dev *dev, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev->pd, type);

	t_true(mw, "ibv_alloc_mw: %s", strerror(errno));
	t_true(mw->context == dev->ctx && mw->pd == dev->pd && mw->type == type, "fields");
	return mw;
}

struct t_place t_place(struct t_dev *dev, int access)
{
	return (struct t_place){.pair = t_pair(dev, NULL, NULL, T_REGION),
				.region = t_buf_in(dev->pd, T_REGION, access)};
}

void t_place_free(struct t_place *place)
{
	t_pair_free(&place->pair);
	t_buf_free(&place->region);
}

struct ibv_mw_bind_info t_part(const struct t_buf *region, unsigned access)
{
	return (struct ibv_mw_bind_info){.mr = region->mr,
					 .addr = (uintptr_t)region->addr + T_PART,
					 .length = T_PART,
					 .mw_access_flags = access};
}

enum ibv_wc_status t_bind_1(struct t_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
	struct ibv_wc wc;

	t_ok(ibv_bind_mw(qp->qp, mw, &bind));
	t_poll(qp->scq, &wc, 1);
	t_eq(wc.wr_id, 7);
	if (wc.status == IBV_WC_SUCCESS)
		t_eq(wc.opcode, IBV_WC_BIND_MW);
	return wc.status;
}

enum ibv_wc_status t_bind_2(struct t_qp *qp, struct ibv_mw *mw, uint32_t key,
			    struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_BIND_MW, 8, NULL, 0);
	struct ibv_wc wc;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = key;
	wr.bind_mw.bind_info = info;
	t_post(qp, &wr);
	t_poll(qp->scq, &wc, 1);
	t_eq(wc.wr_id, 8);
	if (wc.status == IBV_WC_SUCCESS)
		t_eq(wc.opcode, IBV_WC_BIND_MW);
	return wc.status;
}

enum ibv_wc_status t_invalidate(struct t_qp *qp, uint32_t key)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_LOCAL_INV, 9, NULL, 0);
	struct ibv_wc wc;

	wr.invalidate_rkey = key;
	t_post(qp, &wr);
	t_poll(qp->scq, &wc, 1);
	t_eq(wc.wr_id, 9);
	if (wc.status == IBV_WC_SUCCESS)
		t_eq(wc.opcode, IBV_WC_LOCAL_INV);
	return wc.status;
}

enum ibv_wc_status t_try(struct t_pair *p, enum ibv_wr_opcode op, uint64_t addr, uint32_t key,
			 size_t n)
{
	struct ibv_sge sge = t_sge(&p->ba, 0, n);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, addr, key);
	struct ibv_wc wc;

	t_fill(p->ba.addr, n, 77);
	t_post(p->a, &wr);
	t_poll(p->a->scq, &wc, 1);
	return wc.status;
}

void t_mend(struct t_pair *p)
{
	struct ibv_wc wc;

	t_await_state(p->b, t_state(p->b));
	t_ok(t_to_state(p->a, IBV_QPS_RESET));
	t_ok(t_to_state(p->b, IBV_QPS_RESET));
	while (ibv_poll_cq(p->b->rcq, 1, &wc) > 0)
		;
	t_connect(p->a, p->b, NULL);
}

void t_refused(struct t_pair *p, enum ibv_wr_opcode op, uint64_t addr, uint32_t key, size_t n)
{
	t_eq(t_try(p, op, addr, key, n), IBV_WC_REM_ACCESS_ERR);
	t_mend(p);
}
