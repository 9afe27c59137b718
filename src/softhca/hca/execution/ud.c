/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.c - datagrams: to one QP, or to all QPs of a multicast group. A datagram that can't be
 * delivered is dropped, and the sender isn't told (IBA 9.8.3).
 */
#include <string.h>

#include "grh.h"
#include "hca/fault.h"
#include "hca/memory/mr.h"
#include "link.h"
#include "req.h"

#define GRH_BYTES     40u
#define MULTICAST_QPN 0xffffffu /* destination QPN of a datagram to a group (IBA 10.5.2) */

/* A datagram under way. */
struct datagram {
	struct shca_qp *qp;
	const struct shca_swqe *w;
	_Alignas(struct ibv_grh) uint8_t bytes[GRH_BYTES + 4096];
	uint32_t qkey;
	uint64_t arrives_at; /* link model: arrival at the port that the datagram is being delivered
				to */
};

static void make_grh(struct datagram *d)
{
	if (d->w->ud.global)
		shca_grh_make(d->qp->ctx->hca, &d->w->ud, d->w->length, (struct ibv_grh *)d->bytes);
	else
		memset(d->bytes, 0, GRH_BYTES);
}

static void drop(struct shca_hca *hca)
{
	shca_count(hca, SHCA_C_UD_DROPPED, 1);
}

/* Writes the datagram into a claimed receive and completes it. */
static void put(struct datagram *d, struct shca_target *t, uint32_t slot)
{
	const struct shca_swqe *w = d->w;
	uint32_t len = GRH_BYTES + w->length;
	struct shca_copy c = {.src_proc = shca_self.slot,
			      .dst_proc = t->owner,
			      .nsrc = 1,
			      .src = {{.addr = (uintptr_t)d->bytes, .len = len}}};
	struct shca_cqe cqe = {
		.visible_at = d->arrives_at,
		.rsc = t->srq ? t->srq_idx : t->qp_idx,
		.wqe = slot,
		.byte_len = len,
		.imm = w->imm,
		.qp_num = shca_table_number(t->qp),
		.srqn = t->srq ? shca_table_number(t->srq) : 0,
		.src_qp = d->qp->ibv.qp_base.qp_num,
		.slid = d->qp->ctx->hca->lid,
		.opcode = IBV_WC_RECV,
		.wc_flags = (uint8_t)((w->ud.global ? IBV_WC_GRH : 0) |
				      (w->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0)),
		.flags = (uint8_t)(SHCA_CQE_RECV | (t->srq ? SHCA_CQE_SRQ : 0) |
				   (w->flags & IBV_SEND_SOLICITED ? SHCA_CQE_SOLICITED : 0) |
				   shca_grh_sl(d->qp->ctx->hca, &w->ud) << 4),
	};

	/* After an error the receive is completed in error, and the QP has failed. */
	if (shca_resp_scatter(t, d->qp, slot, len, c.dst, &c.ndst) != SHCA_ACK)
		return;
	if (shca_cq_carries(t->cq, &c, len, &cqe.bounce))
		cqe.payload = (uint16_t)len;
	else if (shca_mem_copy(&c, 0, len)) {
		shca_resp_receive_failed(t, d->qp, slot, IBV_WC_LOC_PROT_ERR);
		return;
	}
	if (cqe.visible_at || shca_opt(&shca_self.fabric, SHCA_O_REORDER))
		cqe.visible_at = shca_resp_in_order(&t->qp->last_visible,
						    (cqe.visible_at ? cqe.visible_at : shca_now()) +
							    shca_fault_reorder_delay());
	if (shca_cq_produce(t->hca, t->cq, &cqe, c.src))
		shca_qp_fail(t->hca, t->qp, IBV_EVENT_QP_FATAL);
	shca_count(t->hca, SHCA_C_RX_PACKETS, 1);
	shca_count(t->hca, SHCA_C_RX_BYTES, w->length);
}

/* Delivers a datagram to one QP, or drops it. Returns false if no receive is posted and, under
 * the link model, the datagram has not arrived yet. */
