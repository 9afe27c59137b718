/* SPDX-License-Identifier: BSD-3-Clause */
/* The model's SRQs, and the receives in them. */
#include <errno.h>
#include <stdlib.h>

#include "model_ops.h"

struct tq_srq *model_srq(struct model *model, uint32_t srqn)
{
	return srqn && srqn <= model->nsrqs ? model->srqs[srqn - 1] : NULL;
}

static struct tq_srq *srq_new(struct model *model, int ep)
{
	struct tq_srq *srq = calloc(1, sizeof(*srq));

	if (model->nsrqs == model->srqs_room) {
		model->srqs_room = model->srqs_room ? 2 * model->srqs_room : 16;
		model->srqs = realloc(model->srqs, model->srqs_room * sizeof(*model->srqs));
	}
	model->srqs[model->nsrqs++] = srq;
	srq->srqn = model->nsrqs;
	srq->ep = ep;
	return srq;
}

struct tq_srq *model_op_srq_get(struct tq_net *net, uint32_t *srqn)
{
	struct model_ep *ep = model_enter(net);
	struct model *model = ep->model;
	struct tq_srq *srq = NULL;

	t_true(ep->params.protocol == TQ_PROTOCOL_TUPLEQ || ep->params.protocol == TQ_PROTOCOL_COPY,
	       "a tuple queue is made in protocol %d", ep->params.protocol);
	t_true(ep->nsrqs < (uint64_t)ep->params.tuples, "more tuples have queues than may");
	t_true(ep->limits.max_direct || model->conf.exact, "a tuple queue is made without a sink");
	if (ep->nsrqs >= model->conf.srqs || model_fails(ep, model->conf.no_srq))
		return NULL;
	for (uint32_t i = 0; i < model->nsrqs && !srq; i++) {
		if (model->srqs[i]->ep == ep->id && model->srqs[i]->state == MODEL_SRQ_FREE)
			srq = model->srqs[i];
	}
	if (!srq)
		srq = srq_new(model, ep->id);
	srq->state = MODEL_SRQ_USED;
	ep->nsrqs++;
	*srqn = srq->srqn;
	return srq;
}

int model_op_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		      void *token)
{
	struct model_ep *ep = model_enter(net);
	struct model_recv *recv;

	t_true(srq->ep == ep->id && srq->state == MODEL_SRQ_USED,
	       "srq_post() to an SRQ that isn't there");
	t_true(nsg >= 0 && nsg <= (int)ep->limits.max_srq_sge, "srq_post(): %d pieces", nsg);
	for (int i = 0; i < nsg; i++)
		model_check_reg(ep, &sg[i], true, "srq_post()");
	if (srq->nrecvs >= ep->limits.srq_depth || model_fails(ep, ep->model->conf.no_srq_room))
		return -EAGAIN;
	recv = calloc(1, sizeof(*recv));
	recv->token = token;
	recv->nsg = nsg;
	for (int i = 0; i < nsg; i++)
		recv->sg[i] = sg[i];
	DL_APPEND(srq->recvs, recv);
	srq->nrecvs++;
	SIM_TRACE("      srq_post %d: SRQ %u has %u", ep->id, srq->srqn, srq->nrecvs);
	return 0;
}

static bool any_down(const struct model_ep *ep)
{
	bool down = false;

	for (int p = 0; p < MODEL_EPS; p++)
		down |= ep->model->down[p][ep->id];
	return down;
}

static void srq_clear(struct tq_srq *srq)
{
	struct model_recv *recv, *tmp;

	DL_FOREACH_SAFE(srq->recvs, recv, tmp) {
		DL_DELETE(srq->recvs, recv);
		free(recv);
	}
	srq->nrecvs = 0;
}

void model_op_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe)
{
	struct model_ep *ep = model_enter(net);

	t_true(srq->ep == ep->id && srq->state == MODEL_SRQ_USED,
	       "srq_put() of an SRQ that isn't there");
	t_true(!srq->flying || ep->model->conf.hostile,
	       "srq_put() while messages to it are under way");
	/* Completions may be left only if a connection was lost: then they name nothing any
	 * more. */
	t_true(!srq->unpolled || any_down(ep) || ep->model->conf.hostile,
	       "srq_put() with completions of it in the CQ");
	SIM_TRACE("      srq_put %d: SRQ %u had %u", ep->id, srq->srqn, srq->nrecvs);
	ep->nsrqs--;
	if (!safe) {
		srq->state = MODEL_SRQ_WITHDRAWN;
		ep->nwithdrawn++;
		return;
	}
	/* A hostile peer may still send to this SRQ, and must not reach the receives of its
	 * successor. */
	srq->state = srq->nrecvs > 0 || srq->unpolled > 0 || ep->model->conf.hostile
			     ? MODEL_SRQ_DEAD
			     : MODEL_SRQ_FREE;
	srq_clear(srq);
}

void model_srqs_gone(struct model_ep *ep)
{
	struct model *model = ep->model;

	for (uint32_t i = 0; i < model->nsrqs; i++) {
		if (model->srqs[i]->ep != ep->id || model->srqs[i]->state != MODEL_SRQ_WITHDRAWN)
			continue;
		model->srqs[i]->state = MODEL_SRQ_DEAD;
		srq_clear(model->srqs[i]);
	}
	ep->nwithdrawn = 0;
}
