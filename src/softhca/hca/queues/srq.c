/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq.c - shared receive queues, basic and XRC.
 */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "fabric/event.h"
#include "fabric/pending_event.h"
#include "fabric/trace.h"
#include "hca/event_ack.h"
#include "hca/object_cache.h"
#include "hca/object_index.h"

static int check(struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *attr,
		 enum ibv_srq_type type)
{
	const struct shca_fabric *fabric = &shca_self.fabric;
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!shca_ours(ctx))
		return EIO;
	if (attr->comp_mask & ~(uint32_t)(xrc | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD))
		return EOPNOTSUPP;
	if ((type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) ||
	    (type == IBV_SRQT_XRC && !shca_opt(fabric, SHCA_O_XRC)))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ctx)
		return EINVAL;
	if (type == IBV_SRQT_XRC && ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq ||
				     attr->xrcd->context != ctx || attr->cq->context != ctx))
		return EINVAL;
	if (attr->attr.max_wr > (uint32_t)shca_opt(fabric, SHCA_O_MAX_SRQ_WR) ||
	    attr->attr.max_sge > (uint32_t)shca_opt(fabric, SHCA_O_MAX_SRQ_SGE))
		return EINVAL;
	return 0;
}

static void attach(struct shca_srq *srq, const struct ibv_srq_init_attr_ex *attr,
		   enum ibv_srq_type type)
{
	srq->ibv.pd = attr->pd;
	srq->pd = shca_pd_use(attr->pd);
	srq->entry->pdn = ((struct shca_pd *)attr->pd)->pdn;
	srq->entry->type = type;
	if (type != IBV_SRQT_XRC)
		return;
	srq->cq = (struct shca_cq *)attr->cq;
	srq->xrcd = (struct shca_xrcd *)attr->xrcd;
	srq->entry->cq = srq->cq->idx;
	srq->entry->xrcd = srq->xrcd->idx;
	atomic_fetch_add(&srq->cq->refs, 1);
	shca_cq_make_bounces(srq->cq);
	atomic_fetch_add(&srq->xrcd->refs, 1);
}

struct ibv_srq *shca_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(ibctx);
	enum ibv_srq_type type =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	struct shca_srq *srq;
	int64_t idx;

	errno = check(ibctx, attr, type);
	if (errno)
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	idx = shca_table_alloc(&shca_self.fabric, ctx->hca, SHCA_SRQ, shca_self.slot);
	if (idx < 0)
		goto free_srq;
	srq->idx = (uint32_t)idx;
	srq->entry = shca_table_entry(&shca_self.fabric, &ctx->hca->tables[SHCA_SRQ], srq->idx);
	srq->number = shca_table_number(srq->entry);
	if (!attr->attr.max_sge)
		attr->attr.max_sge = 1;
	if (shca_rq_init(&srq->rq, &srq->entry->rq, true, &attr->attr.max_wr, attr->attr.max_sge))
		goto free_entry;
	if (shca_object_index_set(ctx->hca_idx, SHCA_SRQ, srq->idx, srq))
		goto free_rq;
	srq->ibv.context = ibctx;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.handle = srq->idx;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->entry->async_channel = ctx->async_channel;
	attach(srq, attr, type);
	shca_context_objects_add(ibctx, &srq->context_node, SHCA_OBJECT_SRQ, srq);
	shca_object_cache_add(ctx->hca, SHCA_SRQ, srq->idx);
	shca_table_publish(srq->entry);
	return &srq->ibv;
free_rq:
	shca_rq_fini(&srq->rq);
free_entry:
	shca_table_free(ctx->hca, SHCA_SRQ, srq->entry);
