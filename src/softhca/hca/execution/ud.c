/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.c - datagrams: to one QP, or to all QPs of a multicast group. A datagram that can't be
 * delivered is dropped, and the sender isn't told (IBA 9.8.3).
 */
#include <errno.h>
#include <string.h>

#include "grh.h"
#include "hca/fault.h"
#include "hca/memory/mr.h"
#include "hca/object_cache.h"
#include "link.h"
#include "req.h"
#include "ud.h"

#define GRH_BYTES     40u
#define MULTICAST_QPN 0xffffffu /* destination QPN of a datagram to a group (IBA 10.5.2) */

/* A datagram under way. */
struct datagram {
	struct shca_qp *qp;
	const struct shca_swqe *w;
	uint8_t *bytes; /* GRH_BYTES, then the data */
	uint32_t qkey;
	uint64_t arrives_at; /* link model: arrival at the port that the datagram is being delivered
				to */
};

static bool has_imm(const struct shca_swqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND_WITH_IMM;
}

static void make_grh(struct datagram *datagram)
{
	const struct shca_swqe *wqe = datagram->w;

	if (wqe->ud.global)
		shca_grh_make(datagram->qp->ctx->hca, &wqe->ud,
			      shca_grh_behind(wqe->length, has_imm(wqe)),
			      (struct ibv_grh *)(void *)datagram->bytes);
	else
		memset(datagram->bytes, 0, GRH_BYTES);
}

static void drop(struct shca_hca *hca)
{
	shca_count(hca, SHCA_C_UD_DROPPED, 1);
}

/* Acts on an error of copying a datagram into a claimed receive. If the target's process doesn't
 * answer (a double copy), the datagram alone is lost. */
static void not_copied(struct datagram *datagram, struct shca_target *target, uint32_t slot,
		       int error)
{
	if (error == -EREMOTEIO) {
		shca_resp_receive_failed(target, datagram->qp, slot, IBV_WC_LOC_PROT_ERR);
	} else {
		shca_resp_give_back(target, datagram->qp, slot);
		drop(target->hca);
	}
}

/* Writes the datagram into a claimed receive and completes it. */
static void put(struct datagram *datagram, struct shca_target *target, uint32_t slot)
{
	const struct shca_swqe *wqe = datagram->w;
	uint32_t len = GRH_BYTES + wqe->length;
	struct shca_copy *copy = &datagram->qp->copy;
	struct shca_cqe cqe = {
		.visible_at = datagram->arrives_at,
		.rsc = target->srq ? target->srq_idx : target->qp_idx,
		.wqe = slot,
		.byte_len = len,
		.imm = wqe->imm,
		.qp_num = shca_table_number(target->qp),
		.srqn = target->srq ? shca_table_number(target->srq) : 0,
		.src_qp = datagram->qp->ibv.qp_base.qp_num,
		.slid = datagram->qp->ctx->hca->lid,
		.opcode = IBV_WC_RECV,
		.wc_flags = (uint8_t)((wqe->ud.global ? IBV_WC_GRH : 0) |
				      (has_imm(wqe) ? IBV_WC_WITH_IMM : 0)),
		.flags = (uint8_t)(SHCA_CQE_RECV | (target->srq ? SHCA_CQE_SRQ : 0) |
				   (wqe->flags & IBV_SEND_SOLICITED ? SHCA_CQE_SOLICITED : 0) |
				   shca_grh_sl(datagram->qp->ctx->hca, &wqe->ud) << 4),
	};

	int error;

	copy->src_proc = shca_self.slot;
	copy->dst_proc = target->owner;
	copy->nsrc = 1;
	copy->src[0] = (struct shca_run){.addr = (uintptr_t)datagram->bytes, .len = len};
	/* After an error the receive is completed in error, and the QP has failed. */
	if (shca_resp_scatter(target, datagram->qp, slot, len, copy->dst, &copy->ndst) != SHCA_ACK)
		return;
	if (shca_cq_carries(target->cq, copy, len, &cqe.bounce))
		cqe.payload = (uint16_t)len;
	else if ((error = shca_mem_copy(copy, 0, len))) {
		not_copied(datagram, target, slot, error);
		return;
	}
	if (cqe.visible_at || shca_opt(&shca_self.fabric, SHCA_O_REORDER))
		cqe.visible_at = shca_resp_in_order(&target->qp->last_visible,
						    (cqe.visible_at ? cqe.visible_at : shca_now()) +
							    shca_fault_reorder_delay());
	if (shca_cq_produce(target->hca, target->cq, &cqe, copy->src))
		shca_qp_fail(target->hca, target->qp, IBV_EVENT_QP_FATAL);
	shca_count(target->hca, SHCA_C_RX_PACKETS, 1);
	shca_count(target->hca, SHCA_C_RX_BYTES, wqe->length);
}

/* Delivers a datagram to one QP, or drops it. Returns false if no receive is posted and, under
 * the link model, the datagram has not arrived yet. */
