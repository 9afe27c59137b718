/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req_complete.c - the requester's completions: of messages that are through or have failed, and of
 * sends that are flushed.
 */
#include "fabric/epoch.h"
#include "fabric/pending_event.h"
#include "hca/fault.h"
#include "link.h"
#include "req.h"

static const uint8_t wc_opcode[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

static const enum shca_counter status_counter[] = {
	[IBV_WC_LOC_LEN_ERR] = SHCA_C_LOC_LEN_ERR,
	[IBV_WC_LOC_PROT_ERR] = SHCA_C_LOC_PROT_ERR,
	[IBV_WC_WR_FLUSH_ERR] = SHCA_C_FLUSHED,
	[IBV_WC_MW_BIND_ERR] = SHCA_C_MW_BIND_ERR,
	[IBV_WC_REM_INV_REQ_ERR] = SHCA_C_REM_INV_REQ,
	[IBV_WC_REM_ACCESS_ERR] = SHCA_C_REM_ACCESS,
	[IBV_WC_REM_OP_ERR] = SHCA_C_REM_OP,
	[IBV_WC_RETRY_EXC_ERR] = SHCA_C_RETRY_EXC,
	[IBV_WC_RNR_RETRY_EXC_ERR] = SHCA_C_RNR_RETRY_EXC,
};

static uint64_t send_visible_at(struct shca_qp *qp, bool error)
{
	uint64_t at = 0, delay = shca_fault_reorder_delay();

	if (qp->cur.arrives_at && !error)
		at = qp->cur.arrives_at + (qp->cur.to_us ? 0 : shca_link_latency());
	else if (delay || qp->last_visible)
		at = shca_now();
	if (!at)
		return 0;
	at += delay;
	if (at < qp->last_visible)
		at = qp->last_visible;
	qp->last_visible = at;
	return at;
}

static bool with_imm(uint8_t opcode)
{
	return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void produce(struct shca_qp *qp, const struct shca_swqe *wqe, enum ibv_wc_status status,
		    uint32_t byte_len)
{
	struct shca_cqe cqe = {
		.visible_at = send_visible_at(qp, status != IBV_WC_SUCCESS),
		.rsc = qp->idx,
		.wqe = qp->exec,
		.byte_len = byte_len,
		.qp_num = qp->ibv.qp_base.qp_num,
		.opcode = wc_opcode[wqe->opcode],
		.status = (uint8_t)status,
		.wc_flags = with_imm(wqe->opcode) ? IBV_WC_WITH_IMM : 0,
	};

	if (shca_cq_produce(qp->ctx->hca, qp->send_cq->entry, &cqe, NULL))
		shca_qp_fail(qp->ctx->hca, qp->entry, IBV_EVENT_QP_FATAL);
}

/* Ends the service of a queue after an error of the requester: RC goes to ERR, UC and UD stop
 * sending (IBA 10.8.6). */
static void end_service(struct shca_qp *qp)
{
	uint32_t rts = IBV_QPS_RTS;

	if (qp->entry->type == IBV_QPT_UC || qp->entry->type == IBV_QPT_UD)
		atomic_compare_exchange_strong(&qp->entry->state, &rts, IBV_QPS_SQE);
	else
		shca_qp_fail(qp->ctx->hca, qp->entry, SHCA_NO_EVENT);
}

void shca_req_complete(struct shca_qp *qp, struct shca_swqe *wqe, enum ibv_wc_status status,
		       uint32_t byte_len)
{
	if (status != IBV_WC_SUCCESS) {
		shca_count(qp->ctx->hca, status_counter[status], 1);
		if (status != IBV_WC_WR_FLUSH_ERR)
			end_service(qp);
	}
	if (status != IBV_WC_SUCCESS || (wqe->flags & IBV_SEND_SIGNALED))
		produce(qp, wqe, status, byte_len);
	qp->exec++;
	qp->cur = (struct shca_progress){0};
}

void shca_req_flush(struct shca_qp *qp)
{
	struct shca_exec *exec = shca_epoch_self();

	shca_epoch_enter(exec);
	while (qp->exec != qp->head)
		shca_req_complete(qp, shca_swqe(qp, qp->exec), IBV_WC_WR_FLUSH_ERR, 0);
	shca_epoch_exit(exec);
}
