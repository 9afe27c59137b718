/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resp.c - the checks and the work of the responder.
 */
#include "resp.h"

#include <errno.h>

#include "fabric/pending_event.h"
#include "hca/fault.h"
#include "hca/memory/mr.h"
#include "link.h"

static enum shca_answer find_srq(struct shca_target *target, uint32_t srqn,
				 struct shca_table_last *last)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_srq_entry *entry =
		shca_table_find_again(fabric, target->hca, SHCA_SRQ, srqn, last);

	/* The number belongs to another domain, to a dead SRQ, or to none that is XRC (IBA A14:
	 * invalid XRCSRQ). */
	if (!entry || entry->type != IBV_SRQT_XRC || entry->xrcd != target->qp->xrcd) {
		shca_qp_fail(target->hca, target->qp, IBV_EVENT_QP_REQ_ERR);
		return SHCA_NAK_INV;
	}
	target->srq = entry;
	target->srq_idx = last->idx;
	target->rq = &entry->rq;
	target->pdn = target->rkey_pdn = entry->pdn;
	target->owner =
		shca_word_owner(atomic_load_explicit(&entry->state_word, memory_order_relaxed));
	target->receives = shca_rq_map(fabric, target->owner, target->rq);
	target->cq = shca_table_entry(fabric, &target->hca->tables[SHCA_CQ], entry->cq);
	return SHCA_ACK;
}

void shca_resp_bind(struct shca_target *target)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_qp_entry *entry = target->qp;

	target->owner =
		shca_word_owner(atomic_load_explicit(&entry->state_word, memory_order_relaxed));
	target->pdn = target->rkey_pdn = entry->pdn;
	target->cq = shca_table_entry(fabric, &target->hca->tables[SHCA_CQ], entry->recv_cq);
	target->srq = NULL;
	target->rq = &entry->rq;
	if (entry->srq) {
		target->srq_idx = entry->srq - 1;
		target->srq =
			shca_table_entry(fabric, &target->hca->tables[SHCA_SRQ], target->srq_idx);
		target->rq = &target->srq->rq;
		target->pdn = target->srq->pdn;
	}
	target->receives = shca_rq_map(fabric, target->owner, target->rq);
}

