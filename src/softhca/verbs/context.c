/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.c - opening and closing devices, and the tables of operations that inline verbs go
 * through.
 */
#include "verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock/clock.h"
#include "clocked.h"
#include "fabric/cancel.h"
#include "fabric/event.h"
#include "hca/context_objects.h"
#include "hca/execution/post.h"
#include "hca/objects/dm.h"
#include "hca/objects/mr_register.h"
#include "hca/objects/mw_alloc.h"
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
static void set_ops(struct ibv_context_ops *ops, const struct shca_fabric *fabric)
{
	ops->poll_cq = shca_poll_cq;
	ops->req_notify_cq = shca_req_notify_cq;
	ops->post_srq_recv = shca_post_srq_recv;
	ops->post_send = shca_post_send;
	ops->post_recv = shca_post_recv;
	if (shca_opt(fabric, SHCA_O_MW))
		ops->alloc_mw = shca_alloc_mw;
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
	if (shca_opt(fabric, SHCA_O_DM_SIZE)) {
		verbs->alloc_dm = shca_alloc_dm;
		verbs->free_dm = shca_free_dm;
		verbs->reg_dm_mr = shca_reg_dm_mr;
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

/* Returns the inode of a file, or 0. */
static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) || !S_ISREG(st.st_mode) ? 0 : st.st_ino;
}

/* Opens the descriptors that applications poll or put into their tables. `cmd_fd` is one that is
 * imported, or -1. */
static int open_fds(struct shca_context *ctx, int cmd_fd)
{
	struct ibv_context *ibv = &ctx->vctx.context;
	int64_t id;

	/* A file of its own, so that contexts by copies of the descriptor are known by its
	 * inode. */
	ibv->cmd_fd = cmd_fd >= 0 ? cmd_fd : memfd_create("softhca", MFD_CLOEXEC);
	if (ibv->cmd_fd < 0)
		return -errno;
	ctx->file = inode_of(ibv->cmd_fd);
	id = shca_event_create(&shca_self.fabric, shca_self.slot, &ibv->async_fd);
	if (id < 0) {
		if (cmd_fd < 0)
			close(ibv->cmd_fd);
		return (int)id;
	}
	ctx->async_channel = (uint32_t)id;
	return 0;
}

static int init_context(struct shca_context *ctx, struct shca_device *dev, int cmd_fd)
{
	struct ibv_context *ibv = &ctx->vctx.context;
	struct shca_fabric *fabric = &shca_self.fabric;
	int ret;

	ctx->hca = dev->hca;
	ctx->proc = shca_self.proc;
	ctx->hca_idx = shca_hca_index(fabric, dev->hca);
	ctx->vctx.sz = sizeof(ctx->vctx);
	set_extended_ops(&ctx->vctx, fabric);
	ibv->device = &dev->ibv;
	ibv->num_comp_vectors = comp_vectors();
	ibv->abi_compat = __VERBS_ABI_IS_EXTENDED;
	set_ops(&ibv->ops, fabric);
	shca_clocked_ops(&ctx->vctx);
	ret = open_fds(ctx, cmd_fd);
	if (ret)
		return ret;
	pthread_mutex_init(&ibv->mutex, NULL);
	return 0;
}

static struct ibv_context *open_context(struct ibv_device *device, int cmd_fd)
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
		ret = init_context(ctx, shca_device(device), cmd_fd);
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

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return open_context(device, -1);
}

/* The context that is made owns the descriptor. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	uint64_t file = inode_of(cmd_fd);
	struct shca_context *original = file ? shca_context_objects_of_file(file) : NULL;

	if (!original) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return open_context(original->vctx.context.device, cmd_fd);
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
