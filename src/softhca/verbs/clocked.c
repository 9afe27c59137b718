/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clocked.c - posting, polling and arming in virtual time. These functions replace the plain
 * operations in the tables, so that real time pays nothing for them.
 */
#include "clocked.h"

#include <errno.h>

#include "clock/clock.h"
#include "hca/execution/post.h"
#include "hca/objects/qp.h"
#include "hca/queues/cq_ring.h"
#include "hca/queues/queue_pair.h"

static uint64_t visible(void *place)
{
	struct shca_cq *cq = place;
	uint64_t at;

	pthread_mutex_lock(&cq->lock);
	at = shca_cq_next_visible(cq, false);
	pthread_mutex_unlock(&cq->lock);
	return at;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	if (shca_clock_try_free_poll(cq))
		return 0;
	shca_clock_enter(SHCA_CALL_POLL, 1);
	got = shca_poll_cq(cq, n, wc);
	if (!got && n > 0 && shca_clock_found_nothing(cq, visible))
		got = shca_poll_cq(cq, n, wc);
	if (got > 0) {
		shca_spin_end();
		shca_clock_pay(SHCA_CALL_CQE, (uint64_t)got);
	}
	shca_clock_leave();
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int rc;

	shca_clock_enter(SHCA_CALL_ARM, 1);
	shca_spin_end();
	rc = shca_req_notify_cq(cq, solicited_only);
	shca_clock_leave();
	return rc;
}

static uint64_t count_sends(const struct ibv_send_wr *wr)
{
	uint64_t n = 0;

	for (; wr; wr = wr->next)
		n++;
	return n;
}

static uint64_t count_receives(const struct ibv_recv_wr *wr)
{
	uint64_t n = 0;

	for (; wr; wr = wr->next)
		n++;
	return n;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc;

	shca_clock_enter(SHCA_CALL_POST, count_sends(wr));
	shca_spin_end();
	rc = shca_post_send(qp, wr, bad);
	shca_clock_leave();
	return rc;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc;

	shca_clock_enter(SHCA_CALL_RECV, count_receives(wr));
	shca_spin_end();
	rc = shca_post_recv(qp, wr, bad);
	shca_clock_leave();
	return rc;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int rc;

	shca_clock_enter(SHCA_CALL_RECV, count_receives(wr));
	shca_spin_end();
	rc = shca_post_srq_recv(srq, wr, bad);
	shca_clock_leave();
	return rc;
}

/* ---------------------------------------------------------------- extended polling */

static int (*plain_start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
static int (*plain_next_poll)(struct ibv_cq_ex *cq);

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc;

	if (shca_clock_try_free_poll(cq))
		return ENOENT;
	shca_clock_enter(SHCA_CALL_POLL, 1);
	rc = plain_start_poll(cq, attr);
	if (rc == ENOENT && shca_clock_found_nothing(cq, visible))
		rc = plain_start_poll(cq, attr);
	if (!rc) {
		shca_spin_end();
		shca_clock_pay(SHCA_CALL_CQE, 1);
	}
	shca_clock_leave();
	return rc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	int rc;

	shca_clock_enter(SHCA_CALL_CQE, 1);
	rc = plain_next_poll(cq);
	shca_clock_leave();
	return rc;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = shca_create_cq_ex(ctx, attr);

	if (!cq)
		return NULL;
	plain_start_poll = cq->start_poll;
	plain_next_poll = cq->next_poll;
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	return cq;
}

/* ---------------------------------------------------------------- extended posting */

static void (*plain_wr_start)(struct ibv_qp_ex *qp);
static int (*plain_wr_complete)(struct ibv_qp_ex *qp);
static void (*plain_wr_abort)(struct ibv_qp_ex *qp);

/* Begins the call that the whole batch is; wr_complete() or wr_abort() ends it. */
static void wr_start(struct ibv_qp_ex *qp)
{
	shca_clock_enter(SHCA_CALL_POST, 1);
	shca_spin_end();
	plain_wr_start(qp);
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	uint32_t n = ((struct shca_qp *)qp)->wr_count;
	int rc = plain_wr_complete(qp);

	if (n > 1)
		shca_clock_pay(SHCA_CALL_POST, n - 1);
	shca_clock_leave();
	return rc;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	plain_wr_abort(qp);
	shca_clock_leave();
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = shca_create_qp_ex(ctx, attr);
	struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;

	if (!ex)
		return qp;
	plain_wr_start = ex->wr_start;
	plain_wr_complete = ex->wr_complete;
	plain_wr_abort = ex->wr_abort;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	return qp;
}

void shca_clocked_ops(struct verbs_context *verbs)
{
	struct ibv_context_ops *ops = &verbs->context.ops;

	if (!shca_clk)
		return;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	verbs->create_cq_ex = create_cq_ex;
	verbs->create_qp_ex = create_qp_ex;
}