static bool deliver(struct datagram *d, unsigned hca_idx, uint32_t qpn)
{
	struct shca_fabric *f = &shca_self.fabric;
	struct shca_target t = {.hca = &f->hdr->hcas[hca_idx]};
	struct shca_qp_entry *e = shca_table_find(f, t.hca, SHCA_QP, qpn, &t.qp_idx);
	enum ibv_qp_state s = e ? shca_qp_state(e) : IBV_QPS_RESET;
	uint32_t slot;

	if (!e || e->type != IBV_QPT_UD || s < IBV_QPS_RTR || s == IBV_QPS_ERR ||
	    (!d->qp->cur.started && shca_fault_hits(SHCA_O_FAULT_DROP, t.hca))) {
		drop(t.hca);
		return true;
	}
	if (((e->pkey ^ d->qp->entry->pkey) & 0x7fff) ||
	    !((e->pkey | d->qp->entry->pkey) & 0x8000)) {
		shca_count(t.hca, SHCA_C_PKEY_VIOLATIONS, 1);
		drop(t.hca);
		return true;
	}
	if (e->qkey != d->qkey) {
		shca_count(t.hca, SHCA_C_QKEY_VIOLATIONS, 1);
		drop(t.hca);
		return true;
	}
	t.qp = e;
	shca_resp_bind(&t);
	if (shca_resp_claim(&t, &slot) == SHCA_ACK) {
		put(d, &t, slot);
		return true;
	}
	if (d->qp->cur.first_at && d->qp->cur.first_at > shca_now())
		return false;
	drop(t.hca);
	return true;
}

static void deliver_multicast(struct datagram *d)
{
	struct shca_fabric_header *h = shca_self.fabric.hdr;
	uint64_t at[SHCA_MAX_HCAS] = {0};

	if (d->w->ud.qpn != MULTICAST_QPN) {
		drop(d->qp->ctx->hca);
		return;
	}
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *m = &h->mcast[i];
		uint32_t qpn = atomic_load_explicit(&m->qpn, memory_order_acquire);
		unsigned hca = atomic_load_explicit(&m->hca, memory_order_relaxed);
		bool self = qpn == d->qp->ibv.qp_base.qp_num && hca == d->qp->ctx->hca_idx;

		if (!qpn || hca >= h->nhcas || memcmp(&m->gid, &d->w->ud.dgid, sizeof(m->gid)))
			continue;
		if (self && (d->qp->entry->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
			continue;
		/* A port gets the datagram once, however many QPs behind it are members. */
		if (shca_link_on() && !at[hca]) {
			uint64_t first = d->qp->cur.first_at;

			at[hca] = shca_link_arrive(&h->hcas[hca], d->w->length, &first);
		}
		d->arrives_at = at[hca];
		deliver(d, hca, qpn);
	}
}

/* Fixes, once, when a datagram arrives under the link model. For a multicast group this is done
 * for each port at delivery. */
static void schedule(struct shca_qp *qp, const struct shca_swqe *w)
{
	struct shca_hca *hcas = shca_self.fabric.hdr->hcas;
	struct shca_progress *p = &qp->cur;

	if (!shca_link_on() || p->first_at)
		return;
	p->first_at =
		shca_link_leave(qp->ctx->hca, w->length,
				w->posted_at > qp->link_floor ? w->posted_at : qp->link_floor);
	p->arrives_at = w->ud.hca < 0 ? p->first_at
				      : shca_link_arrive(&hcas[w->ud.hca], w->length, &p->first_at);
}

enum ibv_wc_status shca_ud_send(struct shca_qp *qp, struct shca_swqe *w, const struct shca_run *src,
				uint64_t *when)
{
	struct shca_progress *p = &qp->cur;
	struct datagram d = {.qp = qp, .w = w};

	if (w->length > 256u << shca_opt(&shca_self.fabric, SHCA_O_MTU))
		return IBV_WC_LOC_LEN_ERR;
	/* A Q_Key with the top bit stands for the QP's own (IBA 10.2.5). */
	d.qkey = w->ud.qkey & 0x80000000u ? qp->entry->qkey : w->ud.qkey;
	make_grh(&d);
	shca_mem_gather(d.bytes + GRH_BYTES, src, w->length);
	schedule(qp, w);
	d.arrives_at = p->arrives_at;
	/* A datagram to a group is delivered when it has arrived: until then members may post
	 * their receives. */
	if ((w->ud.multicast && p->first_at && p->first_at > shca_now()) ||
	    (!w->ud.multicast && w->ud.hca >= 0 && !deliver(&d, (unsigned)w->ud.hca, w->ud.qpn))) {
		p->started = !w->ud.multicast;
		*when = p->first_at;
		return IBV_WC_SUCCESS;
	}
	if (w->ud.multicast)
		deliver_multicast(&d);
	else if (w->ud.hca < 0)
		drop(qp->ctx->hca);
	shca_add(&qp->entry->counters[SHCA_C_SENDS], 1);
	shca_add(&qp->entry->counters[SHCA_C_TX_PACKETS], 1);
	shca_add(&qp->entry->counters[SHCA_C_TX_BYTES], w->length);
	return IBV_WC_SUCCESS;
}