static bool may_receive(const struct shca_qp_entry *entry)
{
	switch (shca_qp_state(entry)) {
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* Sends the event of the first message to a QP that its owner has not put into RTS yet (IBA
 * 11.6.3.1). */
static void establish(struct shca_target *target)
{
	uint32_t number = shca_table_number(target->qp);

	if (atomic_load_explicit(&target->qp->comm_est, memory_order_relaxed))
		return;
	shca_pending_event_note(&shca_self.fabric, target->hca, IBV_EVENT_COMM_EST, number);
	if (!atomic_exchange(&target->qp->comm_est, 1))
		shca_pending_event_send(&shca_self.fabric, target->hca, IBV_EVENT_COMM_EST, number);
	else
		shca_pending_event_clear();
}

enum shca_answer shca_resp_find(struct shca_qp *qp, const struct shca_swqe *wqe,
				struct shca_target *target)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	const struct shca_qp_entry *me = qp->entry;
	uint32_t type = me->type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : me->type;
	struct shca_qp_entry *entry;

	if (me->dest_hca >= fabric->hdr->nhcas)
		return SHCA_SILENT;
	target->hca = &fabric->hdr->hcas[me->dest_hca];
	entry = shca_table_find_again(fabric, target->hca, SHCA_QP, me->dest_qpn, &qp->last_target);
	if (!entry || entry->type != type || !may_receive(entry) ||
	    entry->dest_qpn != qp->ibv.qp_base.qp_num || entry->dest_hca != qp->ctx->hca_idx)
		return SHCA_SILENT;
	if (!shca_resp_pkeys_match(entry->pkey, me->pkey)) {
		shca_count(target->hca, SHCA_C_PKEY_VIOLATIONS, 1);
		return SHCA_SILENT;
	}
	target->qp = entry;
	target->qp_idx = qp->last_target.idx;
	if (__builtin_expect(shca_qp_state(entry) == IBV_QPS_RTR, 0))
		establish(target);
	if (type == IBV_QPT_XRC_RECV)
		return find_srq(target, wqe->srqn, &qp->last_srq);
	shca_resp_bind(target);
	return SHCA_ACK;
}

/*
 * A requester here never repeats what was done, so the application has set a PSN behind the
 * expected one. The acknowledgement of a duplicate would name the last PSN that the responder
 * knows, which completes nothing at the requester; only a READ is executed again (IBA 9.7.5.1.2).
 */
enum shca_answer shca_resp_psn(const struct shca_qp *qp, const struct shca_swqe *wqe,
			       const struct shca_target *target)
{
	uint32_t epsn = atomic_load_explicit(&target->qp->epsn, memory_order_relaxed);
	uint32_t ahead = (atomic_load_explicit(&qp->psn, memory_order_relaxed) - epsn) & 0xffffff;

	if (!ahead || qp->entry->type == IBV_QPT_UC ||
	    (ahead >= 0x800000 && wqe->opcode == IBV_WR_RDMA_READ))
		return SHCA_ACK;
	return SHCA_NAK_SEQ;
}

enum shca_answer shca_resp_claim(struct shca_target *target, uint32_t *slot)
{
	bool found;

	target->wakes_us = false;
	if (shca_fault_draw(SHCA_O_FAULT_RNR, target->hca))
		return SHCA_RNR;
	if (!target->receives)
		return SHCA_SILENT;
	found = shca_rq_claim(target->receives, target->rq, slot);
	/* An unreliable message is dropped, and waits for nothing. */
	if (!found && target->qp->type != IBV_QPT_UD && target->qp->type != IBV_QPT_UC) {
		shca_rq_add_waiter(target->rq);
		found = shca_rq_claim(target->receives, target->rq, slot);
		target->wakes_us = !found;
	}
	if (target->srq && atomic_load_explicit(&target->rq->limit, memory_order_relaxed))
		shca_srq_check_limit(target->hca, target->srq);
	return found ? SHCA_ACK : SHCA_RNR;
}

void shca_resp_hold(struct shca_target *target, uint32_t slot)
{
	atomic_store_explicit(&target->qp->inflight_wqe, slot, memory_order_relaxed);
	atomic_store_explicit(&target->qp->inflight_srq,
			      target->srq ? shca_table_number(target->srq) : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&target->qp->inflight_rsc,
			      (target->srq ? target->srq_idx : target->qp_idx) + 1,
			      memory_order_release);
}

bool shca_resp_holds(const struct shca_target *target, uint32_t slot)
{
	return atomic_load(&target->qp->inflight_rsc) ==
		       (target->srq ? target->srq_idx : target->qp_idx) + 1 &&
	       atomic_load(&target->qp->inflight_wqe) == slot;
}

bool shca_resp_unhold(struct shca_target *target, uint32_t slot)
{
	/* Either this message or an end of the QP takes the receive out of the entry, and
	 * completes it. */
	return shca_resp_holds(target, slot) && atomic_exchange(&target->qp->inflight_rsc, 0);
}

void shca_resp_flush_held(struct shca_hca *hca, struct shca_qp_entry *qp)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	uint32_t rsc = atomic_exchange(&qp->inflight_rsc, 0), cq = qp->recv_cq;
	uint32_t srqn = atomic_load(&qp->inflight_srq);
	struct shca_cqe cqe = {.rsc = rsc - 1,
			       .wqe = atomic_load(&qp->inflight_wqe),
			       .visible_at = atomic_load(&qp->last_visible),
			       .qp_num = shca_table_number(qp),
			       .opcode = IBV_WC_RECV,
			       .status = IBV_WC_WR_FLUSH_ERR,
			       .srqn = srqn,
			       .flags = SHCA_CQE_RECV | (srqn ? SHCA_CQE_SRQ : 0)};
	struct shca_srq_entry *entry;

	if (!rsc)
		return;
	entry = srqn ? shca_table_find(fabric, hca, SHCA_SRQ, srqn, NULL) : NULL;
	if (srqn && !entry)
		return;
	if (entry && qp->type == IBV_QPT_XRC_RECV)
		cq = entry->cq;
	shca_cq_produce(hca, shca_table_entry(fabric, &hca->tables[SHCA_CQ], cq), &cqe, NULL);
	shca_count(hca, SHCA_C_FLUSHED, 1);
}

