/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.c - queue pairs: what is common to their life after creation: errors, events, flushing, the
 * end.
 */
#include "hca/queues/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock/clock.h"
#include "fabric/proc.h"
#include "fabric/xrc_life.h"
#include "hca/context_objects.h"
#include "hca/event_ack.h"
#include "hca/execution/resp.h"
#include "hca/object_index.h"
#include "hca/ops.h"
#include "mcast.h"
#include "qp_make.h"

/* Keeps a QP from being freed while shca_qp_flush_failed() looks at it, and guards lists of target
 * handles. */
static pthread_mutex_t qps_lock = PTHREAD_MUTEX_INITIALIZER;

void shca_qp_reset(void)
{
	pthread_mutex_init(&qps_lock, NULL);
}

/* ---------------------------------------------------------------- errors */

void shca_qp_fail(struct shca_hca *hca, struct shca_qp_entry *e, enum ibv_event_type type)
{
	uint32_t s = atomic_load(&e->state), number = shca_table_number(e);
	bool ours = false;

	shca_pending_event_note(&shca_self.fabric, hca, type, number);
	while (!ours && s != IBV_QPS_ERR && s != IBV_QPS_RESET)
		ours = atomic_compare_exchange_weak(&e->state, &s, IBV_QPS_ERR);
	if (ours)
		shca_pending_event_send(&shca_self.fabric, hca, type, number);
	else
		shca_pending_event_clear();
}

/* ---------------------------------------------------------------- flushing */

/* How long the engine waits for a sender that may be stopped in the middle of a message (ns): after
 * that its receive is flushed all the same, and the message fails when it goes on. */
#define FLUSH_PATIENCE 20000000u

static void flush_one(struct shca_qp *qp, struct shca_cqe *c, uint32_t slot)
{
	c->wqe = slot;
	shca_cq_produce(qp->ctx->hca, qp->recv_cq->entry, c, NULL);
	shca_count(qp->ctx->hca, SHCA_C_FLUSHED, 1);
}

struct flushed {
	const struct shca_qp *qp;
	bool *slots; /* that are accounted for */
};

static void mark_completed(struct shca_cq *cq, struct shca_cqe *c, void *arg)
{
	const struct flushed *f = arg;

	(void)cq;
	if ((c->flags & SHCA_CQE_RECV) && !(c->flags & SHCA_CQE_SRQ) && c->rsc == f->qp->idx &&
	    c->qp_num == f->qp->ibv.qp_base.qp_num)
		f->slots[c->wqe & f->qp->rq.mask] = true;
}

/* So long as FLUSH_PATIENCE: who resizes the CQ may wait for a process that is stopped. By the
 * clock of pthread_mutex_timedlock(), as ThreadSanitizer doesn't know of its younger sister. */
static bool lock_in_time(pthread_mutex_t *lock)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += FLUSH_PATIENCE;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return !pthread_mutex_timedlock(lock, &t);
}

/*
 * Receives that a sender took which was killed before it completed or held them. Called when no
 * sender takes one any more, or is in the middle of that: what is neither free nor posted nor in
 * the CQ is one. The locks keep polls from freeing some meanwhile, and other flushes from taking
 * some.
 */
static void flush_lost(struct shca_qp *qp, struct shca_cqe *c)
{
	struct shca_rq_local *rq = &qp->rq;
	struct flushed f = {qp, calloc(rq->shared->size, sizeof(bool))};
	struct shca_exec *x = shca_exec_self();

	if (!f.slots || !lock_in_time(&qp->recv_cq->lock)) {
		free(f.slots);
		return;
	}
	pthread_mutex_lock(&rq->lock);
	shca_cq_each(qp->recv_cq, mark_completed, &f);
	shca_rq_mark(rq, f.slots);
	shca_epoch_enter(x);
	for (uint32_t i = 0; i < rq->shared->max_wr; i++) {
		if (!f.slots[i])
			flush_one(qp, c, i);
	}
	shca_epoch_exit(x);
	pthread_mutex_unlock(&rq->lock);
	pthread_mutex_unlock(&qp->recv_cq->lock);
	free(f.slots);
}

/* Under the lock of the queue, so that flush_lost() finds each of them completed or where it was.
 */
static void flush_posted(struct shca_qp *qp, struct shca_cqe *c)
{
	struct shca_exec *x = shca_exec_self();
	uint32_t slot;

	pthread_mutex_lock(&qp->rq.lock);
	shca_epoch_enter(x);
	while (!shca_rq_claim(&shca_self.fabric, shca_self.slot, qp->rq.shared, &slot))
		flush_one(qp, c, slot);
	shca_epoch_exit(x);
	pthread_mutex_unlock(&qp->rq.lock);
}

