/* SPDX-License-Identifier: BSD-3-Clause */
#include "ep.h"

#include <stdlib.h>

static struct tf_side *side_of(const struct tf_op *op)
{
	return op->count == TF_COUNT_RECV ? &op->ep->rx : &op->ep->tx;
}

void tf_ep_release(struct tf_ep *ep)
{
	struct tf_spare *spare;

	if (atomic_fetch_sub(&ep->refs, 1) != 1)
		return;
	while ((spare = ep->spares)) {
		ep->spares = spare->next;
		free(spare);
	}
	pthread_mutex_destroy(&ep->lock);
	free(ep);
}

int tf_op_check_flags(uint64_t flags, uint64_t known)
{
	if (flags & ~known & FI_TRIGGER)
		return -FI_ENOSYS; /* as fi_trigger(3) has it */
	return flags & ~known ? -FI_EINVAL : 0;
}

int tf_op_begin(struct tf_op *op, struct tf_ep *ep, struct tf_side *side, bool copied)
{
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (!copied && (atomic_load_explicit(&side->busy, memory_order_relaxed) >= side->size ||
			(side->cq && tf_cq_is_full(side->cq)))) {
		tf_domain_progress(ep->domain);
		return -FI_EAGAIN;
	}
	op->ep = ep;
	atomic_fetch_add_explicit(&side->busy, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&ep->refs, 1, memory_order_relaxed);
	return 0;
}

void tf_op_drop(struct tf_op *op)
{
	atomic_fetch_sub(&side_of(op)->busy, 1);
	tf_ep_release(op->ep);
}

void tf_op_abort(struct tf_op *op)
{
	tf_op_drop(op);
}

void tf_op_report(const struct tf_op *op, const struct tf_completion *completion)
{
	const struct tf_side *side = side_of(op);

	if (op->ep->closed)
		return;
	if (side->cq && (op->report || completion->err))
		tf_cq_add(side->cq, completion);
	tf_cntr_count(op->ep->cntrs[op->count], completion->err);
}

void tf_op_end(struct tf_op *op, const struct tf_completion *completion)
{
	pthread_mutex_lock(&op->ep->lock);
	tf_op_report(op, completion);
	pthread_mutex_unlock(&op->ep->lock);
	tf_op_drop(op);
}

void tf_op_end_plain(struct tf_op *op, int error)
{
	const struct tf_completion completion = {
		.entry = {.op_context = op->context, .flags = op->flags},
		.source = op->peer,
		.err = -error,
	};

	tf_op_end(op, &completion);
}

void tf_ep_count(struct tf_ep *ep, enum tf_count count)
{
	pthread_mutex_lock(&ep->lock);
	if (!ep->closed)
		tf_cntr_count(ep->cntrs[count], false);
	pthread_mutex_unlock(&ep->lock);
}

void tf_ep_report(struct tf_ep *ep, struct tf_side *side, const struct tf_completion *completion)
{
	pthread_mutex_lock(&ep->lock);
	if (!ep->closed && side->cq)
		tf_cq_add(side->cq, completion);
	pthread_mutex_unlock(&ep->lock);
}
