/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req_ops.c - what each opcode of a connected QP does to its target.
 */
#include "req.h"

#include <errno.h>

#include "captured.h"
#include "hca/memory/mr.h"
#include "hca/object_cache.h"
#include "hca/timing.h"
#include "link.h"

/* Bytes below which the lock of the send queue is kept: taking the lock again would cost more
 * than releasing it gains. */
#define KEEP_LOCK_BELOW 2048u
/* Number of times, and interval (ns), that the requester looks for missing memory of the target
 * before it is an error. A choice: until then, 20 ms, the process has to be found dead. */
#define FAULT_LOOKS 20
#define FAULT_PAUSE 1000000u
/* Interval (ns) between two tries to lock a word for an atomic. A choice: other queues go on
 * meanwhile, and its holder needs the CPU. */
#define WORD_PAUSE 20000u
/* Bytes of a WRITE or READ that the link model holds back until the last byte arrives. A choice: a
 * program that polls for the end of a message looks there, and the rest is copied before. */
#define RDMA_TAIL 256u

/* Completes a message that is through: advances the PSNs by its packets, and completes the send. */
static enum shca_step done(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	uint32_t len = req->wqe->length;
	unsigned mtu_log2 = 7 + qp->entry->attr.path_mtu;
	uint32_t packets = len ? ((len - 1) >> mtu_log2) + 1 : 1;
	uint32_t psn = atomic_load_explicit(&qp->psn, memory_order_relaxed);
	uint32_t next = (psn + packets) & 0xffffff;

	if (shca_is_recording())
		shca_recorded_message(req);
	/* A READ from the duplicate region advances only the requester. */
	if (qp->entry->type == IBV_QPT_UC ||
	    atomic_load_explicit(&req->target.qp->epsn, memory_order_relaxed) == psn)
		atomic_store_explicit(&req->target.qp->epsn, next, memory_order_relaxed);
	atomic_store_explicit(&qp->psn, next, memory_order_relaxed);
	shca_add(&qp->entry->counters[SHCA_C_TX_PACKETS], packets);
	shca_add(&qp->entry->counters[SHCA_C_TX_BYTES], len);
	if (shca_timing.memory_written && !shca_req_is_send(req->wqe))
		shca_timing.memory_written(
			req->wqe->opcode == IBV_WR_RDMA_READ ? shca_self.slot : req->target.owner);
	shca_add(&req->target.qp->rx_packets, packets);
	shca_add(&req->target.qp->rx_bytes, len);
	shca_req_complete(qp, req->wqe, IBV_WC_SUCCESS, len);
	return SHCA_STEP_DONE;
}

/* Returns true if the message waits until req->when because its port is open for another one. */
static bool is_behind(struct shca_req *req, const struct shca_hca *from)
{
	const struct shca_progress *progress = &req->qp->cur;

	return shca_link_on() && !progress->arrives_at && !progress->opened &&
	       shca_link_is_open(from, &req->when);
}

/* Returns true if the message, a SEND, waits until req->when for its port and its receive. */
static bool opens(struct shca_req *req, enum shca_answer answer)
{
	struct shca_progress *progress = &req->qp->cur;

	if (!shca_link_on() || progress->arrives_at || answer != SHCA_RNR ||
	    req->qp->entry->type == IBV_QPT_UC)
		return false;
	progress->opened = shca_link_opens(req->qp->ctx->hca,
					   shca_link_departs_at(req->qp, req->wqe), &req->when);
	return progress->opened;
}

/* Returns how long the message waits for contexts, those of the target's adapter included. */
static uint64_t await_contexts(struct shca_req *req)
{
	struct shca_target *target = &req->target;
	uint64_t wait = shca_object_cache_use(req->qp->ctx->hca, SHCA_QP, req->qp->idx) +
			shca_object_cache_use(target->hca, SHCA_QP, target->qp_idx);

	if (target->srq && shca_req_is_send(req->wqe))
		wait += shca_object_cache_use(target->hca, SHCA_SRQ, target->srq_idx);
	return wait;
}

/* Fixes, once, when this message arrives under the link model, and when its first byte does. */
static void schedule(struct shca_req *req, bool to_us)
{
	struct shca_progress *progress = &req->qp->cur;
	struct shca_hca *us = req->qp->ctx->hca;
	uint64_t start = shca_link_departs_at(req->qp, req->wqe);

	if (!shca_link_on() || progress->arrives_at)
		return;
	start += await_contexts(req);
	progress->to_us = to_us;
	progress->on_link = req->wqe->length;
	if (to_us)
		progress->arrives_at =
			shca_link_send(req->target.hca, us, progress->on_link,
				       start + shca_link_latency(), &progress->first_at);
	else
		progress->arrives_at = shca_link_send(us, req->target.hca, progress->on_link, start,
						      &progress->first_at);
}