/* Likewise. */
static void flush_held(struct shca_qp *qp)
{
	struct shca_exec *x = shca_exec_self();

	if (qp->rq.shared)
		pthread_mutex_lock(&qp->rq.lock);
	shca_epoch_enter(x);
	shca_resp_flush_held(qp->ctx->hca, qp->entry);
	shca_epoch_exit(x);
	if (qp->rq.shared)
		pthread_mutex_unlock(&qp->rq.lock);
}

/* `alone`: nobody is inside an epoch with the queue, as it was before the QP failed. */
static void flush_rq(struct shca_qp *qp, bool alone)
{
	struct shca_cqe c = {.rsc = qp->idx,
			     .qp_num = qp->ibv.qp_base.qp_num,
			     .opcode = IBV_WC_RECV,
			     .status = IBV_WC_WR_FLUSH_ERR,
			     .visible_at = atomic_load(&qp->entry->last_visible),
			     .flags = SHCA_CQE_RECV};
	uint64_t sends_until;

	/* Not before the error of the send queue that is the cause. */
	pthread_mutex_lock(&qp->sq_lock);
	sends_until = qp->last_visible;
	pthread_mutex_unlock(&qp->sq_lock);
	if (c.visible_at < sends_until)
		c.visible_at = shca_in_order(&qp->entry->last_visible, sends_until);
	flush_held(qp);
	if (!qp->rq.shared)
		return;
	/* The oldest first. */
	if (alone)
		flush_lost(qp, &c);
	flush_posted(qp, &c);
}