uint64_t shca_resp_in_order(_Atomic uint64_t *last, uint64_t at)
{
	uint64_t was = atomic_load_explicit(last, memory_order_relaxed);

	if (at <= was)
		return was;
	atomic_store_explicit(last, at, memory_order_relaxed);
	return at;
}

/* Returns when the receiver may see the completion: at the message's arrival, or later if the
 * order of completions is shuffled. */
static uint64_t visible_at(struct shca_target *target, const struct shca_qp *qp)
{
	uint64_t at = qp->cur.arrives_at, delay;

	if (!at && !shca_opt(&shca_self.fabric, SHCA_O_REORDER))
		return atomic_load_explicit(&target->qp->last_visible, memory_order_relaxed);
	delay = shca_fault_reorder_delay();
	if (delay && !at)
		at = shca_now();
	return shca_resp_in_order(&target->qp->last_visible, at + delay);
}

/*
 * Returns true if the target has ended since it was found. When a process dies its QPs and SRQs go
 * before its memory regions and CQs. A missing region or CQ is therefore an error only if the
 * target is still there: a dead peer is silent.
 */
static bool ended(const struct shca_target *target)
{
	return shca_word_state(atomic_load(&target->qp->state_word)) != SHCA_LIVE ||
	       (target->srq && shca_word_state(atomic_load(&target->srq->state_word)) != SHCA_LIVE);
}

/* Flags of a receive's completion, by the opcode of the request that it takes. */
static const uint8_t flags_of[] = {
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_WITH_IMM,
	[IBV_WR_SEND] = 0,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_WITH_IMM,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_WITH_INV,
};

enum shca_answer shca_resp_complete(struct shca_target *target, struct shca_qp *qp,
				    const struct shca_swqe *wqe, uint32_t slot,
				    enum ibv_wc_status status, uint32_t len,
				    const struct shca_cqe_payload *payload)
{
	struct shca_cqe cqe = {
		.visible_at = visible_at(target, qp),
		.rsc = target->srq ? target->srq_idx : target->qp_idx,
		.wqe = slot,
		.byte_len = len,
		.imm = wqe->imm,
		.qp_num = shca_table_number(target->qp),
		.srqn = target->srq ? shca_table_number(target->srq) : 0,
		.src_qp = qp->ibv.qp_base.qp_num,
		.slid = qp->ctx->hca->lid,
		.payload = payload ? (uint16_t)len : 0,
		.bounce = payload ? payload->bounce : 0,
		.opcode = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
								    : IBV_WC_RECV,
		.status = (uint8_t)status,
		.wc_flags = (uint8_t)(flags_of[wqe->opcode] |
				      (qp->entry->attr.ah_attr.is_global ? IBV_WC_GRH : 0)),
		.flags = (uint8_t)(SHCA_CQE_RECV | (target->srq ? SHCA_CQE_SRQ : 0) |
				   (wqe->flags & IBV_SEND_SOLICITED ? SHCA_CQE_SOLICITED : 0) |
				   (qp->entry->attr.ah_attr.sl & 15) << 4),
	};

	if (!shca_cq_produce(target->hca, target->cq, &cqe, payload ? payload->runs : NULL))
		return SHCA_ACK;
	if (ended(target))
		return SHCA_SILENT;
	/* The message is lost with its completion: the QP is of no use any more (IBA 11.6.3.1). */
	shca_qp_fail(target->hca, target->qp, IBV_EVENT_QP_FATAL);
	return SHCA_NAK_OP;
}

/* Stands for the request of a receive that is completed without one. */
static const struct shca_swqe no_request = {.opcode = IBV_WR_SEND};

void shca_resp_give_back(struct shca_target *target, struct shca_qp *qp, uint32_t slot)
{
	/* The QP's owner may have flushed the queue without this receive already. */
	if (shca_qp_state(target->qp) == IBV_QPS_ERR)
		shca_resp_complete(target, qp, &no_request, slot, IBV_WC_WR_FLUSH_ERR, 0, NULL);
	else
		shca_rq_return(target->receives, target->rq, slot);
}

