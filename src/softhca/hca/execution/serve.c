/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.c - what an engine does, once it is its time: work, and what others ask for.
 */
#include "serve.h"

#include "cm/life.h"
#include "flush.h"
#include "hca/memory/segment.h"
#include "hca/queues/cq_event.h"
#include "post.h"
#include "runqueue.h"

static void run(struct shca_qp *qp)
{
	pthread_mutex_lock(&qp->sq_lock);
	shca_post_run(qp, SHCA_BY_ENGINE);
	pthread_mutex_unlock(&qp->sq_lock);
}

static bool timer_due(uint64_t *now)
{
	uint64_t next = shca_runqueue_next();

	*now = 0;
	if (next == UINT64_MAX)
		return false;
	*now = shca_now();
	return next <= *now;
}

bool shca_serve_work(void)
{
	struct shca_qp *qp;
	uint64_t now;
	bool due = timer_due(&now);

	if (!due && !shca_runqueue_has_ready())
		return false;
	if (due && shca_cq_event_fire(now))
		return true;
	if (due && shca_runqueue_connections_due() <= now) {
		shca_life_serve(&shca_self.fabric, shca_self.slot);
		return true;
	}
	qp = shca_runqueue_take(due ? now : 0);
	if (qp)
		run(qp);
	return qp != NULL;
}

bool shca_serve_attention(void)
{
	uint32_t a = 0;

	if (atomic_load(&shca_self.proc->attention))
		a = atomic_exchange(&shca_self.proc->attention, 0);

	if (a & SHCA_ATTENTION_RNR)
		shca_runqueue_end_rnr_waits();
	if (a & SHCA_ATTENTION_QP)
		shca_flush_failed_qps();
	if (a & SHCA_ATTENTION_MR)
		shca_segment_sweep();
	return a;
}
