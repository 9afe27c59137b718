/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.c - flushing QPs in ERR: their sends, and the receives that were posted, held or lost.
 */
#include "flush.h"

#include <stdlib.h>
#include <time.h>

#include "fabric/epoch.h"
#include "fabric/event.h"
#include "hca/object_index.h"
#include "hca/queues/cq_ring.h"
#include "req.h"
#include "runqueue.h"

/* Keeps a QP from being freed while shca_flush_failed_qps() looks at it. */
static pthread_mutex_t qps_lock = PTHREAD_MUTEX_INITIALIZER;

static void flush_one(struct shca_qp *qp, struct shca_cqe *cqe, uint32_t slot)
{
	cqe->wqe = slot;
	shca_cq_produce(qp->ctx->hca, qp->recv_cq->entry, cqe, NULL);
	shca_count(qp->ctx->hca, SHCA_C_FLUSHED, 1);
}

struct flushed {
	const struct shca_qp *qp;
	bool *slots; /* receives that are accounted for */
};

static void mark_completed(struct shca_cq *cq, struct shca_cqe *cqe, void *arg)
{
	const struct flushed *flushed = arg;

	(void)cq;
	if ((cqe->flags & SHCA_CQE_RECV) && !(cqe->flags & SHCA_CQE_SRQ) &&
	    cqe->rsc == flushed->qp->idx && cqe->qp_num == flushed->qp->ibv.qp_base.qp_num)
		flushed->slots[cqe->wqe & flushed->qp->rq.mask] = true;
}

/* Locks a mutex, but gives up after SHCA_FLUSH_PATIENCE: a thread that resizes the CQ may hold
 * it while it waits for a stopped process. ThreadSanitizer knows pthread_mutex_timedlock() but
 * not pthread_mutex_clocklock(), hence this clock. */
static bool lock_within_patience(pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SHCA_FLUSH_PATIENCE;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !pthread_mutex_timedlock(lock, &until);
}

/*
 * Completes receives that are lost: a sender claimed each and was killed before it completed or
 * held the receive. Called when no sender is claiming any more, perhaps again. A receive is lost if
 * it is neither free nor posted nor in the CQ. The locks keep polls from freeing receives
 * meanwhile, and other flushes from claiming them. Returns false without memory, or without a lock
 * in time.
 */
static bool flush_lost(struct shca_qp *qp, struct shca_cqe *cqe)
{
	struct shca_rq_local *rq = &qp->rq;
	struct flushed flushed = {qp, calloc(rq->shared->size, sizeof(bool))};
	struct shca_exec *exec = shca_epoch_self();

	if (!flushed.slots || !lock_within_patience(&qp->recv_cq->lock)) {
		free(flushed.slots);
		return false;
	}
	pthread_mutex_lock(&rq->lock);
	shca_cq_each(qp->recv_cq, mark_completed, &flushed);
	shca_rq_mark(rq, flushed.slots);
	shca_epoch_enter(exec);
	for (uint32_t i = 0; i < rq->shared->max_wr; i++) {
		if (!flushed.slots[i])
			flush_one(qp, cqe, i);
	}
	shca_epoch_exit(exec);
	pthread_mutex_unlock(&rq->lock);
	pthread_mutex_unlock(&qp->recv_cq->lock);
	free(flushed.slots);
	return true;
}

/* Completes the posted receives, under the queue's lock, so that flush_lost() finds each either
 * completed or in its place. */
static void flush_posted(struct shca_qp *qp, struct shca_cqe *cqe)
{
	struct shca_exec *exec = shca_epoch_self();
	uint32_t slot;

	pthread_mutex_lock(&qp->rq.lock);
	shca_epoch_enter(exec);
	while (shca_rq_claim((char *)qp->rq.ring, qp->rq.shared, &slot))
		flush_one(qp, cqe, slot);
	shca_epoch_exit(exec);
	pthread_mutex_unlock(&qp->rq.lock);
}