free_srq:
	free(srq);
	errno = ENOMEM;
	return NULL;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex a = {.srq_context = attr->srq_context,
					 .attr = attr->attr,
					 .comp_mask = IBV_SRQ_INIT_ATTR_PD,
					 .pd = pd};
	struct ibv_srq *srq = shca_create_srq_ex(pd->context, &a);

	if (srq)
		attr->attr = a.attr;
	return srq;
}

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_srq *srq = (struct shca_srq *)ibsrq;
	struct shca_exec *exec = shca_epoch_self();

	if (!shca_ours(ibsrq->context))
		return EIO;
	shca_object_cache_await(shca_ctx(ibsrq->context)->hca, SHCA_SRQ, srq->idx);
	/* mlx5 can't resize an SRQ. */
	if (mask & ~IBV_SRQ_LIMIT)
		return EINVAL;
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->entry->rq.max_wr)
		return EINVAL;
	atomic_store(&srq->entry->rq.limit, attr->srq_limit);
	/* Fewer receives may be posted already. */
	shca_epoch_enter(exec);
	shca_srq_check_limit(shca_ctx(ibsrq->context)->hca, srq->entry);
	shca_epoch_exit(exec);
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct shca_srq *srq = (struct shca_srq *)ibsrq;

	if (!shca_ours(ibsrq->context))
		return EIO;
	attr->max_wr = srq->entry->rq.max_wr;
	attr->max_sge = srq->entry->rq.max_sge;
	attr->srq_limit = atomic_load(&srq->entry->rq.limit);
	return 0;
}

int shca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	/* Any SRQ has a number, as with mlx5. */
	*num = ((struct shca_srq *)ibsrq)->number;
	return 0;
}

int shca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shca_srq *srq = (struct shca_srq *)ibsrq;
	int rc = shca_rq_post(&srq->rq, wr, bad, (int)srq->rq.shared->max_sge);

	if (shca_tracing())
		shca_rq_trace(wr, rc ? *bad : NULL, 0, srq->number);
	return rc;
}

struct ibv_srq *shca_srq_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number)
{
	struct shca_srq *srq = shca_object_index_get(ctx->hca_idx, SHCA_SRQ, idx);

	return srq && srq->number == number ? &srq->ibv : NULL;
}

void shca_srq_check_limit(struct shca_hca *hca, struct shca_srq_entry *entry)
{
	uint32_t limit = atomic_load(&entry->rq.limit);
	uint32_t number = shca_table_number(entry);

	if (!limit || shca_rq_posted(&entry->rq) >= limit)
		return;
	shca_pending_event_note(&shca_self.fabric, hca, IBV_EVENT_SRQ_LIMIT_REACHED, number);
	if (atomic_compare_exchange_strong(&entry->rq.limit, &limit, 0))
		shca_pending_event_send(&shca_self.fabric, hca, IBV_EVENT_SRQ_LIMIT_REACHED,
					number);
	else
		shca_pending_event_clear();
}

void shca_srq_end(struct shca_srq *srq)
{
	struct shca_context *ctx = shca_ctx(srq->ibv.context);

	shca_table_retire(srq->entry);
	/* Requesters that wait for a receive learn that none will come. */
	shca_rq_wake_waiters(&srq->entry->rq);
	shca_epoch_sync(&shca_self.fabric);
	/* The completions stay in the CQ, and polling them fails from here on, as with mlx5. The
	 * CQ's lock keeps the SRQ from being freed under a poll. */
	shca_event_ack_lock();
	if (srq->cq)
		pthread_mutex_lock(&srq->cq->lock);
	shca_object_index_set(ctx->hca_idx, SHCA_SRQ, srq->idx, NULL);
	if (srq->cq)
		pthread_mutex_unlock(&srq->cq->lock);
	shca_event_ack_unlock();
	shca_event_forget(&shca_self.fabric, ctx->hca, shca_self.slot, ctx->async_channel, srq->idx,
			  srq->number);
	shca_rq_fini(&srq->rq);
	shca_table_free(ctx->hca, SHCA_SRQ, srq->entry);
}

int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_srq *srq = (struct shca_srq *)ibsrq;

	if (!shca_ours(ibsrq->context))
		return EIO;
	if (atomic_load(&srq->refs))
		return EBUSY;
	shca_object_cache_drop(shca_ctx(ibsrq->context)->hca, SHCA_SRQ, srq->idx);
	shca_context_objects_remove(&srq->context_node);
	shca_srq_end(srq);
	shca_event_ack_wait(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed,
			    &srq->events_given);
	atomic_fetch_sub(&srq->pd->refs, 1);
	if (srq->cq) {
		atomic_fetch_sub(&srq->cq->refs, 1);
		atomic_fetch_sub(&srq->xrcd->refs, 1);
	}
	free(srq);
	return 0;
}
