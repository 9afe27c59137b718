/* SPDX-License-Identifier: BSD-3-Clause */
/* The model's SRQs, and the receives in them. */
#include <errno.h>
#include <stdlib.h>

#include "model_ops.h"

struct tq_srq *model_srq(struct model *m, uint32_t srqn)
{
	return srqn && srqn <= m->nsrqs ? m->srqs[srqn - 1] : NULL;
}

static struct tq_srq *srq_new(struct model *m, int ep)
{
	struct tq_srq *srq = calloc(1, sizeof(*srq));

	if (m->nsrqs == m->srqs_room) {
		m->srqs_room = m->srqs_room ? 2 * m->srqs_room : 16;
		m->srqs = realloc(m->srqs, m->srqs_room * sizeof(*m->srqs));
	}
	m->srqs[m->nsrqs++] = srq;
	srq->srqn = m->nsrqs;
	srq->ep = ep;
	return srq;
}

struct tq_srq *model_op_srq_get(void *net, uint32_t *srqn)
{
	struct model_ep *ep = model_enter(net);
	struct model *m = ep->model;
	struct tq_srq *srq = NULL;

	t_true(ep->params.protocol == TQ_PROTOCOL_TUPLEQ || ep->params.protocol == TQ_PROTOCOL_COPY,
	       "a tuple queue is made in protocol %d", ep->params.protocol);
	t_true(ep->nsrqs < (uint64_t)ep->params.tuples, "more tuples have queues than may");
	t_true(ep->limits.max_direct || m->conf.exact, "a tuple queue is made without a sink");
	if (ep->nsrqs >= m->conf.srqs || model_fails(ep, m->conf.no_srq))
		return NULL;
	for (uint32_t i = 0; i < m->nsrqs && !srq; i++) {
		if (m->srqs[i]->ep == ep->id && !m->srqs[i]->used && !m->srqs[i]->dead)
			srq = m->srqs[i];
	}
	if (!srq)
		srq = srq_new(m, ep->id);
	srq->used = true;
	ep->nsrqs++;
	*srqn = srq->srqn;
	return srq;
}

int model_op_srq_post(void *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg, void *token)
{
	struct model_ep *ep = model_enter(net);
	struct model_recv *r;

	t_true(srq->ep == ep->id && srq->used, "srq_post() to an SRQ that isn't there");
	t_true(nsg >= 0 && nsg <= (int)ep->limits.max_srq_sge, "srq_post(): %d pieces", nsg);
	for (int i = 0; i < nsg; i++)
		model_check_reg(ep, &sg[i], true, "srq_post()");
	if (srq->nrecvs >= ep->limits.srq_depth || model_fails(ep, ep->model->conf.no_room))
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	r->token = token;
	r->nsg = nsg;
	for (int i = 0; i < nsg; i++)
		r->sg[i] = sg[i];
	DL_APPEND(srq->recvs, r);
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
	struct model_recv *r, *tmp;

	DL_FOREACH_SAFE(srq->recvs, r, tmp) {
		DL_DELETE(srq->recvs, r);
		free(r);
	}
	srq->nrecvs = 0;
}

void model_op_srq_put(void *net, struct tq_srq *srq, bool safe)
{
	struct model_ep *ep = model_enter(net);

	t_true(srq->ep == ep->id && srq->used, "srq_put() of an SRQ that isn't there");
	t_true(!srq->flying || ep->model->conf.hostile,
	       "srq_put() while messages to it are under way");
	/* Completions may be left only if a connection was lost: then they name nothing any
	 * more. */
	t_true(!srq->unpolled || any_down(ep) || ep->model->conf.hostile,
	       "srq_put() with completions of it in the CQ");
	SIM_TRACE("      srq_put %d: SRQ %u had %u", ep->id, srq->srqn, srq->nrecvs);
	/* A hostile peer may still send to this SRQ, and must not reach the receives of its
	 * successor. */
	srq->dead = !safe || srq->nrecvs > 0 || srq->unpolled > 0 || ep->model->conf.hostile;
	srq->used = false;
	ep->nsrqs--;
	if (!safe) {
		srq->withdrawn = true;
		ep->nwithdrawn++;
		return;
	}
	srq_clear(srq);
}

void model_srqs_gone(struct model_ep *ep)
{
	struct model *m = ep->model;

	for (uint32_t i = 0; i < m->nsrqs; i++) {
		if (m->srqs[i]->ep != ep->id || !m->srqs[i]->withdrawn)
			continue;
		m->srqs[i]->withdrawn = false;
		srq_clear(m->srqs[i]);
	}
	ep->nwithdrawn = 0;
}
