/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.c - opening and closing devices, and the tables of operations that inline verbs go
 * through.
 */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock/clock.h"
#include "clocked.h"
#include "fabric/cancel.h"
#include "fabric/event.h"
#include "hca/context_objects.h"
#include "hca/execution/post.h"
#include "hca/objects/mr_register.h"
#include "hca/objects/qp.h"
#include "hca/objects/xrcd.h"
#include "hca/queues/srq.h"

/* Most completion vectors of a context, which otherwise has one per CPU. A choice: vectors have no
 * effect here, but a program may make a CQ or a thread for each. */
#define MAX_COMP_VECTORS 64

/*
 * Fills in the operations. The inline functions of <infiniband/verbs.h> refuse NULL operations with
 * EOPNOTSUPP; where they don't check, the table has a function that refuses.
 */
static void set_ops(struct ibv_context_ops *ops)
{
	ops->poll_cq = shca_poll_cq;
	ops->req_notify_cq = shca_req_notify_cq;
	ops->post_srq_recv = shca_post_srq_recv;
	ops->post_send = shca_post_send;
	ops->post_recv = shca_post_recv;
	ops->bind_mw = shca_bind_mw;
	ops->dealloc_mw = shca_dealloc_mw;
}

static void set_extended_ops(struct verbs_context *verbs, const struct shca_fabric *fabric)
{
	verbs->query_port = shca_query_port;
	verbs->query_device_ex = shca_query_device_ex;
	verbs->query_rt_values = shca_query_rt_values;
	verbs->alloc_td = shca_alloc_td;
	verbs->dealloc_td = shca_dealloc_td;
	verbs->alloc_parent_domain = shca_alloc_parent_domain;
	verbs->create_cq_ex = shca_create_cq_ex;
	verbs->modify_cq = shca_modify_cq;
	verbs->create_srq_ex = shca_create_srq_ex;
	verbs->get_srq_num = shca_get_srq_num;
	verbs->create_qp_ex = shca_create_qp_ex;
	if (shca_opt(fabric, SHCA_O_XRC)) {
		verbs->open_xrcd = shca_open_xrcd;
		verbs->close_xrcd = shca_close_xrcd;
		if (shca_opt(fabric, SHCA_O_OPEN_QP))
			verbs->open_qp = shca_open_qp;
	}
	if (shca_opt(fabric, SHCA_O_NULL_MR))
		verbs->alloc_null_mr = shca_alloc_null_mr;
	if (shca_opt(fabric, SHCA_O_ODP) != SHCA_ODP_OFF)
		verbs->advise_mr = shca_advise_mr;
}

static int comp_vectors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	if (n < 2)
		return 2;
	return n < MAX_COMP_VECTORS ? (int)n : MAX_COMP_VECTORS;
}

/* Opens the descriptors that applications poll or put into their tables. */
static int open_fds(struct shca_context *ctx)
{
	struct ibv_context *ibv = &ctx->vctx.context;
	int64_t id;

	ibv->cmd_fd = eventfd(0, EFD_CLOEXEC);
	if (ibv->cmd_fd < 0)
		return -errno;
	id = shca_event_create(&shca_self.fabric, shca_self.slot, &ibv->async_fd);
	if (id < 0) {
		close(ibv->cmd_fd);
		return (int)id;
	}
	ctx->async_channel = (uint32_t)id;
	return 0;
}

static int init_context(struct shca_context *ctx, struct shca_device *dev)
{
	struct ibv_context *ibv = &ctx->vctx.context;
	struct shca_fabric *fabric = &shca_self.fabric;
	int ret;

	ctx->hca = dev->hca;
	ctx->hca_idx = shca_hca_index(fabric, dev->hca);
	ctx->vctx.sz = sizeof(ctx->vctx);
	set_extended_ops(&ctx->vctx, fabric);
	ibv->device = &dev->ibv;
	ibv->num_comp_vectors = comp_vectors();
	ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
	set_ops(&ibv->ops);
	shca_clocked_ops(&ctx->vctx);
	ret = open_fds(ctx);
	if (ret)
		return ret;
	pthread_mutex_init(&ibv->mutex, NULL);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shca_context *ctx;
	int ret, cancel;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx) {
		errno = ENOMEM;
		return NULL;
	}
	cancel = shca_cancel_hold();
	ret = shca_process_enter();
	if (!ret) {
		ret = init_context(ctx, shca_device(device));
		if (ret)
			shca_process_leave();
	}
	shca_cancel_restore(cancel);
	if (ret) {
		free(ctx);
		errno = -ret;
		return NULL;
	}
	shca_context_objects_open(ctx);
	return &ctx->vctx.context;
}

int ibv_close_device(struct ibv_context *context)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(context);
	bool ours = shca_ours(context), leftovers = shca_context_objects_any(ctx);
	int cancel;

	cancel = shca_cancel_hold();
	if (ours) {
		shca_leftover_refuse(ctx);
		shca_leftover_end(ctx);
		shca_event_destroy(&shca_self.fabric, shca_self.slot, ctx->async_channel,
				   context->async_fd);
	} else { /* the channel is the parent's; only the descriptor is this process's */
		close(context->async_fd);
	}
	close(context->cmd_fd);
	shca_context_objects_close(ctx);
	if (ours)
		shca_process_leave();
	shca_cancel_restore(cancel);
	/*
	 * Objects that are left point to the context; a program that touches them still finds
	 * memory.
	 */
	if (leftovers)
		return 0;
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}