/*
 * Reserves the link for a SEND, when it is looked at first and when its receive is found. Without
 * a receive only as many bytes leave as do before the NAK is back. The receive may be posted until
 * the message arrives: then the other bytes follow, behind what has been sent meanwhile. On an
 * unreliable connection there is no NAK, and all bytes leave.
 */
static void schedule_send(struct shca_req *req, enum shca_answer answer)
{
	struct shca_progress *progress = &req->qp->cur;
	struct shca_hca *us = req->qp->ctx->hca, *to = req->target.hca;
	uint64_t bytes = req->wqe->length, departs = shca_link_departs_at(req->qp, req->wqe), stop;
	uint64_t first_at;

	if (!shca_link_on() ||
	    (progress->arrives_at && (answer != SHCA_ACK || progress->on_link == bytes)))
		return;
	if (progress->arrives_at) {
		progress->arrives_at =
			shca_link_send(us, to, bytes - progress->on_link, departs, &first_at);
		progress->on_link = bytes;
		return;
	}
	departs += await_contexts(req);
	stop = shca_link_until_nak(us, to, 128u << req->qp->entry->attr.path_mtu);
	if (answer == SHCA_ACK || req->qp->entry->type == IBV_QPT_UC || bytes < stop)
		progress->on_link = bytes;
	else
		progress->on_link = stop;
	progress->arrives_at =
		shca_link_send(us, to, progress->on_link, departs, &progress->first_at);
}

/* Notes the result of copying `n` bytes. Bytes that arrived are answers: all retries are left for
 * the next ones. */
static void note_part(struct shca_progress *progress, int error, uint64_t n)
{
	progress->error = error;
	if (error)
		return;
	progress->offset += n;
	progress->tries = 0;
}

/*
 * Copies the next part of qp->copy, up to `end`. Returns 0 when all is copied, -EINPROGRESS if the
 * rest needs another step, for which the target is looked up again, or an errno of shca_mem_copy().
 */
static int move_part(struct shca_req *req, uint64_t end)
{
	struct shca_qp *qp = req->qp;
	struct shca_progress *progress = &qp->cur;
	uint64_t n = end - progress->offset;
	uint64_t chunk = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CHUNK);
	int error;

	if (progress->error || progress->offset >= end)
		return progress->error;
	if (n > chunk)
		n = chunk;
	if (req->by == SHCA_BY_CALLER || n < KEEP_LOCK_BELOW) {
		note_part(progress, shca_mem_copy(&qp->copy, progress->offset, n), n);
		return progress->offset < end && !progress->error ? -EINPROGRESS : progress->error;
	}
	/* RUNNING keeps all other threads from executing this queue while posters may take the
	 * lock. An epoch comes last in the lock order, so it ends before the lock is taken
	 * again. */
	pthread_mutex_unlock(&qp->sq_lock);
	error = shca_mem_copy(&qp->copy, progress->offset, n);
	shca_epoch_exit(req->exec);
	pthread_mutex_lock(&qp->sq_lock);
	shca_epoch_enter(req->exec);
	note_part(progress, error, n);
	return -EINPROGRESS;
}

/* Acts on a copy that is not complete, or that failed because registered memory is gone; finds
 * out whose memory that was. */
static enum shca_step not_copied(struct shca_req *req, int e)
{
	switch (e) {
	case -EINPROGRESS:
		return SHCA_STEP_MORE;
	case -EAGAIN: /* another process has held that word's lock for long */
		return shca_req_wait_until(req, shca_now() + WORD_PAUSE);
	case -EFAULT:
		return shca_req_fail(req, IBV_WC_LOC_PROT_ERR);
	case -EREMOTEIO:
		req->qp->cur.error = 0;
		/* When a process dies its memory goes first: wait for the process to be found
		 * dead. */
		if (req->qp->cur.faults++ < FAULT_LOOKS)
			return shca_req_wait_until(req, shca_now() + FAULT_PAUSE);
		if (shca_req_is_send(req->wqe))
			return shca_req_answer(req, shca_resp_receive_failed(&req->target, req->qp,
									     req->qp->cur.rwqe,
									     IBV_WC_LOC_PROT_ERR));
		shca_qp_fail(req->target.hca, req->target.qp, IBV_EVENT_QP_ACCESS_ERR);
		return shca_req_answer(req, SHCA_NAK_ACCESS);
	default:
		/*
		 * The target's process is gone, or has no memory for the copy now: as if no answer
		 * came.
		 */
		req->qp->cur.error = 0;
		return shca_req_answer(req, SHCA_SILENT);
	}
}

