/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_create.c - creating and opening queue pairs.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "fabric/xrc_life.h"
#include "hca/context_objects.h"
#include "hca/execution/wr_api.h"
#include "hca/object_cache.h"
#include "hca/sizes.h"
#include "qp.h"

#define OPS_CONNECTED                                                                           \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | OPS_WINDOWS)
#define OPS_WINDOWS \
	(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_ATOMIC   (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define OPS_RELIABLE (OPS_CONNECTED | IBV_QP_EX_WITH_RDMA_READ | OPS_ATOMIC)

/* Properties of a type of QP. */
struct qp_type {
	bool sends, receives, needs_pd;
	uint64_t ops; /* operations of the ibv_wr_* interface */
};

static const struct qp_type types[] = {
	[IBV_QPT_RC] = {true, true, true, OPS_RELIABLE},
	[IBV_QPT_UC] = {true, true, true, OPS_CONNECTED},
	[IBV_QPT_UD] = {true, true, true, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM},
	[IBV_QPT_XRC_SEND] = {true, false, true, OPS_RELIABLE},
	[IBV_QPT_XRC_RECV] = {false, false, false, 0},
};

static const struct qp_type *type_of(enum ibv_qp_type t)
{
	if ((unsigned)t >= sizeof(types) / sizeof(*types) ||
	    (!types[t].sends && t != IBV_QPT_XRC_RECV))
		return NULL;
	if ((t == IBV_QPT_XRC_SEND || t == IBV_QPT_XRC_RECV) &&
	    !shca_opt(&shca_self.fabric, SHCA_O_XRC))
		return NULL;
	return &types[t];
}

static int check_caps(const struct ibv_qp_init_attr_ex *attr, const struct qp_type *type)
{
	const struct shca_fabric *fabric = &shca_self.fabric;
	const struct ibv_qp_cap *cap = &attr->cap;
	uint32_t max_wr = (uint32_t)shca_opt(fabric, SHCA_O_MAX_QP_WR);
	uint32_t max_sge = (uint32_t)shca_opt(fabric, SHCA_O_MAX_SGE);

	if (type->sends && (cap->max_send_wr > max_wr || cap->max_send_sge > max_sge ||
			    cap->max_inline_data > (uint32_t)shca_opt(fabric, SHCA_O_MAX_INLINE)))
		return EINVAL;
	if (type->receives && !attr->srq &&
	    (cap->max_recv_wr > max_wr || cap->max_recv_sge > max_sge))
		return EINVAL;
	return 0;
}

static int check(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	const struct qp_type *type = type_of(attr->qp_type);
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
	uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;

	if (!shca_ours(ctx))
		return EIO;
	/* The kernel asks first whether the process may send raw packets at all. */
	if (attr->qp_type == IBV_QPT_RAW_PACKET && !shca_may(CAP_NET_RAW))
		return EPERM;
	if (!type || (attr->comp_mask & ~known))
		return EOPNOTSUPP;
	if (flags && (flags != IBV_QP_CREATE_BLOCK_SELF_MCAST_LB || attr->qp_type != IBV_QPT_UD))
		return EOPNOTSUPP;
	if ((ops & ~type->ops) || (ops && !shca_opt(&shca_self.fabric, SHCA_O_WR_API)) ||
	    ((ops & OPS_ATOMIC) && !shca_opt(&shca_self.fabric, SHCA_O_ATOMICS)) ||
	    ((ops & OPS_WINDOWS) && !shca_opt(&shca_self.fabric, SHCA_O_MW)))
		return EOPNOTSUPP;
	if (type->needs_pd &&
	    (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != ctx))
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV && (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) ||
						  !attr->xrcd || attr->xrcd->context != ctx))
		return EINVAL;
	if ((type->sends && (!attr->send_cq || attr->send_cq->context != ctx)) ||
	    (type->receives && (!attr->recv_cq || attr->recv_cq->context != ctx)))
		return EINVAL;
	if (attr->srq && (!type->receives || attr->srq->context != ctx ||
			  ((struct shca_srq *)attr->srq)->entry->type != IBV_SRQT_BASIC))
		return EINVAL;
	return check_caps(attr, type);
}

/* Raises the inline data to what a ConnectX's smallest entry of a send queue has room for beside
 * its headers: programs of other projects send a little inline without having asked. */
static void grant_inline(const struct shca_qp *qp, struct ibv_qp_cap *cap)
{
	uint32_t room = qp->ibv.qp_base.qp_type == IBV_QPT_XRC_SEND ? 44 : 60;
	uint32_t max = (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_INLINE);

	if (room > max)
		room = max;
	if (cap->max_inline_data < room)
		cap->max_inline_data = room;
}

/* Allocates the entries of the send queue, by the parent domain's functions if it has some. */
static int alloc_sq(struct shca_qp *qp, struct ibv_pd *ibpd)
{
	struct shca_pd *pd = (struct shca_pd *)ibpd;
	size_t bytes = (size_t)qp->sq_size * qp->sq_stride;
	void *memory = IBV_ALLOCATOR_USE_DEFAULT;

	if (pd->alloc)
		memory = pd->alloc(ibpd, pd->pd_context, bytes, SHCA_LINE, SHCA_QP_MEMORY);
	qp->sq_by_user = memory != IBV_ALLOCATOR_USE_DEFAULT;
	qp->sq = qp->sq_by_user ? memory : aligned_alloc(SHCA_LINE, bytes);
	return qp->sq ? 0 : -ENOMEM;
}

