/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req.c - the requester: executes a send queue in order, one message at a time, with the retries
 * that the transport asks for. The opcodes' effects on the target are in req_ops.c.
 */
#include "req.h"

#include <errno.h>

#include "captured.h"
#include "fabric/event.h"
#include "hca/fault.h"
#include "hca/memory/mr.h"
#include "link.h"
#include "runqueue.h"
#include "traced.h"
#include "ud.h"

/* Longest time (ns) that a posting thread waits itself: if longer, waking the engine costs less. */
#define SHORT_WAIT 2000u
/* Interval (ns) at which a wait for a receive looks for changes that wake nobody: the target QP
 * has ended or failed, or its process has died. A choice, like the next one: each try takes CPU
 * time from the applications, and the interval is how late the change may be seen. */
#define RNR_PATIENCE 20000000u
/* Interval (ns) between two tries of a message that has no timer. */
#define NO_TIMER_PATIENCE 10000000u

/* min_rnr_timer code -> us (IBA table 45). */
static const uint32_t rnr_timer_us[32] = {
	655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,   320,
	480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240, 15360,
	20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

/* ---------------------------------------------------------------- one message */

/* Has the message sent again at `when`, over the link too. */
static enum shca_step resend_at(struct shca_req *req, uint64_t when)
{
	if (!req->qp->cur.started)
		req->qp->cur.arrives_at = req->qp->cur.on_link = req->qp->cur.opened = 0;
	req->qp->link_floor = when;
	return shca_req_wait_until(req, when);
}

enum shca_step shca_req_fail(struct shca_req *req, enum ibv_wc_status status)
{
	if (shca_tracing())
		shca_traced_message(req, status);
	shca_req_complete(req->qp, req->wqe, status, 0);
	return SHCA_STEP_DONE;
}

/* Takes one of the message's retries. Returns false if none is left. */
static bool take_retry(struct shca_qp *qp)
{
	if (qp->cur.tries++ >= qp->entry->attr.retry_cnt)
		return false;
	shca_count(qp->ctx->hca, SHCA_C_RETRIES, 1);
	return true;
}

/* Returns the time (ns) from one send of a message to the next one. */
static uint64_t retry_period(const struct shca_qp *qp)
{
	return qp->entry->attr.timeout ? 4096ULL << qp->entry->attr.timeout : NO_TIMER_PATIENCE;
}

/*
 * Acts on a send that has no answer, with adaptive retransmission: the first timer is short, and
 * each one has twice the time of the last, up to the local ACK timer. The message fails when the
 * time of retry_cnt local ACK timers is over.
 */
static enum shca_step no_answer_adaptive(struct shca_req *req, uint64_t first)
{
	const struct ibv_qp_attr *attr = &req->qp->entry->attr;
	struct shca_progress *cur = &req->qp->cur;
	uint64_t now = shca_now(), timer = retry_period(req->qp);

	if (!cur->silences)
		cur->last_timer_end = now + timer * (attr->retry_cnt ? attr->retry_cnt : 1);
	for (unsigned i = 0; i < cur->silences && first < timer; i++)
		first *= 2;
	timer = first < timer ? first : timer;
	if (now + timer >= cur->last_timer_end) {
		cur->gives_up_at = cur->last_timer_end;
		return resend_at(req, cur->gives_up_at);
	}
	if (cur->silences < UINT8_MAX)
		cur->silences++;
	shca_count(req->qp->ctx->hca, SHCA_C_RETRIES, 1);
	return resend_at(req, now + timer);
}

/* Acts on a send that has no answer: at the end of the local ACK timer the message is sent again
 * or, after retry_cnt retries, fails (IBA 9.7.6.1.3). */
static enum shca_step no_answer(struct shca_req *req)
{
	uint64_t first = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_ADAPTIVE_RETRANSMISSION);
	struct shca_qp *qp = req->qp;
	uint64_t timer_end = shca_now() + retry_period(qp);

	shca_suspect_peers();
	if (first && qp->entry->attr.timeout)
		return no_answer_adaptive(req, first);
	/* A timeout of 0 means for ever. The requester still tries at times, because no packet
	 * is under way that could bring an answer. */
	if (!qp->entry->attr.timeout)
		qp->cur.tries = qp->cur.tries ? qp->cur.tries : 1;
	else if (!take_retry(qp))
		qp->cur.gives_up_at = timer_end;
	return resend_at(req, timer_end);
}