void shca_qp_flush(struct shca_qp *qp, uint64_t patience)
{
	bool alone, again;

	/* Whoever is sending to us, or executing our queue, sees ERR when it looks next. */
	shca_engine_remove(qp);
	alone = shca_epoch_sync_for(&shca_self.fabric, shca_self.slot, patience);
	pthread_mutex_lock(&qp->sq_lock);
	if (qp->sq && qp->sched == SHCA_SCHED_IDLE)
		shca_req_flush(qp);
	again = atomic_exchange(&qp->flushed, true);
	pthread_mutex_unlock(&qp->sq_lock);
	flush_rq(qp, alone && !again);
	if (!again && qp->entry->srq)
		shca_event_send_qp(&shca_self.fabric, qp->ctx->hca, qp->entry,
				   IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void flush_if_failed(void *object)
{
	struct shca_qp *qp = object;

	if (qp->entry->type != IBV_QPT_XRC_RECV && shca_qp_state(qp->entry) == IBV_QPS_ERR &&
	    !qp->flushed)
		shca_qp_flush(qp, FLUSH_PATIENCE);
}

void shca_qp_no_flush(struct shca_qp *qp)
{
	pthread_mutex_lock(&qps_lock);
	atomic_store(&qp->flushed, true);
	pthread_mutex_unlock(&qps_lock);
}

void shca_qp_flush_failed(void)
{
	pthread_mutex_lock(&qps_lock);
	shca_object_index_each(SHCA_QP, flush_if_failed);
	pthread_mutex_unlock(&qps_lock);
}

int shca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shca_qp *qp = (struct shca_qp *)ibqp;
	int r;

	if (!qp->rq.shared || shca_qp_state(qp->entry) == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	r = shca_rq_post(&qp->rq, wr, bad);
	/* Until the flush has been here, a sender may still be writing into an earlier receive. */
	if (atomic_load(&qp->flushed))
		flush_rq(qp, false);
	return r;
}

/* ---------------------------------------------------------------- finding */

struct ibv_qp *shca_qp_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number)
{
	struct shca_qp *qp = shca_object_index_get(ctx->hca_idx, SHCA_QP, idx);

	return qp && qp->ibv.qp_base.qp_num == number ? &qp->ibv.qp_base : NULL;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
	struct shca_qp *qp = (struct shca_qp *)ibqp;

	return qp->ibv.wr_start ? &qp->ibv : NULL;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0; /* but for the last word, bytes may become visible in any order */
}

/* ---------------------------------------------------------------- the end */

int shca_qp_add_handle(struct shca_qp *qp)
{
	unsigned hca = qp->ctx->hca_idx;
	struct shca_qp *first;
	int r = 0;

	pthread_mutex_lock(&qps_lock);
	first = shca_object_index_get(hca, SHCA_QP, qp->idx);
	if (first) {
		qp->next_handle = first->next_handle;
		first->next_handle = qp;
	} else {
		r = shca_object_index_set(hca, SHCA_QP, qp->idx, qp);
	}
	pthread_mutex_unlock(&qps_lock);
	return r;
}

/* Takes a handle out; true if it was this process's last of that QP. */
static bool remove_handle(struct shca_qp *qp)
{
	unsigned hca = qp->ctx->hca_idx;
	struct shca_qp *first;
	bool last = false;

	/* Events name the object until here; see event_ack.h. */
	shca_event_ack_lock();
	pthread_mutex_lock(&qps_lock);
	first = shca_object_index_get(hca, SHCA_QP, qp->idx);
	if (first == qp) {
		shca_object_index_set(hca, SHCA_QP, qp->idx, qp->next_handle);
		last = !qp->next_handle;
	} else {
		while (first->next_handle != qp)
			first = first->next_handle;
		first->next_handle = qp->next_handle;
	}
	pthread_mutex_unlock(&qps_lock);
	shca_event_ack_unlock();
	return last;
}

/* A completion that goes with its QP gives its receive back to the SRQ. */
static void dropped(struct shca_cq *cq, const struct shca_cqe *c)
{
	struct shca_srq *srq;

	if (!(c->flags & SHCA_CQE_SRQ))
		return;
	srq = shca_object_index_get(shca_ctx(cq->ibv.context)->hca_idx, SHCA_SRQ, c->rsc);
	if (srq)
		shca_rq_release(&srq->rq, c->wqe);
}

void shca_qp_drop_held(struct shca_qp *qp)
{
	if (atomic_exchange(&qp->entry->inflight_rsc, 0) && qp->srq)
		shca_rq_release(&qp->srq->rq, atomic_load(&qp->entry->inflight_wqe));
}

void shca_qp_purge(struct shca_qp *qp)
{
	struct shca_cq *cqs[2] = {qp->send_cq, qp->recv_cq != qp->send_cq ? qp->recv_cq : NULL};

	for (unsigned i = 0; i < 2; i++) {
		if (!cqs[i])
			continue;
		pthread_mutex_lock(&cqs[i]->lock);
		shca_cq_purge(cqs[i], qp->idx, qp->ibv.qp_base.qp_num, dropped);
		pthread_mutex_unlock(&cqs[i]->lock);
	}
}

/* As with other objects, no event of a QP that this process has given up is left. */
static void forget_tgt_events(const struct shca_qp *qp)
{
	uint32_t channel = atomic_load(&shca_self.proc->tgt_channel[qp->ctx->hca_idx]);
	uint32_t qpn = qp->ibv.qp_base.qp_num;

	shca_event_forget(&shca_self.fabric, shca_self.slot, qp->ctx->async_channel, qp->idx, qpn);
	if (channel && channel - 1 != qp->ctx->async_channel)
		shca_event_forget(&shca_self.fabric, shca_self.slot, channel - 1, qp->idx, qpn);
}

static void end_tgt(struct shca_qp *qp, bool left)
{
	bool last = remove_handle(qp);

	if (last && left &&
	    shca_tgt_leave(&shca_self.fabric, qp->ctx->hca, qp->entry, shca_self.slot))
		return;

	/* A sender that was killed half-way left a receive behind: its SRQ's owner gets it back
	 * flushed. */
	if (last && !shca_opened_by_others(qp->entry->openers, shca_self.slot)) {
		struct shca_exec *x = shca_exec_self();

		shca_qp_fail(qp->ctx->hca, qp->entry, SHCA_NO_EVENT);
		shca_epoch_sync_for(&shca_self.fabric, SHCA_HOLDS_ANY, FLUSH_PATIENCE);
		shca_epoch_enter(x);
		shca_resp_flush_held(qp->ctx->hca, qp->entry);
		shca_epoch_exit(x);
	}
	if (!last)
		return;
	shca_tgt_close(&shca_self.fabric, qp->ctx->hca, qp->entry, shca_self.slot);
	forget_tgt_events(qp);
}

static void end_own(struct shca_qp *qp)
{
	shca_qp_no_flush(qp);
	shca_table_retire(qp->entry);
	shca_engine_remove(qp);
	shca_epoch_sync(&shca_self.fabric);
	shca_qp_drop_held(qp);
	shca_qp_purge(qp);
	remove_handle(qp);
	shca_event_forget(&shca_self.fabric, shca_self.slot, qp->ctx->async_channel, qp->idx,
			  qp->ibv.qp_base.qp_num);
	shca_rq_fini(&qp->rq);
	shca_table_free(qp->ctx->hca, SHCA_QP, qp->entry);
}

void shca_qp_end(struct shca_qp *qp, bool left)
{
	if (left && qp->ibv.qp_base.qp_type == IBV_QPT_UD)
		shca_mcast_leave_all(&shca_self.fabric, qp->ctx->hca_idx, qp->ibv.qp_base.qp_num);
	if (qp->ibv.qp_base.qp_type == IBV_QPT_XRC_RECV)
		end_tgt(qp, left);
	else
		end_own(qp);
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_qp *qp = (struct shca_qp *)ibqp;

	if (!shca_ours(ibqp->context))
		return EIO;
	if (ibqp->qp_type == IBV_QPT_UD &&
	    shca_mcast_member(&shca_self.fabric, qp->ctx->hca_idx, ibqp->qp_num))
		return EBUSY;
	shca_context_objects_remove(&qp->context_node);
	shca_qp_end(qp, false);
	shca_wait_qp_acks(qp);
	shca_qp_release(qp);
	return 0;
}
