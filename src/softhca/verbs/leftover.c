/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leftover.c - contexts that may not be used any more although the user still has pointers into
 * them: those that were closed with objects left, and in a forked child those of its parent. The
 * structs stay; functions that would touch the fabric fail.
 */
#include "verbs.h"

#include <errno.h>

#include "fabric/event.h"
#include "hca/context_objects.h"
#include "hca/execution/wr_api.h"
#include "hca/objects/dm.h"
#include "hca/objects/mr_register.h"
#include "hca/objects/mw_alloc.h"
#include "hca/objects/qp.h"
#include "hca/objects/xrcd.h"
#include "hca/queues/srq.h"

static int refuse_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	(void)n;
	(void)wc;
	return -1;
}

static int refuse_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	(void)solicited_only;
	return EIO;
}

static int refuse_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return EIO;
}

static int refuse_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	*bad = wr;
	return EIO;
}

static int refuse_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	*bad = wr;
	return EIO;
}

static void refuse_object(enum shca_object_kind kind, void *object)
{
	if (kind == SHCA_OBJECT_QP)
		shca_wr_api_refuse(object);
	else if (kind == SHCA_OBJECT_CQ)
		shca_cq_ex_refuse(object);
}

void shca_leftover_refuse(struct shca_context *ctx)
{
	struct ibv_context_ops *ops = &ctx->vctx.context.ops;
	struct verbs_context *verbs = &ctx->vctx;

	ops->poll_cq = refuse_poll_cq;
	ops->req_notify_cq = refuse_req_notify_cq;
	ops->post_srq_recv = refuse_post_srq_recv;
	ops->post_send = refuse_post_send;
	ops->post_recv = refuse_post_recv;
	ops->alloc_mw = NULL;
	/* <infiniband/verbs.h> refuses these when they are NULL. The others check by themselves,
	 * or read only what doesn't change. */
	verbs->alloc_td = NULL;
	verbs->dealloc_td = NULL;
	verbs->alloc_parent_domain = NULL;
	verbs->create_cq_ex = NULL;
	verbs->create_srq_ex = NULL;
	verbs->create_qp_ex = NULL;
	verbs->open_xrcd = NULL;
	verbs->open_qp = NULL;
	verbs->get_srq_num = NULL;
	verbs->alloc_null_mr = NULL;
	verbs->advise_mr = NULL;
	shca_context_objects_each(ctx, refuse_object);
}

static void close_file(enum shca_object_kind kind, void *object)
{
	if (kind == SHCA_OBJECT_XRCD)
		shca_xrcd_close_file(object);
}

void shca_leftover_inherit(struct shca_context *ctx)
{
	shca_leftover_refuse(ctx);
	shca_context_objects_each(ctx, close_file);
}

static void end(enum shca_object_kind kind, void *object)
{
	switch (kind) {
	case SHCA_OBJECT_QP:
		shca_qp_end(object, true);
		break;
	case SHCA_OBJECT_SRQ:
		shca_srq_end(object);
		break;
	case SHCA_OBJECT_MW:
		shca_mw_end(object);
		break;
	case SHCA_OBJECT_MR:
		shca_mr_end(object);
		break;
	case SHCA_OBJECT_DM:
		shca_dm_end(object);
		break;
	case SHCA_OBJECT_CQ:
		shca_cq_end(object);
		break;
	case SHCA_OBJECT_XRCD:
		shca_xrcd_end(object);
		break;
	case SHCA_OBJECT_PD:
		shca_pd_end(object);
		break;
	case SHCA_OBJECT_CHANNEL:
		/* The descriptor is the user's: the kernel leaves it open too. */
		shca_event_destroy(&shca_self.fabric, shca_self.slot,
				   ((struct shca_channel *)object)->id, -1);
		break;
	case SHCA_OBJECT_TD:
	case SHCA_OBJECT_IMPORT:
	case SHCA_OBJECT_KINDS:
		break;
	}
}

void shca_leftover_end(struct shca_context *ctx)
{
	for (unsigned k = 0; k < SHCA_OBJECT_KINDS; k++) {
		enum shca_object_kind kind = k;
		void *object;

		while ((object = shca_context_objects_take(ctx, kind)))
			end(kind, object);
	}
}
