/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wr_api.c - the extended posting interface (ibv_wr_*): WQEs are built in place between wr_start
 * and wr_complete, and executed together. The first error fails the batch, as with mlx5.
 */
#include <errno.h>
#include <string.h>

#include "hca/fault.h"
#include "hca/queues/sq.h"
#include "link.h"
#include "post.h"
#include "traced.h"

static struct shca_qp *of(struct ibv_qp_ex *qp)
{
	return (struct shca_qp *)qp;
}

/* Begins a WQE. Returns NULL after an error, so that setters need no check of their own. */
static struct shca_swqe *begin(struct shca_qp *qp, enum ibv_wr_opcode op)
{
	struct shca_swqe *wqe = NULL;
	int err = 0;

	qp->wr_cur = NULL;
	if (qp->wr_err)
		return NULL;
	qp->head += qp->wr_count;
	wqe = shca_sq_next(qp, &err);
	qp->head -= qp->wr_count;
	if (wqe)
		err = shca_post_check_opcode(qp, op);
	if (!err && (qp->ibv.wr_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED |
						    IBV_SEND_SOLICITED | IBV_SEND_INLINE)))
		err = EINVAL;
	if (err) {
		qp->wr_err = err;
		return NULL;
	}
	wqe->wr_id = qp->ibv.wr_id;
	wqe->posted_at = shca_link_on() || shca_is_recording() ? shca_now() : 0;
	wqe->opcode = (uint8_t)op;
	/* Inline data has setters of its own, which set the flag. */
	wqe->flags = (uint8_t)((qp->ibv.wr_flags & ~(unsigned)IBV_SEND_INLINE) |
			       (qp->sig_all ? IBV_SEND_SIGNALED : 0));
	wqe->length = 0;
	wqe->num_sge = 0;
	wqe->srqn = 0;
	if (qp->ibv.qp_base.qp_type == IBV_QPT_UD)
		wqe->ud.hca = -1;
	qp->wr_cur = wqe;
	qp->wr_count++;
	return wqe;
}

static void begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr)
{
	struct shca_swqe *wqe = begin(of(ex), op);

	if (!wqe)
		return;
	wqe->rkey = rkey;
	wqe->remote_addr = addr;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	if (of(qp)->wr_cur)
		of(qp)->wr_cur->imm = imm;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(of(qp), IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct shca_swqe *wqe = begin(of(qp), IBV_WR_SEND_WITH_IMM);

	if (wqe)
		wqe->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	struct shca_swqe *wqe = begin(of(qp), IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->imm = key;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	struct shca_swqe *wqe = begin(of(qp), IBV_WR_LOCAL_INV);

	if (wqe)
		wqe->imm = key;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t key,
		       const struct ibv_mw_bind_info *info)
{
	struct shca_swqe *wqe = begin(of(qp), IBV_WR_BIND_MW);
	int err = wqe ? shca_post_set_bind(wqe, mw, key, info) : 0;

	if (err)
		of(qp)->wr_err = err;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare,
			      uint64_t swap)
{
	begin_rdma(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr);
	if (!of(qp)->wr_cur)
		return;
	of(qp)->wr_cur->compare_add = compare;
	of(qp)->wr_cur->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	begin_rdma(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr);
	if (of(qp)->wr_cur)
		of(qp)->wr_cur->compare_add = add;
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	if (of(qp)->wr_cur)
		shca_post_set_ud(of(qp)->wr_cur, ah, qpn, qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
	if (of(qp)->wr_cur)
		of(qp)->wr_cur->srqn = srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct shca_qp *qp = of(ex);
	struct shca_swqe *wqe = qp->wr_cur;
	uint64_t len = 0;

	if (!wqe)
		return;
	if (n > qp->max_sge) {
		qp->wr_err = ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		shca_swqe_sges(wqe)[i] = list[i];
		len += list[i].length;
	}
	if (len > UINT32_MAX)
		qp->wr_err = EINVAL;
	wqe->num_sge = (uint16_t)n;
	wqe->length = (uint32_t)len;
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge s = {addr, length, lkey};

	wr_set_sge_list(qp, 1, &s);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct shca_qp *qp = of(ex);
	struct shca_swqe *wqe = qp->wr_cur;

	if (!wqe)
		return;
	if (!shca_post_sends_data(wqe->opcode))
		qp->wr_err = EINVAL;
	wqe->flags |= IBV_SEND_INLINE;
	for (size_t i = 0; i < n && !qp->wr_err; i++) {
		if (list[i].length > qp->max_inline - wqe->length) {
			qp->wr_err = ENOMEM;
			return;
		}
		memcpy(shca_swqe_inline(wqe) + wqe->length, list[i].addr, list[i].length);
		wqe->length += (uint32_t)list[i].length;
	}
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf b = {addr, length};

	wr_set_inline_data_list(qp, 1, &b);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct shca_qp *qp = of(ex);

	pthread_mutex_lock(&qp->sq_lock);
	qp->wr_count = 0;
	qp->wr_err = 0;
	qp->wr_cur = NULL;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct shca_qp *qp = of(ex);
	/* mlx5 doesn't look at the batch before RTS. */
	int err = qp->may_send ? qp->wr_err : EINVAL;

	shca_fault_kill(qp->ctx->hca);
	if (!err && shca_tracing())
		shca_traced_sends(qp, qp->head, qp->head + qp->wr_count);
	if (!err)
		qp->head += qp->wr_count;
	shca_post_kick(qp);
	pthread_mutex_unlock(&qp->sq_lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&of(ex)->sq_lock);
}

/* Fails the batch from its start, without a lock. */
static void refuse_start(struct ibv_qp_ex *ex)
{
	struct shca_qp *qp = of(ex);

	qp->wr_count = 0;
	qp->wr_err = EIO;
	qp->wr_cur = NULL;
}

static int refuse_complete(struct ibv_qp_ex *ex)
{
	(void)ex;
	return EIO;
}

static void refuse_abort(struct ibv_qp_ex *ex)
{
	(void)ex;
}

void shca_wr_api_refuse(struct shca_qp *qp)
{
	qp->ibv.wr_start = qp->ibv.wr_start ? refuse_start : NULL;
	qp->ibv.wr_complete = refuse_complete;
	qp->ibv.wr_abort = refuse_abort;
}

/* Functions that send_ops_flags didn't ask for are set all the same, because posting checks the
 * opcode. */
void shca_wr_api_init(struct shca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ibv;

	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}