/* Acts on the answer that a message's PSN is not the expected one: the message is sent again, or
 * fails at once after retry_cnt retries, even if there is no timer. */
static enum shca_step out_of_sequence(struct shca_req *req)
{
	shca_suspect_peers();
	if (!take_retry(req->qp))
		return shca_req_fail(req, IBV_WC_RETRY_EXC_ERR);
	return resend_at(req, shca_now() + retry_period(req->qp));
}

/*
 * Returns when to try again after an RNR NAK. An adapter that may try for ever tries whenever the
 * timer ends. Tries that can only fail are left out here, because they would take the CPUs of the
 * applications: a posted receive wakes this process, and the message goes at the next end of the
 * timer.
 */
static uint64_t next_try(const struct shca_req *req)
{
	const struct shca_qp *qp = req->qp;
	uint64_t tries = 1;

	if (req->target.wakes_us && qp->entry->attr.rnr_retry == 7 &&
	    qp->cur.rnr_period < RNR_PATIENCE)
		tries = RNR_PATIENCE / qp->cur.rnr_period;
	return qp->cur.rnr_since + tries * qp->cur.rnr_period;
}

/* Ends the wait for a receive. The message leaves at the last end of the timer, or now if the
 * timer has not ended yet, and the tries that were left out are counted. None are left out if
 * tries are limited: then this process is late. */
static void end_rnr_wait(struct shca_qp *qp)
{
	uint64_t waited = shca_now() - qp->cur.rnr_since;
	uint64_t tries = waited / qp->cur.rnr_period;

	if (tries > 1 && qp->entry->attr.rnr_retry == 7)
		shca_count(qp->cur.rnr_from, SHCA_C_RNR_NAKS, tries - 1);
	qp->link_floor = qp->cur.rnr_since + (tries ? tries * qp->cur.rnr_period : waited);
	qp->cur.rnr_since = 0;
}

static enum shca_step not_ready(struct shca_req *req)
{
	const struct ibv_qp_attr *attr = &req->qp->entry->attr;
	uint64_t now = shca_now();

	shca_suspect_peers();
	shca_count(req->target.hca, SHCA_C_RNR_NAKS, 1);
	req->qp->cur.tries = req->qp->cur.silences = 0;
	if (req->qp->cur.rnr_tries < 8)
		req->qp->cur.rnr_tries++;
	if (attr->rnr_retry != 7 && req->qp->cur.rnr_tries > attr->rnr_retry)
		return shca_req_fail(req, IBV_WC_RNR_RETRY_EXC_ERR);
	req->qp->rnr_wait = true;
	req->qp->cur.rnr_since = now;
	if (!req->qp->cur.rnr_first)
		req->qp->cur.rnr_first = now;
	req->qp->cur.rnr_period = 1000 * rnr_timer_us[req->target.qp->attr.min_rnr_timer & 31];
	req->qp->cur.rnr_from = req->target.hca;
	return resend_at(req, next_try(req));
}

