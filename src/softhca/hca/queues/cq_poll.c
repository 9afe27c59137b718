/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_poll.c - polling: completions become work completions, and their payloads are delivered.
 * Arming.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "cq_bounce.h"
#include "cq_event.h"
#include "cq_ring.h"
#include "fabric/trace.h"
#include "hca/memory/mr.h"
#include "hca/object_index.h"
#include "sq.h"

/* Empty polls before the first sched_yield(), and the interval of later ones: the thread that is
 * to complete something may need the CPU. A choice: a yield is a system call, and costs as much as
 * many polls. */
#define YIELD_AFTER 256
#define YIELD_EACH  32

bool shca_cq_idle(struct shca_cq *cq)
{
	uint32_t n = __atomic_load_n(&cq->empty_polls, __ATOMIC_RELAXED) + 1;
	uint64_t now;

	if (shca_tracing()) {
		now = shca_now();
		shca_trace_stretch(SHCA_TRACE_POLLS, now, now);
	}
	__atomic_store_n(&cq->empty_polls, n, __ATOMIC_RELAXED);
	if (n < YIELD_AFTER || n % YIELD_EACH != 0)
		return false;
	sched_yield();
	return true;
}

/* Returns the receive queue of a completion, or NULL if it is gone. */
static struct shca_rq_local *rq_of(struct shca_context *ctx, const struct shca_cqe *cqe)
{
	struct shca_srq *srq;
	struct shca_qp *qp;

	if (cqe->flags & SHCA_CQE_SRQ) {
		srq = shca_object_index_get(ctx->hca_idx, SHCA_SRQ, cqe->rsc);
		return srq && srq->number == cqe->srqn ? &srq->rq : NULL;
	}
	qp = shca_object_index_get(ctx->hca_idx, SHCA_QP, cqe->rsc);
	return qp && qp->ibv.qp_base.qp_num == cqe->qp_num && qp->rq.shared ? &qp->rq : NULL;
}

/* Copies a completion's payload into the memory of its receive. The sender checked the receive's
 * keys. */
static void scatter(struct shca_cq *cq, const struct shca_rwqe *wqe, const struct shca_cqe *cqe)
{
	const struct shca_hca *hca = shca_ctx(cq->ibv.context)->hca;
	const uint8_t *from = shca_cq_data(cq, cqe);
	uint32_t left = cqe->payload;

	for (uint32_t i = 0; left && i < wqe->num_sge; i++) {
		uint32_t n = wqe->sge[i].length < left ? wqe->sge[i].length : left;
		/* The key is only translated, not checked again. A region that was deregistered
		 * since takes its data with it. */
		void *to =
			shca_mr_translate(shca_table_peek_again(&shca_self.fabric, hca, SHCA_MR,
								wqe->sge[i].lkey, &cq->last_region),
					  wqe->sge[i].addr, n);

		if (to)
			memcpy(to, from, n);
		from += n;
		left -= n;
	}
}

static void deliver_payload(struct shca_cq *cq, struct shca_cqe *cqe, void *arg)
{
	struct shca_context *ctx = shca_ctx(cq->ibv.context);
	struct shca_rq_local *rq =
		cqe->flags & SHCA_CQE_RECV && cqe->payload ? rq_of(ctx, cqe) : NULL;

	(void)arg;
	if (!rq)
		return;
	scatter(cq, shca_rq_own_wqe(rq, cqe->wqe), cqe);
	cqe->payload = 0;
}

void shca_cq_deliver_payloads(struct shca_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	shca_cq_each(cq, deliver_payload, NULL);
	pthread_mutex_unlock(&cq->lock);
}

void shca_cq_stop_reading(struct shca_cq *cq)
{
	if (!cq->read_rq)
		return;
	pthread_mutex_unlock(&cq->read_rq->lock);
	cq->read_rq = NULL;
}

static int read_recv(struct shca_cq *cq, const struct shca_cqe *cqe, struct ibv_wc *wc)
{
	struct shca_context *ctx = shca_ctx(cq->ibv.context);
	struct shca_rq_local *rq = rq_of(ctx, cqe);
	struct shca_rwqe *wqe;

	if (!rq)
		return -ENOENT;
	wqe = shca_rq_own_wqe(rq, cqe->wqe);
	wc->wr_id = wqe->wr_id;
	if (cqe->payload)
		scatter(cq, wqe, cqe);
	/* Completions in a row are mostly of one queue: lock it once. */
	if (cq->read_rq != rq) {
		shca_cq_stop_reading(cq);
		pthread_mutex_lock(&rq->lock);
		cq->read_rq = rq;
	}
	shca_rq_release_locked(rq, cqe->wqe);
	return 0;
}

