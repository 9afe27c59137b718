/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.c - finding and ending queue pairs.
 */
#include "qp.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "fabric/event.h"
#include "fabric/pending_event.h"
#include "fabric/xrc_life.h"
#include "hca/event_ack.h"
#include "hca/execution/flush.h"
#include "hca/execution/runqueue.h"
#include "hca/object_cache.h"
#include "hca/object_index.h"
#include "hca/queues/cq_ring.h"
#include "mcast.h"

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
	return 0; /* all but the last word may become visible in any order */
}

/* ---------------------------------------------------------------- the end */

/* Makes a change of this process's handles of a target QP, and of its bit among the QP's openers,
 * one step. */
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

void shca_qp_lock_handles(void)
{
	pthread_mutex_lock(&handles_lock);
}

void shca_qp_unlock_handles(void)
{
	pthread_mutex_unlock(&handles_lock);
}

void shca_qp_reset(void)
{
	pthread_mutex_init(&handles_lock, NULL);
}

int shca_qp_add_handle(struct shca_qp *qp)
{
	unsigned hca = qp->ctx->hca_idx;
	struct shca_qp *first;
	int rc = 0;

	shca_flush_lock();
	first = shca_object_index_get(hca, SHCA_QP, qp->idx);
	if (first) {
		qp->next_handle = first->next_handle;
		first->next_handle = qp;
	} else {
		rc = shca_object_index_set(hca, SHCA_QP, qp->idx, qp);
	}
	shca_flush_unlock();
	return rc;
}

/* Removes a handle. Returns true if it was this process's last handle of that QP. */
static bool remove_handle(struct shca_qp *qp)
{
	unsigned hca = qp->ctx->hca_idx;
	struct shca_qp *first;
	bool last = false;

	/* Events name the object until here; see event_ack.h. */
	shca_event_ack_lock();
	shca_flush_lock();
	first = shca_object_index_get(hca, SHCA_QP, qp->idx);
	if (first == qp) {
		shca_object_index_set(hca, SHCA_QP, qp->idx, qp->next_handle);
		last = !qp->next_handle;
	} else {
		while (first->next_handle != qp)
			first = first->next_handle;
		first->next_handle = qp->next_handle;
	}
	shca_flush_unlock();
	shca_event_ack_unlock();
	return last;
}

/* Gives the receive of a completion that is dropped with its QP back to the SRQ. */
static void dropped(struct shca_cq *cq, const struct shca_cqe *cqe)
{
	struct shca_srq *srq;

	if (!(cqe->flags & SHCA_CQE_SRQ))
		return;
	srq = shca_object_index_get(shca_ctx(cq->ibv.context)->hca_idx, SHCA_SRQ, cqe->rsc);
	if (srq)
		shca_rq_release(&srq->rq, cqe->wqe);
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

/* Drops the events of a target QP that this process has given up, as is done for other objects.
 * `channel`: where its events went, + 1. */
static void forget_tgt_events(const struct shca_qp *qp, uint32_t channel)
{
	uint32_t qpn = qp->ibv.qp_base.qp_num;

	shca_event_forget(&shca_self.fabric, qp->ctx->hca, shca_self.slot, qp->ctx->async_channel,
			  qp->idx, qpn);
	if (channel && channel - 1 != qp->ctx->async_channel)
		shca_event_forget(&shca_self.fabric, qp->ctx->hca, shca_self.slot, channel - 1,
				  qp->idx, qpn);
}

void shca_qp_note_tgt_handle(struct shca_context *ctx)
{
	ctx->tgt_handles++;
	atomic_store(&shca_self.proc->tgt_channel[ctx->hca_idx], ctx->async_channel + 1);
}

/* A search for a context on an HCA that has a handle of a target QP. */
struct search {
	unsigned hca;
	struct shca_context *found;
};

static void find_context(void *object, void *arg)
{
	const struct shca_qp *qp = object;
	struct search *search = arg;

	if (qp->ibv.qp_base.qp_type == IBV_QPT_XRC_RECV && qp->ctx->hca_idx == search->hca)
		search->found = qp->ctx;
}

/* Has the events of target QPs sent to contexts that still have handles, after the handle `qp` was
 * removed. The channel in the QP's entry is its creator's. */
static void leave_events(struct shca_qp *qp)
{
	struct shca_context *ctx = qp->ctx;
	_Atomic uint32_t *channel = &shca_self.proc->tgt_channel[ctx->hca_idx];
	struct shca_qp *other;

	shca_flush_lock();
	other = shca_object_index_get(ctx->hca_idx, SHCA_QP, qp->idx);
	if (other && shca_word_owner(atomic_load(&qp->entry->state_word)) == shca_self.slot &&
	    qp->entry->async_channel == ctx->async_channel)
		qp->entry->async_channel = other->ctx->async_channel;
	if (!--ctx->tgt_handles && atomic_load(channel) == ctx->async_channel + 1) {
		struct search search = {.hca = ctx->hca_idx};

		shca_object_index_each(SHCA_QP, find_context, &search);
		atomic_store(channel, search.found ? search.found->async_channel + 1 : 0);
	}
	shca_flush_unlock();
}

static void end_tgt(struct shca_qp *qp, bool left)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_hca *hca = qp->ctx->hca;
	bool given_up, ended = false;
	uint32_t channel;

	shca_qp_lock_handles();
	channel = atomic_load(&shca_self.proc->tgt_channel[qp->ctx->hca_idx]);
	given_up = remove_handle(qp);
	leave_events(qp);
	given_up = given_up && !(left && shca_tgt_leave(fabric, hca, qp->entry, shca_self.slot));
	if (given_up)
		ended = shca_tgt_close(hca, qp->entry, shca_self.slot);
	shca_qp_unlock_handles();
	if (ended) {
		if (!left)
			shca_object_cache_drop(hca, SHCA_QP, qp->idx);
		/* A sender that was killed half-way left a receive behind: the SRQ's owner gets
		 * that receive flushed. */
		shca_epoch_sync_for(fabric, SHCA_HOLDS_ANY, SHCA_FLUSH_PATIENCE);
		shca_flush_held(qp);
		shca_tgt_free(fabric, hca, qp->entry);
	}
	if (given_up)
		forget_tgt_events(qp, channel);
}