static int make_sq(struct shca_qp *qp, struct ibv_qp_cap *cap, struct ibv_pd *pd)
{
	uint32_t sge_bytes, bytes;

	qp->max_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	grant_inline(qp, cap);
	sge_bytes = qp->max_sge * (uint32_t)sizeof(struct ibv_sge);
	bytes = sge_bytes > cap->max_inline_data ? sge_bytes : cap->max_inline_data;
	qp->sq_stride = (uint32_t)shca_round_line(sizeof(struct shca_swqe) + bytes);
	qp->max_inline = cap->max_inline_data;
	qp->sq_size = shca_pow2_at_least(cap->max_send_wr);
	if (alloc_sq(qp, pd))
		return -ENOMEM;
	/* The ring may be larger than the device's limit. */
	qp->max_wr = (uint32_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_QP_WR);
	if (qp->max_wr > qp->sq_size)
		qp->max_wr = qp->sq_size;
	/* If no sends were asked for, none can be posted. */
	if (!cap->max_send_wr)
		qp->max_wr = 0;
	cap->max_send_wr = qp->max_wr;
	cap->max_send_sge = qp->max_sge;
	return 0;
}

static int make_queues(struct shca_qp *qp, struct ibv_qp_init_attr_ex *attr,
		       const struct qp_type *type)
{
	if (type->sends && make_sq(qp, &attr->cap, attr->pd))
		return -ENOMEM;
	if (attr->qp_type == IBV_QPT_UD) {
		qp->datagram = malloc(SHCA_DATAGRAM_MAX);
		if (!qp->datagram)
			return -ENOMEM;
	}
	if (!type->sends)
		attr->cap.max_send_wr = attr->cap.max_send_sge = attr->cap.max_inline_data = 0;
	if (!type->receives || attr->srq) {
		attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
		return 0;
	}
	if (!attr->cap.max_recv_sge)
		attr->cap.max_recv_sge = 1;
	return shca_rq_init(&qp->rq, &qp->entry->rq, false, &attr->cap.max_recv_wr,
			    attr->cap.max_recv_sge);
}

/* Takes the references that ibv_destroy_qp() drops. */
static void attach(struct shca_qp *qp, const struct ibv_qp_init_attr_ex *attr,
		   const struct qp_type *type)
{
	struct ibv_qp *ib = &qp->ibv.qp_base;
	struct shca_qp_entry *entry = qp->entry;

	/* Filled in as libibverbs does it: also fields that this type of QP has no use for. */
	ib->pd = attr->pd;
	ib->send_cq = attr->send_cq;
	ib->recv_cq = attr->recv_cq;
	ib->srq = attr->srq;
	if (type->needs_pd) {
		qp->pd = shca_pd_use(attr->pd);
		qp->pdn = entry->pdn = qp->pd->pdn;
	} else {
		qp->xrcd = (struct shca_xrcd *)attr->xrcd;
		entry->xrcd = qp->xrcd->idx;
		atomic_fetch_add(&qp->xrcd->refs, 1);
	}
	if (type->sends) {
		qp->send_cq = (struct shca_cq *)attr->send_cq;
		entry->send_cq = qp->send_cq->idx;
		atomic_fetch_add(&qp->send_cq->refs, 1);
	}
	if (type->receives) {
		qp->recv_cq = (struct shca_cq *)attr->recv_cq;
		entry->recv_cq = qp->recv_cq->idx;
		atomic_fetch_add(&qp->recv_cq->refs, 1);
		shca_cq_make_bounces(qp->recv_cq);
	}
	if (attr->srq) {
		qp->srq = (struct shca_srq *)attr->srq;
		entry->srq = qp->srq->idx + 1;
		atomic_fetch_add(&qp->srq->refs, 1);
	}
	shca_context_objects_add(ib->context, &qp->context_node, SHCA_OBJECT_QP, qp);
}

static struct shca_qp *qp_alloc(struct ibv_context *ibctx, enum ibv_qp_type type, void *user)
{
	struct shca_qp *qp = aligned_alloc(SHCA_LINE, shca_round_line(sizeof(*qp)));

	if (!qp)
		return NULL;
	*qp = (struct shca_qp){.ctx = shca_ctx(ibctx)};
	qp->ibv.qp_base.context = ibctx;
	qp->ibv.qp_base.qp_context = user;
	qp->ibv.qp_base.qp_type = type;
	pthread_mutex_init(&qp->ibv.qp_base.mutex, NULL);
	pthread_cond_init(&qp->ibv.qp_base.cond, NULL);
	pthread_mutex_init(&qp->sq_lock, NULL);
	return qp;
}

