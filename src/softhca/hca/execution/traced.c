/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traced.c - records of posted sends and of messages.
 */
#include "traced.h"

#include "link.h"

void shca_traced_sends(const struct shca_qp *qp, uint32_t from, uint32_t to)
{
	uint64_t now = shca_now();

	for (; from != to; from++) {
		const struct shca_swqe *wqe = shca_swqe(qp, from);

		shca_trace_add(&(struct shca_trace_record){
			.kind = SHCA_TRACE_SEND,
			.from = now,
			.to = now,
			.qpn = qp->ibv.qp_base.qp_num,
			.srqn = wqe->srqn,
			.bytes = wqe->length,
			.opcode = wqe->opcode,
		});
	}
}

/* Returns when the first byte left its port. Without a link model a message leaves when it is
 * posted, or when its wait for a receive has ended. */
static uint64_t departure(const struct shca_qp *qp, const struct shca_swqe *wqe)
{
	if (qp->cur.arrives_at)
		return qp->cur.first_at - shca_link_latency();
	return qp->cur.rnr_first ? shca_now() : wqe->posted_at;
}

static_assert(SHCA_TRACE_NO_PROC == SHCA_NO_PROC, "a message that goes nowhere has neither");

void shca_traced_message(const struct shca_req *req, enum ibv_wc_status status)
{
	const struct shca_qp *qp = req->qp;
	const struct shca_swqe *wqe = req->wqe;

	shca_trace_add(&(struct shca_trace_record){
		.kind = SHCA_TRACE_MESSAGE,
		.from = departure(qp, wqe),
		.to = qp->cur.arrives_at ? qp->cur.arrives_at : shca_now(),
		.posted = wqe->posted_at,
		.held = qp->cur.rnr_first,
		.qpn = qp->ibv.qp_base.qp_num,
		.srqn = wqe->srqn,
		.bytes = wqe->length,
		.peer = (uint16_t)req->target.owner,
		.opcode = wqe->opcode,
		.status = (uint8_t)status,
	});
}
