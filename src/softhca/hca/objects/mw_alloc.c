/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw_alloc.c - making and ending memory windows; binding those of type 1.
 */
#include "mw_alloc.h"

#include <errno.h>
#include <stdlib.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "fabric/table.h"

static struct shca_mw_entry *make_entry(struct shca_context *ctx)
{
	int64_t idx = shca_table_alloc(&shca_self.fabric, ctx->hca, SHCA_MW, shca_self.slot);

	errno = idx < 0 ? (int)-idx : 0;
	return idx < 0 ? NULL
		       : shca_table_entry(&shca_self.fabric, &ctx->hca->tables[SHCA_MW],
					  (uint32_t)idx);
}

struct ibv_mw *shca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(pd->context);
	struct shca_mw *mw;

	if (!shca_ours(pd->context)) {
		errno = EIO;
		return NULL;
	}
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	mw->entry = make_entry(ctx);
	if (!mw->entry) {
		free(mw);
		return NULL;
	}
	mw->entry->type = type;
	mw->entry->pdn = ((struct shca_pd *)pd)->pdn;
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.rkey = SHCA_MW_KEY(shca_table_number(mw->entry), 0);
	mw->ibv.handle = shca_table_index(&shca_self.fabric, &ctx->hca->tables[SHCA_MW], mw->entry);
	mw->ibv.type = type;
	mw->pd = shca_pd_use(pd);
	shca_context_objects_add(pd->context, &mw->context_node, SHCA_OBJECT_MW, mw);
	shca_table_publish(mw->entry);
	return &mw->ibv;
}

void shca_mw_end(struct shca_mw *mw)
{
	/* The user may do with the memory what it likes as soon as this returns: wait for all
	 * requesters that are copying. */
	shca_table_retire(mw->entry);
	shca_epoch_sync(&shca_self.fabric);
	shca_table_free(shca_ctx(mw->ibv.context)->hca, SHCA_MW, mw->entry);
}

int shca_dealloc_mw(struct ibv_mw *ibmw)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_mw *mw = (struct shca_mw *)ibmw;

	if (!shca_ours(ibmw->context))
		return EIO;
	shca_context_objects_remove(&mw->context_node);
	shca_mw_end(mw);
	atomic_fetch_sub(&mw->pd->refs, 1);
	free(mw);
	return 0;
}

int shca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct shca_mr *region = (const struct shca_mr *)bind->bind_info.mr;
	struct ibv_send_wr *bad, wr = {.wr_id = bind->wr_id,
				       .opcode = IBV_WR_BIND_MW,
				       .send_flags = bind->send_flags};
	int rc;

	/* As with mlx5, errno is set too. */
	if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) ||
	    (region && (region->entry->access & IBV_ACCESS_ZERO_BASED)))
		return errno = EINVAL;
	if (region && (region->entry->flags & (SHCA_MR_NULL | SHCA_MR_DEVICE)))
		return errno = ENOTSUP;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind->bind_info;
	rc = qp->context->ops.post_send(qp, &wr, &bad);
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}