enum shca_answer shca_resp_receive_failed(struct shca_target *target, struct shca_qp *qp,
					  uint32_t slot, enum ibv_wc_status status)
{
	/* An end of the QP may have flushed the receive meanwhile. */
	if (ended(target) || (qp->cur.held && !shca_resp_unhold(target, slot)))
		return SHCA_SILENT;
	shca_count(target->hca,
		   status == IBV_WC_LOC_LEN_ERR ? SHCA_C_LOC_LEN_ERR : SHCA_C_LOC_PROT_ERR, 1);
	shca_resp_complete(target, qp, &no_request, slot, status, 0, NULL);
	/*
	 * An RC responder learns of the error from the completion; the holder of a target QP may
	 * not own the SRQ, and gets an event.
	 */
	shca_qp_fail(target->hca, target->qp,
		     target->qp->type == IBV_QPT_XRC_RECV ? IBV_EVENT_QP_FATAL : SHCA_NO_EVENT);
	return status == IBV_WC_LOC_LEN_ERR ? SHCA_NAK_INV : SHCA_NAK_OP;
}

enum shca_answer shca_resp_scatter(struct shca_target *target, struct shca_qp *qp, uint32_t slot,
				   uint64_t len, struct shca_run *runs, unsigned *n)
{
	const struct shca_rwqe *wqe = shca_rq_wqe(target->receives, target->rq, slot);
	uint32_t max = target->rq->max_sge < SHCA_MAX_RUNS ? target->rq->max_sge : SHCA_MAX_RUNS;
	uint32_t num = wqe->num_sge < max ? wqe->num_sge : max;

	*n = 0;
	for (uint32_t i = 0; len && i < num; i++) {
		uint64_t part = wqe->sge[i].length < len ? wqe->sge[i].length : len;
		const struct shca_mr_entry *region =
			shca_table_find_again(&shca_self.fabric, target->hca, SHCA_MR,
					      wqe->sge[i].lkey, &qp->last_target_region);

		if (shca_mr_check(region, target->owner, target->pdn, wqe->sge[i].addr, part,
				  IBV_ACCESS_LOCAL_WRITE, &runs[*n]))
			return shca_resp_receive_failed(target, qp, slot, IBV_WC_LOC_PROT_ERR);
		len -= part;
		(*n)++;
	}
	return len ? shca_resp_receive_failed(target, qp, slot, IBV_WC_LOC_LEN_ERR) : SHCA_ACK;
}

enum shca_answer shca_resp_invalidate(struct shca_target *target, struct shca_qp *qp,
				      const struct shca_swqe *wqe, uint32_t slot)
{
	if (!shca_mw_invalidate(target->hca, wqe->imm, target->owner, target->rkey_pdn,
				shca_table_number(target->qp)))
		return SHCA_ACK;
	return shca_resp_receive_failed(target, qp, slot, IBV_WC_LOC_PROT_ERR) == SHCA_SILENT
		       ? SHCA_SILENT
		       : SHCA_NAK_ACCESS;
}

/* Stores the memory that a request names. Returns false if the request may not access it. A
 * protection domain is one process's, and so is the memory of the regions in it. */
static bool find_memory(const struct shca_target *target, const struct shca_swqe *wqe, uint64_t len,
			uint32_t access, struct shca_run *run)
{
	/* The QP's own flags come first (IBA 9.7.4.1.2). */
	if (!(target->qp->access & access))
		return false;
	*run = (struct shca_run){0};
	return !len ||
	       !shca_mr_check(
		       shca_table_find(&shca_self.fabric, target->hca, SHCA_MR, wqe->rkey, NULL),
		       target->owner, target->rkey_pdn, wqe->remote_addr, len, access, run) ||
	       !shca_mw_check(target->hca, wqe->rkey, target->owner, target->rkey_pdn,
			      shca_table_number(target->qp), wqe->remote_addr, len, access, run);
}

enum shca_answer shca_resp_rkey(const struct shca_target *target, const struct shca_swqe *wqe,
				uint64_t len, uint32_t access, struct shca_run *run)
{
	if (!find_memory(target, wqe, len, access, run)) {
		if (ended(target))
			return SHCA_SILENT;
		/* An unreliable connection drops the message and goes on (IBA 9.8.2.2, class D). */
		if (target->qp->type != IBV_QPT_UC)
			shca_qp_fail(target->hca, target->qp, IBV_EVENT_QP_ACCESS_ERR);
		return SHCA_NAK_ACCESS;
	}
	return SHCA_ACK;
}
