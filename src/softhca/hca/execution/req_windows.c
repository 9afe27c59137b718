/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req_windows.c - binding memory windows and ending their bindings, in the order of a send queue.
 */
#include "req.h"
#include "traced.h"

/* Longest time (ns) that the executing thread waits for peers in the middle of an access, and the
 * interval at which it looks again after that. A choice: an access takes as long as a copy of
 * --chunk, unless its process is stopped, and other queues wait meanwhile. */
#define PATIENCE 1000000u

static enum shca_step done(struct shca_req *req)
{
	if (shca_tracing())
		shca_traced_message(req, IBV_WC_SUCCESS);
	shca_req_complete(req->qp, req->wqe, IBV_WC_SUCCESS, 0);
	return SHCA_STEP_DONE;
}

/* Completes the request when no peer is any more in the middle of an access that began under the
 * old binding. */
static enum shca_step after_accesses(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;
	bool alone;

	/* As in req_ops.c: an epoch comes last in the lock order. */
	pthread_mutex_unlock(&qp->sq_lock);
	shca_epoch_exit(req->exec);
	alone = shca_epoch_sync_for(&shca_self.fabric, shca_self.slot, PATIENCE);
	pthread_mutex_lock(&qp->sq_lock);
	shca_epoch_enter(req->exec);
	return alone ? done(req) : shca_req_wait_until(req, shca_now() + PATIENCE);
}

enum shca_step shca_req_bind(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;

	if (!qp->cur.started) {
		if (shca_mw_bind(qp->ctx->hca, &req->wqe->bind, qp->pdn, qp->ibv.qp_base.qp_num))
			return shca_req_fail(req, IBV_WC_MW_BIND_ERR);
		qp->cur.started = true;
		shca_add(&qp->entry->counters[SHCA_C_BINDS], 1);
	}
	return after_accesses(req);
}

enum shca_step shca_req_invalidate(struct shca_req *req)
{
	struct shca_qp *qp = req->qp;

	if (!qp->cur.started) {
		if (shca_mw_invalidate(qp->ctx->hca, req->wqe->imm, shca_self.slot, qp->pdn,
				       qp->ibv.qp_base.qp_num))
			return shca_req_fail(req, IBV_WC_MW_BIND_ERR);
		qp->cur.started = true;
		shca_add(&qp->entry->counters[SHCA_C_INVALIDATIONS], 1);
	}
	return after_accesses(req);
}