/* Claims the receive of a message, once. A message whose target was reset on the way has lost its
 * receive: the target expects the first packet, and the message begins again. */
static enum shca_answer claim(struct shca_req *req)
{
	struct shca_progress *progress = &req->qp->cur;
	enum shca_answer answer;

	if (progress->started) {
		if (!progress->held || shca_resp_holds(&req->target, progress->rwqe))
			return SHCA_ACK;
		progress->started = progress->held = false;
		progress->error = 0;
		progress->offset = 0;
		return SHCA_NAK_SEQ;
	}
	/* On an unreliable connection a message takes the receive of the one before that was
	 * lost half-way (IBA 9.8.2.2). */
	if (req->qp->entry->type == IBV_QPT_UC) {
		progress->rwqe = atomic_load(&req->target.qp->inflight_wqe);
		progress->started = shca_resp_unhold(&req->target, progress->rwqe);
		if (progress->started)
			return SHCA_ACK;
	}
	answer = shca_resp_claim(&req->target, &progress->rwqe);
	if (answer == SHCA_ACK)
		progress->started = true;
	return answer;
}

static void hold(struct shca_req *req)
{
	shca_resp_hold(&req->target, req->qp->cur.rwqe);
	req->qp->cur.held = true;
}

/* Ends the binding that a SEND names. Not inlined, because few messages come here. */
static __attribute__((noinline)) enum shca_answer end_binding(struct shca_req *req)
{
	enum shca_answer answer;

	req->qp->cur.held = false;
	answer = shca_resp_invalidate(&req->target, req->qp, req->wqe, req->qp->cur.rwqe);
	if (answer == SHCA_ACK)
		shca_add(&req->qp->entry->counters[SHCA_C_INVALIDATIONS], 1);
	return answer;
}

static enum shca_step complete_receive(struct shca_req *req, const struct shca_cqe_payload *payload)
{
	enum shca_answer answer = SHCA_ACK;

	if (__builtin_expect(req->wqe->opcode == IBV_WR_SEND_WITH_INV, 0))
		answer = end_binding(req);
	if (answer == SHCA_ACK)
		answer = shca_resp_complete(&req->target, req->qp, req->wqe, req->qp->cur.rwqe,
					    IBV_WC_SUCCESS, req->wqe->length, payload);
	return answer == SHCA_ACK ? done(req) : shca_req_answer(req, answer);
}

static enum shca_step op_send(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	struct shca_copy *copy = &qp->copy;
	struct shca_cqe_payload payload = {.runs = copy->src};
	uint32_t len = req->wqe->length;
	bool first = !qp->cur.started;
	enum shca_answer answer;
	int e;

	if (is_behind(req, qp->ctx->hca))
		return SHCA_STEP_WAIT;
	answer = claim(req);
	if (opens(req, answer))
		return SHCA_STEP_WAIT;
	schedule_send(req, answer);
	if (answer == SHCA_ACK)
		answer = shca_resp_scatter(&req->target, qp, qp->cur.rwqe, len, copy->dst,
					   &copy->ndst);
	if (answer != SHCA_ACK)
		return shca_req_answer(req, answer);
	if (first) {
		shca_add(&qp->entry->counters[SHCA_C_SENDS], 1);
		shca_rq_look_ahead(req->target.receives, req->target.rq, qp->cur.rwqe, &qp->ahead);
	}
	if (!qp->cur.held && shca_cq_carries(req->target.cq, copy, len, &payload.bounce))
		return complete_receive(req, &payload);
	if (!qp->cur.held)
		hold(req);
	copy->src_proc = shca_self.slot;
	copy->dst_proc = req->target.owner;
	e = move_part(req, len);
	if (e)
		return not_copied(req, e);
	if (!shca_resp_unhold(&req->target, qp->cur.rwqe))
		return shca_req_answer(req, SHCA_SILENT);
	return complete_receive(req, NULL);
}

/*
 * Copies the bytes that may be there by now: under the link model the tail of a WRITE or READ comes
 * when its last byte does. Returns false with the next step in *step.
 */
static bool move_in_time(struct shca_req *req, enum shca_step *step)
{
	uint64_t at = req->qp->cur.arrives_at;
	uint32_t len = req->wqe->length;
	bool early = at && at > shca_now();
	int e = move_part(req, !early ? len : len > RDMA_TAIL ? len - RDMA_TAIL : 0);

	req->when = at;
	*step = e ? not_copied(req, e) : SHCA_STEP_WAIT;
	return !e && !early;
}

