/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.c - posting sends and receives; executing sends at once, or leaving them to the engine.
 */
#include "post.h"

#include <errno.h>
#include <string.h>

#include "ah.h"
#include "flush.h"
#include "hca/fault.h"
#include "hca/queues/sq.h"
#include "hca/timing.h"
#include "link.h"
#include "runqueue.h"
#include "traced.h"

#define FLAGS_KNOWN (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/* By opcode: the QP types that have it, as bits, and whether it sends data, which may then be
 * inline. */
static const struct {
	uint32_t types;
	bool sends;
} opcodes[] = {
#define T(type)   (1u << IBV_QPT_##type)
#define CONNECTED (T(RC) | T(UC) | T(XRC_SEND))
#define RELIABLE  (T(RC) | T(XRC_SEND))
	[IBV_WR_RDMA_WRITE] = {CONNECTED, true},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {CONNECTED, true},
	[IBV_WR_SEND] = {CONNECTED | T(UD), true},
	[IBV_WR_SEND_WITH_IMM] = {CONNECTED | T(UD), true},
	[IBV_WR_RDMA_READ] = {RELIABLE, false},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {RELIABLE, false},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {RELIABLE, false},
	[IBV_WR_LOCAL_INV] = {CONNECTED, false},
	[IBV_WR_BIND_MW] = {CONNECTED, false},
	[IBV_WR_SEND_WITH_INV] = {CONNECTED, true},
#undef T
#undef CONNECTED
#undef RELIABLE
};

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool shca_post_sends_data(enum ibv_wr_opcode op)
{
	return opcodes[op].sends;
}

/* Returns true if the fabric's options let its adapters offer that opcode. Not inlined, so that its
 * caller is. */
static __attribute__((noinline)) bool is_offered(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return shca_opt(&shca_self.fabric, SHCA_O_ATOMICS);
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
	case IBV_WR_SEND_WITH_INV:
		return shca_opt(&shca_self.fabric, SHCA_O_MW);
	default:
		return true;
	}
}

int shca_post_check_opcode(const struct shca_qp *qp, enum ibv_wr_opcode op)
{
	if ((unsigned)op >= sizeof(opcodes) / sizeof(*opcodes) ||
	    !(opcodes[op].types & 1u << qp->ibv.qp_base.qp_type))
		return EINVAL;
	return op > IBV_WR_RDMA_READ && !is_offered(op) ? EOPNOTSUPP : 0;
}

void shca_post_set_ud(struct shca_swqe *wqe, struct ibv_ah *ibah, uint32_t qpn, uint32_t qkey)
{
	const struct shca_ah *ah = (const struct shca_ah *)ibah;

	wqe->ud = (struct shca_ud_dest){.hca = ah->hca,
					.multicast = ah->multicast,
					.global = ah->attr.is_global,
					.sl = ah->attr.sl,
					.traffic_class = ah->attr.grh.traffic_class,
					.hop_limit = ah->attr.grh.hop_limit,
					.sgid_index = ah->attr.grh.sgid_index,
					.dlid = ah->attr.dlid,
					.flow_label = ah->attr.grh.flow_label,
					.qpn = qpn,
					.qkey = qkey,
					.dgid = ah->attr.grh.dgid};
}

int shca_post_set_bind(struct shca_swqe *wqe, const struct ibv_mw *mw, uint32_t key,
		       const struct ibv_mw_bind_info *info)
{
	/* As in mlx5, whose entries of a send queue have 31 bits for the length. */
	if (info->length > 1ull << 31)
		return EOPNOTSUPP;
	wqe->bind = (struct shca_bind){.addr = info->addr,
				       .length = info->length,
				       .number = SHCA_MW_NUMBER(mw->rkey),
				       .tag = key & 0xff,
				       .region = info->mr ? info->mr->lkey : 0,
				       .access = info->mw_access_flags};
	return 0;
}

static int copy_inline(struct shca_qp *qp, struct shca_swqe *wqe, const struct ibv_send_wr *wr)
{
	uint32_t len = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > qp->max_inline - len)
			return ENOMEM;
		memcpy(shca_swqe_inline(wqe) + len, (const void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		len += wr->sg_list[i].length;
	}
	wqe->length = len;
	wqe->num_sge = 0;
	return 0;
}

static int copy_sges(struct shca_swqe *wqe, const struct ibv_send_wr *wr)
{
	uint64_t len = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		shca_swqe_sges(wqe)[i] = wr->sg_list[i];
		len += wr->sg_list[i].length;
	}
	if (len > UINT32_MAX)
		return EINVAL;
	wqe->num_sge = (uint16_t)wr->num_sge;
	wqe->length = (uint32_t)len;
	return 0;
}