enum shca_step shca_req_answer(struct shca_req *req, enum shca_answer answer)
{
	static const enum ibv_wc_status status[] = {
		[SHCA_NAK_INV] = IBV_WC_REM_INV_REQ_ERR,
		[SHCA_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[SHCA_NAK_OP] = IBV_WC_REM_OP_ERR,
	};

	/* Under the link model the message has not arrived yet: its receive may still be posted
	 * in time. */
	if (answer == SHCA_RNR && req->qp->cur.first_at > shca_now())
		return shca_req_wait_until(req, req->qp->cur.first_at);
	if (shca_records(SHCA_RECORD_PACKETS))
		shca_captured_message(req, answer);
	/* An unreliable connection has no answers: a message that the responder drops is lost, and
	 * its send is complete. */
	if (req->qp->entry->type == IBV_QPT_UC && answer != SHCA_ACK) {
		shca_count(req->qp->ctx->hca, SHCA_C_UC_DROPPED, 1);
		if (shca_tracing())
			shca_traced_message(req, IBV_WC_SUCCESS);
		shca_req_complete(req->qp, req->wqe, IBV_WC_SUCCESS, req->wqe->length);
		return SHCA_STEP_DONE;
	}
	switch (answer) {
	case SHCA_ACK:
		return SHCA_STEP_DONE;
	case SHCA_SILENT:
		return no_answer(req);
	case SHCA_NAK_SEQ:
		return out_of_sequence(req);
	case SHCA_RNR:
		return not_ready(req);
	default:
		return shca_req_fail(req, status[answer]);
	}
}

/* Checks own memory and stores its runs. Local reads need no access flag; memory that is written
 * to must allow it. */
static bool local_runs(struct shca_req *req, uint32_t access, struct shca_run *runs, unsigned *n)
{
	struct shca_swqe *wqe = req->wqe;
	struct shca_qp *qp = req->qp;
	uint64_t left = wqe->length;

	*n = 0;
	if (wqe->flags & IBV_SEND_INLINE) {
		runs[0] = (struct shca_run){
			.addr = (uintptr_t)shca_swqe_inline(wqe),
			.len = wqe->length,
		};
		*n = 1;
		return true;
	}
	for (unsigned i = 0; left && i < wqe->num_sge; i++) {
		const struct ibv_sge *sge = &shca_swqe_sges(wqe)[i];
		const struct shca_mr_entry *region;

		if (!sge->length)
			continue;
		region = shca_table_find_again(&shca_self.fabric, qp->ctx->hca, SHCA_MR, sge->lkey,
					       &qp->last_own_region);
		if (shca_mr_check(region, shca_self.slot, qp->pdn, sge->addr, sge->length, access,
				  &runs[*n]))
			return false;
		left -= sge->length;
		(*n)++;
	}
	return true;
}

static bool over_limit(const struct shca_req *req)
{
	return req->wqe->length > (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_MSG_SZ);
}

/* Holds the message back if an injected fault or a random delay says so, and sets *step then. Asks
 * once per message. Returns true if the message waits. */
static bool hold_back(struct shca_req *req, enum shca_step *step)
{
	struct shca_hca *hca = req->qp->ctx->hca;
	uint64_t wait = 0;

	if (req->qp->cur.unblocked)
		return false;
	req->qp->cur.unblocked = true;
	if (shca_fault_draw(SHCA_O_FAULT_DELAY, hca))
		wait = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_FAULT_DELAY_TIME);
	if (shca_opt(&shca_self.fabric, SHCA_O_REORDER) && (shca_fault_reorder_delay() & 3) == 0)
		wait += shca_fault_reorder_delay();
	if (!wait)
		return false;
	*step = resend_at(req, shca_now() + wait);
	return true;
}

static enum shca_step step_connected(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	enum shca_answer answer;

	/* A lost packet is found out by the timer, as in no_answer(). */
	if (!qp->cur.started && shca_fault_draw(SHCA_O_FAULT_DROP, qp->ctx->hca))
		return shca_req_answer(req, SHCA_SILENT);
	answer = shca_resp_find(qp, req->wqe, &req->target);
	if (answer == SHCA_ACK) {
		shca_epoch_narrow(req->exec, req->target.owner);
		answer = shca_resp_psn(qp, req->wqe, &req->target);
	}
	if (answer != SHCA_ACK)
		return shca_req_answer(req, answer);
	if (!qp->cur.started && shca_fault_draw(SHCA_O_FAULT_QP, qp->ctx->hca)) {
		shca_qp_fail(req->target.hca, req->target.qp, IBV_EVENT_QP_FATAL);
		return shca_req_answer(req, SHCA_NAK_OP);
	}
	return shca_req_ops[req->wqe->opcode](req);
}

static enum shca_step step(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	struct shca_copy *copy = &qp->copy;
	/* A READ or an atomic: the answer comes to own memory. */
	bool reads = req->wqe->opcode - (unsigned)IBV_WR_RDMA_READ <=
		     IBV_WR_ATOMIC_FETCH_AND_ADD - IBV_WR_RDMA_READ;
	enum shca_step s;

	req->target.owner = SHCA_NO_PROC;
	if (qp->cur.gives_up_at)
		return shca_now() < qp->cur.gives_up_at
			       ? shca_req_wait_until(req, qp->cur.gives_up_at)
			       : shca_req_fail(req, IBV_WC_RETRY_EXC_ERR);
	if (hold_back(req, &s))
		return s;
	if (__builtin_expect(shca_req_is_local(req->wqe), 0))
		return shca_req_ops[req->wqe->opcode](req);
	if (!local_runs(req, reads ? IBV_ACCESS_LOCAL_WRITE : 0, reads ? copy->dst : copy->src,
			reads ? &copy->ndst : &copy->nsrc))
		return shca_req_fail(req, IBV_WC_LOC_PROT_ERR);
	if (qp->entry->type == IBV_QPT_UD) {
		enum ibv_wc_status status;

		req->when = 0;
		status = shca_ud_send(qp, req->wqe, copy->src, &req->when);
		if (req->when)
			return SHCA_STEP_WAIT;
		if (shca_is_recording())
			shca_recorded_datagram(req, status);
		shca_req_complete(qp, req->wqe, status, req->wqe->length);
		return SHCA_STEP_DONE;
	}
	if (over_limit(req))
		return shca_req_fail(req, IBV_WC_LOC_LEN_ERR);
	return step_connected(req);
}