static enum shca_step op_write(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	struct shca_copy *copy = &qp->copy;
	bool imm = req->wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	enum shca_answer answer;
	bool first = !qp->cur.started;
	enum shca_step step;

	if (is_behind(req, qp->ctx->hca))
		return SHCA_STEP_WAIT;
	schedule(req, false);
	answer = shca_resp_rkey(&req->target, req->wqe, req->wqe->length, IBV_ACCESS_REMOTE_WRITE,
				&copy->dst[0]);
	if (answer == SHCA_ACK && imm)
		answer = claim(req);
	if (answer != SHCA_ACK)
		return shca_req_answer(req, answer);
	if (first)
		shca_add(&qp->entry->counters[SHCA_C_WRITES], 1);
	if (imm && !qp->cur.held)
		hold(req);
	qp->cur.started = true;
	copy->ndst = 1;
	copy->src_proc = shca_self.slot;
	copy->dst_proc = req->target.owner;
	if (!move_in_time(req, &step))
		return step;
	if (!imm)
		return done(req);
	if (!shca_resp_unhold(&req->target, qp->cur.rwqe))
		return shca_req_answer(req, SHCA_SILENT);
	return complete_receive(req, NULL);
}

/* Returns true if the responder allows no READs and atomics, and so refuses them (IBA 9.7.4.1). */
static bool no_read_resources(const struct shca_req *req)
{
	return !req->target.qp->attr.max_dest_rd_atomic;
}

static enum shca_step refuse(struct shca_req *req)
{
	shca_qp_fail(req->target.hca, req->target.qp, IBV_EVENT_QP_REQ_ERR);
	return shca_req_answer(req, SHCA_NAK_INV);
}

static enum shca_step op_read(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	struct shca_copy *copy = &qp->copy;
	enum shca_answer answer;
	enum shca_step step;

	if (no_read_resources(req))
		return refuse(req);
	if (is_behind(req, req->target.hca))
		return SHCA_STEP_WAIT;
	schedule(req, true);
	answer = shca_resp_rkey(&req->target, req->wqe, req->wqe->length, IBV_ACCESS_REMOTE_READ,
				&copy->src[0]);
	if (answer != SHCA_ACK)
		return shca_req_answer(req, answer);
	if (!qp->cur.started)
		shca_add(&qp->entry->counters[SHCA_C_READS], 1);
	qp->cur.started = true;
	copy->nsrc = 1;
	copy->src_proc = req->target.owner;
	copy->dst_proc = shca_self.slot;
	return move_in_time(req, &step) ? done(req) : step;
}

static enum shca_step op_atomic(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	struct shca_run remote;
	uint64_t old = 0, at;
	enum shca_answer answer;
	int e;

	if (req->wqe->length < 8)
		return shca_req_fail(req, IBV_WC_LOC_LEN_ERR);
	req->wqe->length = 8; /* the size of the list does not matter */
	/* IBA 9.7.4.1.5: an address that is not aligned is an invalid request. */
	if (no_read_resources(req) || (req->wqe->remote_addr & 7))
		return refuse(req);
	if (is_behind(req, req->target.hca))
		return SHCA_STEP_WAIT;
	schedule(req, true);
	/* The effect may not be seen before the request has arrived. */
	at = qp->cur.arrives_at ? qp->cur.arrives_at - shca_link_latency() : 0;
	if (at && at > shca_now()) {
		qp->cur.started = true;
		return shca_req_wait_until(req, at);
	}
	answer = shca_resp_rkey(&req->target, req->wqe, 8, IBV_ACCESS_REMOTE_ATOMIC, &remote);
	if (answer != SHCA_ACK)
		return shca_req_answer(req, answer);
	e = shca_mem_atomic(req->target.hca, req->target.owner, &remote,
			    req->wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? SHCA_CMP_SWAP
									  : SHCA_FETCH_ADD,
			    req->wqe->compare_add, req->wqe->swap, &old, qp->copy.direct);
	if (e)
		return not_copied(req, e);
	shca_add(&qp->entry->counters[SHCA_C_ATOMICS], 1);
	shca_mem_scatter(qp->copy.dst, &old, 8);
	return done(req);
}

const shca_req_op shca_req_ops[] = {
	[IBV_WR_RDMA_WRITE] = op_write,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = op_write,
	[IBV_WR_SEND] = op_send,
	[IBV_WR_SEND_WITH_IMM] = op_send,
	[IBV_WR_RDMA_READ] = op_read,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = op_atomic,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = op_atomic,
	[IBV_WR_LOCAL_INV] = shca_req_invalidate,
	[IBV_WR_BIND_MW] = shca_req_bind,
	[IBV_WR_SEND_WITH_INV] = op_send,
};