/* Not inlined, because few requests come here. */
static __attribute__((noinline)) int build_local(struct shca_swqe *wqe,
						 const struct ibv_send_wr *wr)
{
	wqe->num_sge = 0;
	wqe->length = wqe->srqn = 0;
	return wr->opcode == IBV_WR_BIND_MW
		       ? shca_post_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
					    &wr->bind_mw.bind_info)
		       : 0;
}

static int build(struct shca_qp *qp, struct shca_swqe *wqe, const struct ibv_send_wr *wr)
{
	bool inl = wr->send_flags & IBV_SEND_INLINE;
	int rc = shca_post_check_opcode(qp, wr->opcode);

	if (rc)
		return rc;
	if ((wr->send_flags & ~(unsigned)FLAGS_KNOWN) || (inl && !opcodes[wr->opcode].sends) ||
	    wr->num_sge < 0)
		return EINVAL;
	if ((uint32_t)wr->num_sge > qp->max_sge) /* as in mlx5, this holds for inline data too */
		return ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->posted_at = shca_link_on() || shca_is_recording() ? shca_now() : 0;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->send_flags | (qp->sig_all ? IBV_SEND_SIGNALED : 0));
	wqe->imm = wr->imm_data;
	if (__builtin_expect(shca_req_is_local(wqe), 0))
		return build_local(wqe, wr);
	if (is_atomic(wr->opcode)) {
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else if (qp->ibv.qp_base.qp_type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return EINVAL;
		shca_post_set_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
	wqe->srqn = wr->qp_type.xrc.remote_srqn;
	return inl ? copy_inline(qp, wqe, wr) : copy_sges(wqe, wr);
}

void shca_post_run(struct shca_qp *qp, enum shca_runner by)
{
	uint64_t when = 0;

	switch (shca_req_run(qp, by, &when)) {
	case SHCA_REQ_EMPTY:
		shca_sched_set(qp, SHCA_SCHED_IDLE);
		break;
	case SHCA_REQ_MORE:
		shca_runqueue_add(qp);
		break;
	case SHCA_REQ_WAIT:
		shca_runqueue_add_at(qp, when, qp->rnr_wait);
		break;
	}
}

void shca_post_kick(struct shca_qp *qp)
{
	if (qp->sched != SHCA_SCHED_IDLE || qp->exec == qp->head)
		return;
	shca_sched_set(qp, SHCA_SCHED_RUNNING);
	shca_post_run(qp, shca_timing.posting_is_free ? SHCA_BY_ENGINE : SHCA_BY_CALLER);
}

int shca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct shca_qp *qp = (struct shca_qp *)ibqp;
	uint32_t from;
	int rc = 0;

	if (!qp->sq) { /* a target QP has no send queue */
		*bad = wr;
		return EINVAL;
	}
	shca_fault_kill(qp->ctx->hca);
	pthread_mutex_lock(&qp->sq_lock);
	__builtin_prefetch(qp->ahead.position);
	__builtin_prefetch(qp->ahead.wqe);
	from = qp->head;
	for (; wr; wr = wr->next) {
		struct shca_swqe *wqe = shca_sq_next(qp, &rc);

		/* As with mlx5, a state without sends is like a full queue. */
		rc = wqe ? build(qp, wqe, wr) : ENOMEM;
		if (rc)
			break;
		qp->head++;
	}
	if (shca_tracing())
		shca_traced_sends(qp, from, qp->head);
	shca_post_kick(qp);
	/* The engine may have read this line last. */
	shca_prefetch_write(shca_swqe(qp, qp->head));
	pthread_mutex_unlock(&qp->sq_lock);
	if (rc)
		*bad = wr;
	return rc;
}

int shca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shca_qp *qp = (struct shca_qp *)ibqp;
	int rc;

	/* To mlx5 a receive queue that isn't there is full, and in RESET any number of elements is
	 * too many. */
	if (!qp->rq.shared) {
		*bad = wr;
		return ENOMEM;
	}
	rc = shca_rq_post(&qp->rq, wr, bad,
			  shca_qp_state(qp->entry) == IBV_QPS_RESET ? -1
								    : (int)qp->rq.shared->max_sge);
	if (shca_tracing())
		shca_rq_trace(wr, rc ? *bad : NULL, ibqp->qp_num, 0);
	/* Until the flush has run, a sender may still be writing into an earlier receive. */
	if (atomic_load(&qp->flushed))
		shca_flush_late_receives(qp);
	return rc;
}