/* ---------------------------------------------------------------- the queue */

static void send_drained_event(struct shca_qp *qp)
{
	if (!qp->drain_event)
		return;
	qp->drain_event = false;
	shca_event_send_qp(&shca_self.fabric, qp->ctx->hca, qp->entry, IBV_EVENT_SQ_DRAINED);
}

/* Returns true if the QP's state allows work on the head of the queue. */
static bool may_send(const struct shca_qp *qp, uint32_t state)
{
	/* A message that has begun is finished; the rest waits (IBA 10.3.1.5). */
	return state == IBV_QPS_RTS ||
	       (state == IBV_QPS_SQD &&
		(qp->cur.started || qp->cur.tries || qp->cur.silences || qp->cur.rnr_tries));
}

/* Sends the drained event in SQD, and flushes the queue in ERR and SQE. */
static void leave_unsent(struct shca_qp *qp, uint32_t state)
{
	if (state == IBV_QPS_SQD)
		send_drained_event(qp);
	else if (state == IBV_QPS_ERR || state == IBV_QPS_SQE)
		shca_req_flush(qp);
}

static bool too_much_for_caller(const struct shca_qp *qp, const struct shca_swqe *wqe)
{
	/* Under the link model the last bytes of a WRITE or READ arrive at their time, and the
	 * caller doesn't wait for that. */
	return wqe->length > (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CALLER_LIMIT) ||
	       (!shca_req_is_send(wqe) && shca_link_on()) || qp->cur.offset;
}

/* Waits a short time under the link model, until a message is at a target that has no receive
 * for it yet. Returns false if the time is too long: then waking the engine costs less. */
static bool wait_if_short(uint64_t when)
{
	uint64_t now = shca_now();

	if (when > now + SHORT_WAIT)
		return false;
	while (shca_now() < when)
		;
	return true;
}

enum shca_req_result shca_req_run(struct shca_qp *qp, enum shca_runner by, uint64_t *when)
{
	static const enum shca_counter counter[] = {
		[SHCA_BY_CALLER] = SHCA_C_EXEC_CALLER,
		[SHCA_BY_ENGINE] = SHCA_C_EXEC_ENGINE,
	};
	struct shca_req req = {.qp = qp, .by = by, .exec = shca_epoch_self()};
	unsigned turns = 0;

	while (qp->exec != qp->head) {
		uint32_t state = shca_qp_state(qp->entry);
		enum shca_step s;

		if (!may_send(qp, state)) {
			leave_unsent(qp, state);
			return SHCA_REQ_EMPTY;
		}
		req.wqe = shca_swqe(qp, qp->exec);
		if (by == SHCA_BY_CALLER && too_much_for_caller(qp, req.wqe))
			return SHCA_REQ_MORE;
		qp->rnr_wait = false;
		if (qp->cur.rnr_since)
			end_rnr_wait(qp);
		qp->rnr_seen = shca_runqueue_rnr_wakes();
		shca_epoch_enter(req.exec);
		s = step(&req);
		shca_epoch_exit(req.exec);
		if (s == SHCA_STEP_DONE)
			shca_add(&qp->entry->counters[counter[by]], 1);
		if (s == SHCA_STEP_WAIT && by == SHCA_BY_CALLER && wait_if_short(req.when))
			continue;
		if (s == SHCA_STEP_WAIT) {
			*when = req.when;
			return SHCA_REQ_WAIT;
		}
		/* Other QPs' queues get their turn too. */
		if (s == SHCA_STEP_MORE || (by != SHCA_BY_CALLER && ++turns == 16))
			return SHCA_REQ_MORE;
	}
	/* A queue in SQD with nothing left is drained as well. */
	if (shca_qp_state(qp->entry) == IBV_QPS_SQD)
		send_drained_event(qp);
	return SHCA_REQ_EMPTY;
}
