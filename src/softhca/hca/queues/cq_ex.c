/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_ex.c - the extended polling interface: the same completions, read field by field.
 */
#include <errno.h>
#include <time.h>

#include "cq_ring.h"
#include "hca/timing.h"

static struct shca_cq *of(struct ibv_cq_ex *cq)
{
	return (struct shca_cq *)cq;
}

/* Reads the next completion into cur_wc. Returns 0, ENOENT if there is none, or EINVAL if its
 * queue is gone. */
static int next(struct shca_cq *cq)
{
	struct shca_cqe *cqe;
	int rc;

	pthread_mutex_lock(&cq->lock);
	cqe = shca_cq_peek(cq);
	if (!cqe) {
		pthread_mutex_unlock(&cq->lock);
		return ENOENT;
	}
	cq->cur_ts = cqe->visible_at ? cqe->visible_at : shca_now();
	cq->cur_wc = (struct ibv_wc){0};
	rc = shca_cq_read(cq, cqe, &cq->cur_wc);
	/* As with mlx5, only ibv_poll_cq() says of a send that it had immediate data. */
	if (!(cqe->flags & SHCA_CQE_RECV))
		cq->cur_wc.wc_flags = 0;
	shca_cq_stop_reading(cq);
	shca_cq_pop(cq, cqe);
	pthread_mutex_unlock(&cq->lock);
	if (rc)
		return EINVAL;
	__atomic_store_n(&cq->empty_polls, 0, __ATOMIC_RELAXED);
	cq->ibv.wr_id = cq->cur_wc.wr_id;
	cq->ibv.status = cq->cur_wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct shca_cq *cq = of(ibcq);
	int rc;

	if (attr && attr->comp_mask)
		return EINVAL;
	if (!shca_cq_maybe(cq) && (!shca_cq_idle(cq) || !shca_cq_maybe(cq)))
		return ENOENT;
	pthread_mutex_lock(&cq->polling);
	rc = next(cq);
	/* The lock is held until end_poll, which is called only after a success. */
	if (rc) {
		pthread_mutex_unlock(&cq->polling);
		if (rc == ENOENT)
			shca_cq_idle(cq);
	}
	return rc;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	return next(of(cq));
}

static void end_poll(struct ibv_cq_ex *cq)
{
	pthread_mutex_unlock(&of(cq)->polling);
}

/* Defines a function that reads a field of the current completion. */
#define READ(type, field)                              \
	static type read_##field(struct ibv_cq_ex *cq) \
	{                                              \
		return of(cq)->cur_wc.field;           \
	}
READ(enum ibv_wc_opcode, opcode)
READ(uint32_t, vendor_err)
READ(uint32_t, byte_len)
READ(__be32, imm_data)
READ(uint32_t, qp_num)
READ(uint32_t, src_qp)
READ(unsigned int, wc_flags)
READ(uint32_t, slid)
READ(uint8_t, sl)
READ(uint8_t, dlid_path_bits)
#undef READ

/*
 * VLAN tags, flow tags and tag matching don't exist here. An adapter without them in use shows
 * zeros.
 */
static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	(void)cq;
	*info = (struct ibv_wc_tm_info){0};
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return of(cq)->cur_ts;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return shca_timing.date_of(of(cq)->cur_ts);
}

static int refuse_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	(void)cq;
	(void)attr;
	return EIO;
}

void shca_cq_ex_refuse(struct shca_cq *cq)
{
	cq->ibv.start_poll = refuse_poll;
}

void shca_cq_ex_init(struct shca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ibv;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		ex->read_tm_info = read_tm_info;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