static void number(struct shca_qp *qp, uint32_t idx)
{
	qp->idx = idx;
	qp->entry = shca_table_entry(&shca_self.fabric, &qp->ctx->hca->tables[SHCA_QP], idx);
	qp->copy.direct = &qp->entry->counters[SHCA_C_DIRECT];
	qp->ibv.qp_base.qp_num = shca_table_number(qp->entry);
	qp->ibv.qp_base.handle = idx;
	qp->ibv.qp_base.state = IBV_QPS_RESET;
}

struct ibv_qp *shca_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(ibctx);
	struct shca_qp *qp;
	int64_t idx;

	errno = check(ibctx, attr);
	if (errno)
		return NULL;
	qp = qp_alloc(ibctx, attr->qp_type, attr->qp_context);
	if (!qp)
		return NULL;
	idx = shca_table_alloc(&shca_self.fabric, ctx->hca, SHCA_QP, shca_self.slot);
	if (idx < 0)
		goto free_qp;
	atomic_store(&shca_self.proc->owes, 1);
	number(qp, (uint32_t)idx);
	if (make_queues(qp, attr, &types[attr->qp_type]))
		goto free_entry;
	qp->sig_all = attr->sq_sig_all;
	qp->entry->type = attr->qp_type;
	qp->entry->cap = attr->cap;
	qp->entry->sq_sig_all = (uint32_t)attr->sq_sig_all;
	qp->entry->create_flags =
		attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
	qp->entry->async_channel = ctx->async_channel;
	atomic_store(&qp->entry->state, IBV_QPS_RESET);
	shca_lock_init(&qp->entry->tgt_lock);
	if (shca_qp_add_handle(qp))
		goto free_entry;
	attach(qp, attr, &types[attr->qp_type]);
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		shca_qp_lock_handles();
		shca_qp_note_tgt_handle(ctx);
		shca_qp_unlock_handles();
		shca_openers_add(qp->entry->openers, shca_self.slot);
	} else if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		shca_wr_api_init(qp);
	}
	shca_object_cache_add(ctx->hca, SHCA_QP, qp->idx);
	shca_table_publish(qp->entry);
	return &qp->ibv.qp_base;
free_entry:
	shca_rq_fini(&qp->rq);
	shca_table_free(ctx->hca, SHCA_QP, qp->entry);
free_qp:
	pthread_mutex_destroy(&qp->sq_lock);
	free(qp->datagram);
	shca_qp_free_sq(qp, (struct shca_pd *)attr->pd);
	free(qp);
	errno = ENOMEM;
	return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex a = {.qp_context = attr->qp_context,
					.send_cq = attr->send_cq,
					.recv_cq = attr->recv_cq,
					.srq = attr->srq,
					.cap = attr->cap,
					.qp_type = attr->qp_type,
					.sq_sig_all = attr->sq_sig_all,
					.comp_mask = IBV_QP_INIT_ATTR_PD,
					.pd = pd};
	struct ibv_qp *qp = shca_create_qp_ex(pd->context, &a);

	if (qp)
		attr->cap = a.cap;
	return qp;
}

/* Opens target QP `qpn` of a domain for a new handle. Returns 0 or an errno value. */
static int open_tgt(struct shca_qp *qp, uint32_t xrcd, uint32_t qpn)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	struct shca_hca *hca = qp->ctx->hca;
	bool ended = false;
	int64_t idx;
	int rc = 0;

	shca_qp_lock_handles();
	idx = shca_tgt_open(fabric, hca, shca_self.slot, xrcd, qpn);
	if (idx < 0) {
		rc = (int)-idx;
	} else {
		number(qp, (uint32_t)idx);
		rc = -shca_qp_add_handle(qp);
		/* Only a first handle takes memory: this process has no other one. */
		if (rc)
			ended = shca_tgt_close(hca, qp->entry, shca_self.slot);
		else
			shca_qp_note_tgt_handle(qp->ctx);
	}
	shca_qp_unlock_handles();
	if (ended)
		shca_tgt_free(fabric, hca, qp->entry);
	return rc;
}

struct ibv_qp *shca_open_qp(struct ibv_context *ibctx, struct ibv_qp_open_attr *attr)
{
	SHCA_CLOCKED(VERB, 1);
	const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct shca_xrcd *xrcd = (struct shca_xrcd *)attr->xrcd;
	struct shca_qp *qp;

	if ((attr->comp_mask & need) != need ||
	    (attr->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT)) ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !xrcd || xrcd->ibv.context != ibctx) {
		errno = EINVAL;
		return NULL;
	}
	qp = qp_alloc(ibctx, attr->qp_type,
		      attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	if (!qp)
		return NULL;
	errno = open_tgt(qp, xrcd->idx, attr->qp_num);
	if (errno) {
		pthread_mutex_destroy(&qp->sq_lock);
		free(qp);
		return NULL;
	}
	/* libibverbs doesn't ask for the state; ibv_query_qp() does. */
	qp->ibv.qp_base.state = IBV_QPS_UNKNOWN;
	qp->xrcd = xrcd;
	atomic_fetch_add(&xrcd->refs, 1);
	shca_context_objects_add(ibctx, &qp->context_node, SHCA_OBJECT_QP, qp);
	return &qp->ibv.qp_base;
}
