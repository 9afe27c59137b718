/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * async.c - asynchronous events: from the records of a context's event channel to the user's
 * objects.
 */
#include "verbs.h"

#include <errno.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/event.h"
#include "hca/event_ack.h"
#include "hca/objects/qp.h"

enum subject { ABOUT_NOTHING, ABOUT_QP, ABOUT_SRQ, ABOUT_CQ, ABOUT_PORT };

/* Kind of object that an event is about, by ibv_event_type. */
static const enum subject subjects[] = {
	[IBV_EVENT_CQ_ERR] = ABOUT_CQ,
	[IBV_EVENT_QP_FATAL] = ABOUT_QP,
	[IBV_EVENT_QP_REQ_ERR] = ABOUT_QP,
	[IBV_EVENT_QP_ACCESS_ERR] = ABOUT_QP,
	[IBV_EVENT_COMM_EST] = ABOUT_QP,
	[IBV_EVENT_SQ_DRAINED] = ABOUT_QP,
	[IBV_EVENT_PATH_MIG] = ABOUT_QP,
	[IBV_EVENT_PATH_MIG_ERR] = ABOUT_QP,
	[IBV_EVENT_DEVICE_FATAL] = ABOUT_PORT,
	[IBV_EVENT_PORT_ACTIVE] = ABOUT_PORT,
	[IBV_EVENT_PORT_ERR] = ABOUT_PORT,
	[IBV_EVENT_LID_CHANGE] = ABOUT_PORT,
	[IBV_EVENT_PKEY_CHANGE] = ABOUT_PORT,
	[IBV_EVENT_SM_CHANGE] = ABOUT_PORT,
	[IBV_EVENT_SRQ_ERR] = ABOUT_SRQ,
	[IBV_EVENT_SRQ_LIMIT_REACHED] = ABOUT_SRQ,
	[IBV_EVENT_QP_LAST_WQE_REACHED] = ABOUT_QP,
	[IBV_EVENT_CLIENT_REREGISTER] = ABOUT_PORT,
	[IBV_EVENT_GID_CHANGE] = ABOUT_PORT,
};

static enum subject subject_of(uint32_t kind)
{
	return kind < sizeof(subjects) / sizeof(*subjects) ? subjects[kind] : ABOUT_NOTHING;
}

/*
 * Finds the object and counts the event as given. Returns false if there is no such object any
 * more.
 */
static bool hand_out(struct shca_context *ctx, const struct shca_event *ev,
		     struct ibv_async_event *event)
{
	bool found = false;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_cq *cq;

	event->event_type = (enum ibv_event_type)ev->kind;
	shca_event_ack_lock();
	switch (subject_of(ev->kind)) {
	case ABOUT_QP:
		qp = shca_qp_by_idx(ctx, ev->idx, ev->number);
		found = qp != NULL;
		event->element.qp = qp;
		if (qp)
			shca_event_ack_expect(&qp->mutex, &((struct shca_qp *)qp)->events_given);
		break;
	case ABOUT_SRQ:
		srq = shca_srq_by_idx(ctx, ev->idx, ev->number);
		found = srq != NULL;
		event->element.srq = srq;
		if (srq)
			shca_event_ack_expect(&srq->mutex, &((struct shca_srq *)srq)->events_given);
		break;
	case ABOUT_CQ:
		cq = shca_cq_by_idx(ctx, ev->idx, ev->number);
		found = cq != NULL;
		event->element.cq = cq;
		if (cq)
			shca_event_ack_expect(&cq->mutex,
					      &((struct shca_cq *)cq)->async_events_given);
		break;
	case ABOUT_PORT:
		found = true;
		event->element.port_num = (int)ev->idx;
		break;
	case ABOUT_NOTHING:
		break;
	}
	shca_event_ack_unlock();
	return found;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	SHCA_CLOCKED(EVENT, 1);
	struct shca_event ev;

	if (!shca_ours(context)) {
		errno = EIO;
		return -1;
	}
	do {
		if (shca_clock_await_event(context->async_fd))
			return -1;
		if (read(context->async_fd, &ev, sizeof(ev)) != (ssize_t)sizeof(ev))
			return -1;
	} while (!hand_out(shca_ctx(context), &ev, event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;
	struct ibv_cq *cq = event->element.cq;

	switch (subject_of(event->event_type)) {
	case ABOUT_QP:
		shca_event_ack_done(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	case ABOUT_SRQ:
		shca_event_ack_done(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	case ABOUT_CQ:
		shca_event_ack_done(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case ABOUT_PORT:
	case ABOUT_NOTHING:
		break;
	}
}
