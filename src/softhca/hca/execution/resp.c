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

static enum shca_answer find_srq(struct shca_target *t, uint32_t srqn)
{
	struct shca_fabric *f = &shca_self.fabric;
	struct shca_srq_entry *s = shca_table_find(f, t->hca, SHCA_SRQ, srqn, &t->srq_idx);

	/* The number belongs to another domain, to a dead SRQ, or to none that is XRC (IBA A14:
	 * invalid XRCSRQ). */
	if (!s || s->type != IBV_SRQT_XRC || s->xrcd != t->qp->xrcd) {
		shca_qp_fail(t->hca, t->qp, IBV_EVENT_QP_REQ_ERR);
		return SHCA_NAK_INV;
	}
	t->srq = s;
	t->rq = &s->rq;
	t->pdn = t->rkey_pdn = s->pdn;
	t->owner = shca_word_owner(atomic_load_explicit(&s->state_word, memory_order_relaxed));
	t->cq = shca_table_entry(f, &t->hca->tables[SHCA_CQ], s->cq);
	return SHCA_ACK;
}

void shca_resp_bind(struct shca_target *t)
{
	struct shca_fabric *f = &shca_self.fabric;
	struct shca_qp_entry *e = t->qp;

	t->owner = shca_word_owner(atomic_load_explicit(&e->state_word, memory_order_relaxed));
	t->pdn = t->rkey_pdn = e->pdn;
	t->cq = shca_table_entry(f, &t->hca->tables[SHCA_CQ], e->recv_cq);
	t->srq = NULL;
	t->rq = &e->rq;
	if (e->srq) {
		t->srq_idx = e->srq - 1;
		t->srq = shca_table_entry(f, &t->hca->tables[SHCA_SRQ], t->srq_idx);
		t->rq = &t->srq->rq;
		t->pdn = t->srq->pdn;
	}
}