void shca_flush_held(struct shca_qp *qp)
{
	struct shca_exec *exec = shca_epoch_self();

	/* flush_lost() finds the receive either completed or in its place. */
	if (qp->rq.shared)
		pthread_mutex_lock(&qp->rq.lock);
	shca_epoch_enter(exec);
	shca_resp_flush_held(qp->ctx->hca, qp->entry);
	shca_epoch_exit(exec);
	if (qp->rq.shared)
		pthread_mutex_unlock(&qp->rq.lock);
}

/* Flushes the receive side. `alone`: every thread that was in an epoch with the queue before the
 * QP failed has left it. Returns true if no receive is lost. */
static bool flush_rq(struct shca_qp *qp, bool alone)
{
	struct shca_cqe cqe = {.rsc = qp->idx,
			       .qp_num = qp->ibv.qp_base.qp_num,
			       .opcode = IBV_WC_RECV,
			       .status = IBV_WC_WR_FLUSH_ERR,
			       .visible_at = atomic_load(&qp->entry->last_visible),
			       .flags = SHCA_CQE_RECV};
	uint64_t sends_until;
	bool complete;

	/* Receives don't become visible before the error of the send queue that is the cause. */
	pthread_mutex_lock(&qp->sq_lock);
	sends_until = qp->last_visible;
	pthread_mutex_unlock(&qp->sq_lock);
	if (cqe.visible_at < sends_until)
		cqe.visible_at = shca_resp_in_order(&qp->entry->last_visible, sends_until);
	shca_flush_held(qp);
	if (!qp->rq.shared)
		return true;
	/* Oldest first. */
	complete = alone && flush_lost(qp, &cqe);
	flush_posted(qp, &cqe);
	return complete;
}

void shca_flush_qp(struct shca_qp *qp, uint64_t patience)
{
	bool alone, again;

	/* Threads that are sending to the QP or executing its queue see ERR at their next look. */
	shca_runqueue_remove(qp);
	alone = shca_epoch_sync_for(&shca_self.fabric, shca_self.slot, patience);
	pthread_mutex_lock(&qp->sq_lock);
	if (qp->sq && qp->sched == SHCA_SCHED_IDLE)
		shca_req_flush(qp);
	again = atomic_exchange(&qp->flushed, true);
	pthread_mutex_unlock(&qp->sq_lock);
	atomic_store(&qp->may_lack, !flush_rq(qp, alone));
	if (!again && qp->entry->srq)
		shca_event_send_qp(&shca_self.fabric, qp->ctx->hca, qp->entry,
				   IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void flush_if_failed(void *object, void *arg)
{
	struct shca_qp *qp = object;

	(void)arg;
	if (qp->entry->type != IBV_QPT_XRC_RECV && shca_qp_state(qp->entry) == IBV_QPS_ERR &&
	    (!qp->flushed || qp->may_lack))
		shca_flush_qp(qp, SHCA_FLUSH_PATIENCE);
}

void shca_flush_disable(struct shca_qp *qp)
{
	pthread_mutex_lock(&qps_lock);
	atomic_store(&qp->flushed, true);
	atomic_store(&qp->may_lack, false);
	pthread_mutex_unlock(&qps_lock);
}

void shca_flush_failed_qps(void)
{
	pthread_mutex_lock(&qps_lock);
	shca_object_index_each(SHCA_QP, flush_if_failed, NULL);
	pthread_mutex_unlock(&qps_lock);
}

void shca_flush_late_receives(struct shca_qp *qp)
{
	flush_rq(qp, false);
}

void shca_flush_lock(void)
{
	pthread_mutex_lock(&qps_lock);
}

void shca_flush_unlock(void)
{
	pthread_mutex_unlock(&qps_lock);
}

void shca_flush_reset(void)
{
	pthread_mutex_init(&qps_lock, NULL);
}