static bool deliver(struct datagram *datagram, unsigned hca_idx, uint32_t qpn)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_target target = {.hca = &fabric->hdr->hcas[hca_idx]};
	struct shca_qp_entry *entry =
		shca_table_find(fabric, target.hca, SHCA_QP, qpn, &target.qp_idx);
	enum ibv_qp_state s = entry ? shca_qp_state(entry) : IBV_QPS_RESET;
	uint32_t slot;

	if (!entry || entry->type != IBV_QPT_UD || s < IBV_QPS_RTR || s == IBV_QPS_ERR ||
	    (!datagram->qp->cur.started && shca_fault_draw(SHCA_O_FAULT_DROP, target.hca))) {
		drop(target.hca);
		return true;
	}
	if (!shca_resp_pkeys_match(entry->pkey, datagram->qp->entry->pkey)) {
		shca_count(target.hca, SHCA_C_PKEY_VIOLATIONS, 1);
		drop(target.hca);
		return true;
	}
	if (entry->qkey != datagram->qkey) {
		shca_count(target.hca, SHCA_C_QKEY_VIOLATIONS, 1);
		drop(target.hca);
		return true;
	}
	target.qp = entry;
	shca_resp_bind(&target);
	if (shca_resp_claim(&target, &slot) == SHCA_ACK) {
		put(datagram, &target, slot);
		return true;
	}
	if (datagram->qp->cur.first_at && datagram->qp->cur.first_at > shca_now())
		return false;
	drop(target.hca);
	return true;
}

/* Reads a membership. Returns true if it is one in that group. */
static bool read_member(const struct shca_mcast *mcast, const union ibv_gid *gid, uint32_t *qpn,
			unsigned *hca)
{
	bool same;

	*qpn = atomic_load_explicit(&mcast->qpn, memory_order_acquire);
	if (!*qpn)
		return false;
	*hca = atomic_load_explicit(&mcast->hca, memory_order_relaxed);
	same = !memcmp(&mcast->gid, gid, sizeof(*gid));
	/* The QP may have left since, and another one may have joined another group with this
	 * entry. */
	atomic_thread_fence(memory_order_acquire);
	return same && *hca < shca_self.fabric.hdr->nhcas &&
	       atomic_load_explicit(&mcast->qpn, memory_order_relaxed) == *qpn;
}

static void deliver_multicast(struct datagram *datagram)
{
	struct shca_fabric_header *hdr = shca_self.fabric.hdr;
	uint64_t at[SHCA_MAX_HCAS] = {0};

	if (datagram->w->ud.qpn != MULTICAST_QPN) {
		drop(datagram->qp->ctx->hca);
		return;
	}
	for (unsigned i = 0; i < SHCA_MAX_MCAST; i++) {
		uint32_t qpn;
		unsigned hca;
		bool self;

		if (!read_member(&hdr->mcast[i], &datagram->w->ud.dgid, &qpn, &hca))
			continue;
		self = qpn == datagram->qp->ibv.qp_base.qp_num && hca == datagram->qp->ctx->hca_idx;
		if (self && (datagram->qp->entry->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
			continue;
		/* A port gets the datagram once, however many QPs behind it are members. */
		if (shca_link_on() && !at[hca]) {
			uint64_t first = datagram->qp->cur.first_at;

			at[hca] = shca_link_arrive(datagram->qp->ctx->hca, &hdr->hcas[hca],
						   datagram->w->length, &first);
		}
		datagram->arrives_at = at[hca];
		deliver(datagram, hca, qpn);
	}
}

/* Fixes, once, when a datagram arrives under the link model. For a multicast group this is done
 * for each port at delivery. */
static void schedule(struct shca_qp *qp, const struct shca_swqe *wqe)
{
	struct shca_hca *from = qp->ctx->hca;
	struct shca_hca *to = wqe->ud.hca < 0 ? NULL : &shca_self.fabric.hdr->hcas[wqe->ud.hca];
	struct shca_progress *progress = &qp->cur;
	uint64_t departs;

	if (!shca_link_on() || progress->first_at)
		return;
	departs = shca_link_departs_at(qp, wqe) + shca_object_cache_use(from, SHCA_QP, qp->idx);
	progress->first_at = shca_link_leave(from, to, wqe->length, departs);
	progress->arrives_at = to ? shca_link_arrive(from, to, wqe->length, &progress->first_at)
				  : progress->first_at;
}

enum ibv_wc_status shca_ud_send(struct shca_qp *qp, struct shca_swqe *wqe,
				const struct shca_run *src, uint64_t *when)
{
	struct shca_progress *progress = &qp->cur;
	struct datagram datagram = {.qp = qp, .w = wqe, .bytes = qp->datagram};

	if (wqe->length > 256u << shca_opt(&shca_self.fabric, SHCA_O_MTU))
		return IBV_WC_LOC_LEN_ERR;
	datagram.qkey = shca_ud_qkey(qp, wqe);
	make_grh(&datagram);
	shca_mem_gather(datagram.bytes + GRH_BYTES, src, wqe->length);
	schedule(qp, wqe);
	datagram.arrives_at = progress->arrives_at;
	/* A datagram to a group is delivered when it has arrived: until then members may post
	 * their receives. */
	if ((wqe->ud.multicast && progress->first_at && progress->first_at > shca_now()) ||
	    (!wqe->ud.multicast && wqe->ud.hca >= 0 &&
	     !deliver(&datagram, (unsigned)wqe->ud.hca, wqe->ud.qpn))) {
		progress->started = !wqe->ud.multicast;
		*when = progress->first_at;
		return IBV_WC_SUCCESS;
	}
	if (wqe->ud.multicast)
		deliver_multicast(&datagram);
	else if (wqe->ud.hca < 0)
		drop(qp->ctx->hca);
	shca_add(&qp->entry->counters[SHCA_C_SENDS], 1);
	shca_add(&qp->entry->counters[SHCA_C_TX_PACKETS], 1);
	shca_add(&qp->entry->counters[SHCA_C_TX_BYTES], wqe->length);
	return IBV_WC_SUCCESS;
}
