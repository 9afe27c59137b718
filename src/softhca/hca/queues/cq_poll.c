/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_poll.c - polling: completions become work completions, and the bytes that come with them go
 * where they belong. Arming.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "cq_bounce.h"
#include "cq_event.h"
#include "hca/memory/mr.h"
#include "hca/object_index.h"
#include "sq.h"

/* Polls in vain after which a thread yields its CPU, and then each so many: whoever works for it
 * may need it. */
#define YIELD_AFTER 256
#define YIELD_EACH  32

void shca_cq_idle(struct shca_cq *cq)
{
	uint32_t n = __atomic_load_n(&cq->empty_polls, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&cq->empty_polls, n, __ATOMIC_RELAXED);
	if (n >= YIELD_AFTER && n % YIELD_EACH == 0)
		sched_yield();
}

/* Which receive queue a completion is of; NULL: it is gone. */
static struct shca_rq_local *rq_of(struct shca_context *ctx, const struct shca_cqe *c)
{
	struct shca_srq *srq;
	struct shca_qp *qp;

	if (c->flags & SHCA_CQE_SRQ) {
		srq = shca_object_index_get(ctx->hca_idx, SHCA_SRQ, c->rsc);
		return srq && srq->number == c->srqn ? &srq->rq : NULL;
	}
	qp = shca_object_index_get(ctx->hca_idx, SHCA_QP, c->rsc);
	return qp && qp->ibv.qp_base.qp_num == c->qp_num ? &qp->rq : NULL;
}

/* Puts the bytes that came with a completion where its receive wants them. Its keys were checked by
 * the sender. */
static void scatter(const struct shca_cq *cq, const struct shca_rwqe *w, const struct shca_cqe *c)
{
	struct shca_hca *hca = shca_ctx(cq->ibv.context)->hca;
	const uint8_t *from = shca_cq_data(cq, c);
	uint32_t left = c->payload;

	for (uint32_t i = 0; left && i < w->num_sge; i++) {
		uint32_t n = w->sge[i].length < left ? w->sge[i].length : left;
		struct shca_run run;

		/* Not checked again, only translated: a region that went since then takes its data
		 * with it. */
		if (!shca_mr_translate(hca, w->sge[i].lkey, w->sge[i].addr, n, &run) && !run.null)
			memcpy((void *)(uintptr_t)run.addr, from, n);
		from += n;
		left -= n;
	}
}

static void deliver_payload(struct shca_cq *cq, struct shca_cqe *c, void *arg)
{
	struct shca_context *ctx = shca_ctx(cq->ibv.context);
	struct shca_rq_local *rq = c->flags & SHCA_CQE_RECV && c->payload ? rq_of(ctx, c) : NULL;

	(void)arg;
	if (!rq)
		return;
	scatter(cq, shca_rq_own_wqe(rq, c->wqe), c);
	c->payload = 0;
}

void shca_cq_deliver_payloads(struct shca_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	shca_cq_each(cq, deliver_payload, NULL);
	pthread_mutex_unlock(&cq->lock);
}

static int read_recv(struct shca_cq *cq, const struct shca_cqe *c, struct ibv_wc *wc)
{
	struct shca_context *ctx = shca_ctx(cq->ibv.context);
	struct shca_rq_local *rq = rq_of(ctx, c);
	struct shca_rwqe *w;

	if (!rq)
		return -ENOENT;
	w = shca_rq_own_wqe(rq, c->wqe);
	wc->wr_id = w->wr_id;
	if (c->payload)
		scatter(cq, w, c);
	shca_rq_release(rq, c->wqe);
	return 0;
}

static int read_send(struct shca_cq *cq, const struct shca_cqe *c, struct ibv_wc *wc)
{
	struct shca_qp *qp =
		shca_object_index_get(shca_ctx(cq->ibv.context)->hca_idx, SHCA_QP, c->rsc);

	if (!qp || qp->ibv.qp_base.qp_num != c->qp_num)
		return -ENOENT;
	wc->wr_id = shca_sq_complete(qp, c->wqe);
	return 0;
}

int shca_cq_read(struct shca_cq *cq, const struct shca_cqe *c, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){.status = c->status,
			      .opcode = c->opcode,
			      /* As mlx5 shows its syndrome: not 0 when something is wrong. */
			      .vendor_err = c->status == IBV_WC_SUCCESS ? 0 : 0x80u | c->status,
			      .byte_len = c->byte_len,
			      .imm_data = c->imm,
			      .qp_num = c->qp_num,
			      .src_qp = c->src_qp,
			      .wc_flags = c->wc_flags,
			      .slid = c->slid,
			      .sl = SHCA_CQE_SL(c->flags)};
	return c->flags & SHCA_CQE_RECV ? read_recv(cq, c, wc) : read_send(cq, c, wc);
}

int shca_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct shca_cq *cq = (struct shca_cq *)ibcq;
	int got = 0, err = 0;

	if (!shca_cq_maybe(cq)) {
		shca_cq_idle(cq);
		return 0;
	}
	pthread_mutex_lock(&cq->lock);
	while (got < n && !err) {
		struct shca_cqe *c = shca_cq_peek(cq);

		if (!c)
			break;
		err = shca_cq_read(cq, c, &wc[got]);
		shca_cq_pop(cq);
		got += !err;
	}
	if (got)
		__atomic_store_n(&cq->empty_polls, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&cq->lock);
	/* What was polled before is handed out first; the error comes back only when it is alone
	 * (mlx5: CQ_POLL_ERR). */
	if (err && !got)
		return -2;
	if (!got)
		shca_cq_idle(cq);
	return got;
}

/* ---------------------------------------------------------------- events */

int shca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct shca_cq *cq = (struct shca_cq *)ibcq;
	struct shca_hca *hca = shca_ctx(ibcq->context)->hca;
	bool pending = shca_opt(&shca_self.fabric, SHCA_O_CQ_ARM) == SHCA_CQ_ARM_PENDING;
	uint64_t arm, due;

	/* mlx5 arms it all the same: nobody hears of it. */
	if (!ibcq->channel)
		return 0;
	arm = atomic_load(&cq->entry->arm);
	/* A CQ that is armed for any completion stays so (IBA 11.4.2.2). The exchange pairs with
	 * that in shca_cq_produce(). */
	while (!(arm == SHCA_ARM_ANY && solicited_only) &&
	       !atomic_compare_exchange_weak(&cq->entry->arm, &arm,
					     solicited_only ? SHCA_ARM_SOLICITED : SHCA_ARM_ANY))
		;
	pthread_mutex_lock(&cq->lock);
	due = shca_cq_next_visible(cq, solicited_only);
	pthread_mutex_unlock(&cq->lock);
	/* What may not be seen yet fires when it may. Its producer's engine sees to that too, if it
	 * lives so long. */
	if (due > shca_now())
		shca_cq_event_at(hca, cq->entry, due, true);
	else if (due && pending)
		shca_cq_fire(hca, cq->entry, true);
	return 0;
}