static int read_send(struct shca_cq *cq, const struct shca_cqe *cqe, struct ibv_wc *wc)
{
	struct shca_qp *qp =
		shca_object_index_get(shca_ctx(cq->ibv.context)->hca_idx, SHCA_QP, cqe->rsc);

	if (!qp || qp->ibv.qp_base.qp_num != cqe->qp_num)
		return -ENOENT;
	return shca_sq_complete(qp, cqe->wqe, &wc->wr_id);
}

static void trace_completion(const struct shca_cqe *cqe)
{
	uint64_t now = shca_now();

	shca_trace_add(&(struct shca_trace_record){
		.kind = SHCA_TRACE_COMPLETION,
		.from = now,
		.to = now,
		.qpn = cqe->qp_num,
		.srqn = cqe->flags & SHCA_CQE_SRQ ? cqe->srqn : 0,
		.bytes = cqe->byte_len,
		.opcode = cqe->opcode,
		.status = cqe->status,
	});
}

/* Fills in what a receive's completion says about its message. */
static void fill_received(const struct shca_cqe *cqe, struct ibv_wc *wc)
{
	wc->byte_len = cqe->byte_len;
	if (cqe->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc->imm_data = cqe->imm;
	wc->src_qp = cqe->src_qp;
	wc->pkey_index = 0;
	wc->slid = cqe->slid;
	wc->sl = SHCA_CQE_SL(cqe->flags);
	wc->dlid_path_bits = 0;
}

static bool returns_bytes(const struct shca_cqe *cqe)
{
	return cqe->opcode == IBV_WC_RDMA_READ || cqe->opcode == IBV_WC_COMP_SWAP ||
	       cqe->opcode == IBV_WC_FETCH_ADD;
}

/* Fills in the fields that mlx5 fills in for such a completion, and leaves the others as the
 * program had them: after an error most of them, even the opcode. */
static void fill(const struct shca_cqe *cqe, struct ibv_wc *wc)
{
	wc->status = cqe->status;
	wc->qp_num = cqe->qp_num;
	wc->wc_flags = 0;
	if (cqe->status != IBV_WC_SUCCESS) {
		/* Like mlx5's syndrome, this is not 0 after an error. */
		wc->vendor_err = 0x80u | cqe->status;
		return;
	}
	wc->opcode = cqe->opcode;
	wc->wc_flags = cqe->wc_flags;
	if (cqe->flags & SHCA_CQE_RECV)
		fill_received(cqe, wc);
	else if (returns_bytes(cqe))
		wc->byte_len = cqe->byte_len;
}

int shca_cq_read(struct shca_cq *cq, const struct shca_cqe *cqe, struct ibv_wc *wc)
{
	fill(cqe, wc);
	if (shca_tracing())
		trace_completion(cqe);
	return cqe->flags & SHCA_CQE_RECV ? read_recv(cq, cqe, wc) : read_send(cq, cqe, wc);
}

int shca_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct shca_cq *cq = (struct shca_cq *)ibcq;
	int got = 0, err = 0;

	/* A thread that has given its CPU away looks again. Otherwise a peer could send, and end
	 * the connection, all within this poll, and the program would see the end first. */
	if (!shca_cq_maybe(cq) && (!shca_cq_idle(cq) || !shca_cq_maybe(cq)))
		return 0;
	pthread_mutex_lock(&cq->lock);
	while (got < n && !err) {
		struct shca_cqe *cqe = shca_cq_peek(cq);

		if (!cqe)
			break;
		err = shca_cq_read(cq, cqe, &wc[got]);
		shca_cq_pop(cq, cqe);
		got += !err;
	}
	shca_cq_stop_reading(cq);
	if (got)
		__atomic_store_n(&cq->empty_polls, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&cq->lock);
	/* Completions that were polled before the error are returned first; the error is
	 * returned when it comes first (mlx5: CQ_POLL_ERR). */
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

	/* mlx5 arms such a CQ all the same, without effect. */
	if (!ibcq->channel)
		return 0;
	arm = atomic_load(&cq->entry->arm);
	/* A CQ that is armed for any completion stays armed for any (IBA 11.4.2.2), and an event
	 * that is held back is the one that this call asks for. The exchange pairs with the one in
	 * shca_cq_produce(). */
	while (!(arm == SHCA_ARM_ANY && solicited_only) && (arm & 0xff) != SHCA_ARM_HELD &&
	       !atomic_compare_exchange_weak(&cq->entry->arm, &arm,
					     solicited_only ? SHCA_ARM_SOLICITED : SHCA_ARM_ANY))
		;
	pthread_mutex_lock(&cq->lock);
	due = shca_cq_next_visible(cq, solicited_only);
	pthread_mutex_unlock(&cq->lock);
	/* A completion that may not be seen yet raises the event at its time. Its producer's
	 * engine raises that event too, if the producer lives until then. */
	if (due > shca_now())
		shca_cq_event_at(hca, cq->entry, due, true);
	else if (due && pending)
		shca_cq_fire(hca, cq->entry, true);
	return 0;
}