static void end_own(struct shca_qp *qp)
{
	shca_flush_disable(qp);
	shca_table_retire(qp->entry);
	shca_runqueue_remove(qp);
	shca_epoch_sync(&shca_self.fabric);
	shca_qp_drop_held(qp);
	shca_qp_purge(qp);
	remove_handle(qp);
	shca_event_forget(&shca_self.fabric, qp->ctx->hca, shca_self.slot, qp->ctx->async_channel,
			  qp->idx, qp->ibv.qp_base.qp_num);
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

void shca_qp_free_sq(struct shca_qp *qp, struct shca_pd *pd)
{
	if (!qp->sq_by_user)
		free(qp->sq);
	else if (qp->sq && pd->free)
		pd->free(&pd->ibv, pd->pd_context, qp->sq, SHCA_QP_MEMORY);
}

/* Drops references to PD, CQs, SRQ and XRC domain, and frees the private struct. */
static void release(struct shca_qp *qp)
{
	shca_qp_free_sq(qp, qp->pd);
	if (qp->pd)
		atomic_fetch_sub(&qp->pd->refs, 1);
	if (qp->xrcd)
		atomic_fetch_sub(&qp->xrcd->refs, 1);
	if (qp->send_cq)
		atomic_fetch_sub(&qp->send_cq->refs, 1);
	if (qp->recv_cq)
		atomic_fetch_sub(&qp->recv_cq->refs, 1);
	if (qp->srq)
		atomic_fetch_sub(&qp->srq->refs, 1);
	pthread_mutex_destroy(&qp->sq_lock);
	free(qp->datagram);
	free(qp);
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_qp *qp = (struct shca_qp *)ibqp;

	if (!shca_ours(ibqp->context))
		return EIO;
	if (ibqp->qp_type == IBV_QPT_UD &&
	    shca_mcast_is_member(&shca_self.fabric, qp->ctx->hca_idx, ibqp->qp_num))
		return EBUSY;
	if (ibqp->qp_type != IBV_QPT_XRC_RECV)
		shca_object_cache_drop(qp->ctx->hca, SHCA_QP, qp->idx);
	shca_context_objects_remove(&qp->context_node);
	shca_qp_end(qp, false);
	shca_event_ack_wait(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, &qp->events_given);
	release(qp);
	return 0;
}