static bool may_receive(const struct shca_qp_entry *e)
{
	switch (shca_qp_state(e)) {
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* Returns true if the P_Key base values are equal and one of the two is a full member (IBA
 * 10.9.1.2). */
static bool pkeys_match(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

/* Sends the event of the first message to a QP that its owner has not put into RTS yet (IBA
 * 11.6.3.1). */
static void establish(struct shca_target *t)
{
	uint32_t number = shca_table_number(t->qp);

	if (atomic_load_explicit(&t->qp->comm_est, memory_order_relaxed))
		return;
	shca_pending_event_note(&shca_self.fabric, t->hca, IBV_EVENT_COMM_EST, number);
	if (!atomic_exchange(&t->qp->comm_est, 1))
		shca_pending_event_send(&shca_self.fabric, t->hca, IBV_EVENT_COMM_EST, number);
	else
		shca_pending_event_clear();
}

enum shca_answer shca_resp_find(struct shca_qp *qp, const struct shca_swqe *w,
				struct shca_target *t)
{
	struct shca_fabric *f = &shca_self.fabric;
	const struct shca_qp_entry *me = qp->entry;
	uint32_t type = me->type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : me->type;
	struct shca_qp_entry *e;

	if (me->dest_hca >= f->hdr->nhcas)
		return SHCA_SILENT;
	t->hca = &f->hdr->hcas[me->dest_hca];
	e = shca_table_find(f, t->hca, SHCA_QP, me->dest_qpn, &t->qp_idx);
	if (!e || e->type != type || !may_receive(e) || e->dest_qpn != qp->ibv.qp_base.qp_num ||
	    e->dest_hca != qp->ctx->hca_idx)
		return SHCA_SILENT;
	if (!pkeys_match(e->pkey, me->pkey)) {
		shca_count(t->hca, SHCA_C_PKEY_VIOLATIONS, 1);
		return SHCA_SILENT;
	}
	t->qp = e;
	if (__builtin_expect(shca_qp_state(e) == IBV_QPS_RTR, 0))
		establish(t);
	if (type == IBV_QPT_XRC_RECV)
		return find_srq(t, w->srqn);
	shca_resp_bind(t);
	return SHCA_ACK;
}

/*
 * A requester here never repeats what was done, so the application has set a PSN behind the
 * expected one. The acknowledgement of a duplicate would name the last PSN that the responder
 * knows, which completes nothing at the requester; only a READ is executed again (IBA 9.7.5.1.2).
 */
enum shca_answer shca_resp_psn(const struct shca_qp *qp, const struct shca_swqe *w,
			       const struct shca_target *t)
{
	uint32_t epsn = atomic_load_explicit(&t->qp->epsn, memory_order_relaxed);
	uint32_t ahead = (qp->psn - epsn) & 0xffffff;

	if (!ahead || qp->entry->type == IBV_QPT_UC ||
	    (ahead >= 0x800000 && w->opcode == IBV_WR_RDMA_READ))
		return SHCA_ACK;
	return SHCA_NAK_SEQ;
}

enum shca_answer shca_resp_claim(struct shca_target *t, uint32_t *slot)
{
	int r;

	t->wakes_us = false;
	if (shca_fault_hits(SHCA_O_FAULT_RNR, t->hca))
		return SHCA_RNR;
	r = shca_rq_claim(&shca_self.fabric, t->owner, t->rq, slot);
	/* An unreliable message is dropped, and waits for nothing. */
	if (r == -EAGAIN && t->qp->type != IBV_QPT_UD && t->qp->type != IBV_QPT_UC) {
		shca_rq_wait(t->rq);
		r = shca_rq_claim(&shca_self.fabric, t->owner, t->rq, slot);
		t->wakes_us = r == -EAGAIN;
	}
	if (t->srq && atomic_load_explicit(&t->rq->limit, memory_order_relaxed))
		shca_srq_check_limit(t->hca, t->srq);
	if (r)
		return r == -EAGAIN ? SHCA_RNR : SHCA_SILENT;
	return SHCA_ACK;
}

void shca_resp_hold(struct shca_target *t, uint32_t slot)
{
	atomic_store_explicit(&t->qp->inflight_wqe, slot, memory_order_relaxed);
	atomic_store_explicit(&t->qp->inflight_srq, t->srq ? shca_table_number(t->srq) : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&t->qp->inflight_rsc, (t->srq ? t->srq_idx : t->qp_idx) + 1,
			      memory_order_release);
}

bool shca_resp_holds(const struct shca_target *t, uint32_t slot)
{
	return atomic_load(&t->qp->inflight_rsc) == (t->srq ? t->srq_idx : t->qp_idx) + 1 &&
	       atomic_load(&t->qp->inflight_wqe) == slot;
}

bool shca_resp_unhold(struct shca_target *t, uint32_t slot)
{
	/* Either this message or an end of the QP takes the receive out of the entry, and
	 * completes it. */
	return shca_resp_holds(t, slot) && atomic_exchange(&t->qp->inflight_rsc, 0);
}

void shca_resp_flush_held(struct shca_hca *hca, struct shca_qp_entry *qp)
{
	struct shca_fabric *f = &shca_self.fabric;
	uint32_t rsc = atomic_exchange(&qp->inflight_rsc, 0), cq = qp->recv_cq;
	uint32_t srqn = atomic_load(&qp->inflight_srq);
	struct shca_cqe c = {.rsc = rsc - 1,
			     .wqe = atomic_load(&qp->inflight_wqe),
			     .visible_at = atomic_load(&qp->last_visible),
			     .qp_num = shca_table_number(qp),
			     .opcode = IBV_WC_RECV,
			     .status = IBV_WC_WR_FLUSH_ERR,
			     .srqn = srqn,
			     .flags = SHCA_CQE_RECV | (srqn ? SHCA_CQE_SRQ : 0)};
	struct shca_srq_entry *s;

	if (!rsc)
		return;
	s = srqn ? shca_table_find(f, hca, SHCA_SRQ, srqn, NULL) : NULL;
	if (srqn && !s)
		return;
	if (s && qp->type == IBV_QPT_XRC_RECV)
		cq = s->cq;
	shca_cq_produce(hca, shca_table_entry(f, &hca->tables[SHCA_CQ], cq), &c, NULL);
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
static uint64_t visible_at(struct shca_target *t, const struct shca_qp *qp)
{
	uint64_t at = qp->cur.arrives_at, delay;

	if (!at && !shca_opt(&shca_self.fabric, SHCA_O_REORDER))
		return atomic_load_explicit(&t->qp->last_visible, memory_order_relaxed);
	delay = shca_fault_reorder_delay();
	if (delay && !at)
		at = shca_now();
	return shca_resp_in_order(&t->qp->last_visible, at + delay);
}

/*
 * Returns true if the target has ended since it was found. When a process dies its QPs and SRQs go
 * before its memory regions and CQs. A missing region or CQ is therefore an error only if the
 * target is still there: a dead peer is silent.
 */
static bool ended(const struct shca_target *t)
{
	return shca_word_state(atomic_load(&t->qp->state_word)) != SHCA_LIVE ||
	       (t->srq && shca_word_state(atomic_load(&t->srq->state_word)) != SHCA_LIVE);
}

enum shca_answer shca_resp_complete(struct shca_target *t, struct shca_qp *qp,
				    const struct shca_swqe *w, uint32_t slot,
				    enum ibv_wc_status status, uint32_t len,
				    const struct shca_cqe_payload *payload)
{
	bool imm = w->opcode == IBV_WR_SEND_WITH_IMM || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct shca_cqe c = {
		.visible_at = visible_at(t, qp),
		.rsc = t->srq ? t->srq_idx : t->qp_idx,
		.wqe = slot,
		.byte_len = len,
		.imm = w->imm,
		.qp_num = shca_table_number(t->qp),
		.srqn = t->srq ? shca_table_number(t->srq) : 0,
		.src_qp = qp->ibv.qp_base.qp_num,
		.slid = qp->ctx->hca->lid,
		.payload = payload ? (uint16_t)len : 0,
		.bounce = payload ? payload->bounce : 0,
		.opcode = w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM
								  : IBV_WC_RECV,
		.status = (uint8_t)status,
		.wc_flags = (uint8_t)((imm ? IBV_WC_WITH_IMM : 0) |
				      (qp->entry->attr.ah_attr.is_global ? IBV_WC_GRH : 0)),
		.flags = (uint8_t)(SHCA_CQE_RECV | (t->srq ? SHCA_CQE_SRQ : 0) |
				   (w->flags & IBV_SEND_SOLICITED ? SHCA_CQE_SOLICITED : 0) |
				   (qp->entry->attr.ah_attr.sl & 15) << 4),
	};

	if (!shca_cq_produce(t->hca, t->cq, &c, payload ? payload->runs : NULL))
		return SHCA_ACK;
	if (ended(t))
		return SHCA_SILENT;
	/* The message is lost with its completion: the QP is of no use any more (IBA 11.6.3.1). */
	shca_qp_fail(t->hca, t->qp, IBV_EVENT_QP_FATAL);
	return SHCA_NAK_OP;
}

enum shca_answer shca_resp_receive_failed(struct shca_target *t, struct shca_qp *qp, uint32_t slot,
					  enum ibv_wc_status status)
{
	static const struct shca_swqe plain = {.opcode = IBV_WR_SEND};

	if (ended(t))
		return SHCA_SILENT;
	shca_count(t->hca, status == IBV_WC_LOC_LEN_ERR ? SHCA_C_LOC_LEN_ERR : SHCA_C_LOC_PROT_ERR,
		   1);
	atomic_exchange(&t->qp->inflight_rsc, 0);
	shca_resp_complete(t, qp, &plain, slot, status, 0, NULL);
	/*
	 * An RC responder learns of the error from the completion; the holder of a target QP may
	 * not own the SRQ, and gets an event.
	 */
	shca_qp_fail(t->hca, t->qp,
		     t->qp->type == IBV_QPT_XRC_RECV ? IBV_EVENT_QP_FATAL : SHCA_NO_EVENT);
	return status == IBV_WC_LOC_LEN_ERR ? SHCA_NAK_INV : SHCA_NAK_OP;
}

enum shca_answer shca_resp_scatter(struct shca_target *t, struct shca_qp *qp, uint32_t slot,
				   uint64_t len, struct shca_run *runs, unsigned *n)
{
	const struct shca_rwqe *w = shca_rq_wqe(&shca_self.fabric, t->owner, t->rq, slot);
	uint32_t max = t->rq->max_sge;
	uint32_t num = w->num_sge < max ? w->num_sge : max;
	unsigned proc;

	*n = 0;
	for (uint32_t i = 0; len && i < num; i++) {
		uint64_t part = w->sge[i].length < len ? w->sge[i].length : len;

		if (shca_mr_check(t->hca, w->sge[i].lkey, t->pdn, w->sge[i].addr, part,
				  IBV_ACCESS_LOCAL_WRITE, &runs[*n], &proc) ||
		    proc != t->owner)
			return shca_resp_receive_failed(t, qp, slot, IBV_WC_LOC_PROT_ERR);
		len -= part;
		(*n)++;
	}
	return len ? shca_resp_receive_failed(t, qp, slot, IBV_WC_LOC_LEN_ERR) : SHCA_ACK;
}

enum shca_answer shca_resp_rkey(struct shca_target *t, const struct shca_swqe *w, uint64_t len,
				uint32_t access, struct shca_run *run)
{
	unsigned proc;

	/* The QP's own flags come first (IBA 9.7.4.1.2). */
	if (!(t->qp->access & access) ||
	    (len && shca_mr_check(t->hca, w->rkey, t->rkey_pdn, w->remote_addr, len, access, run,
				  &proc))) {
		if (ended(t))
			return SHCA_SILENT;
		/* An unreliable connection drops the message and goes on (IBA 9.8.2.2, class D). */
		if (t->qp->type != IBV_QPT_UC)
			shca_qp_fail(t->hca, t->qp, IBV_EVENT_QP_ACCESS_ERR);
		return SHCA_NAK_ACCESS;
	}
	if (len)
		t->owner = proc;
	else
		*run = (struct shca_run){0};
	return SHCA_ACK;
}
