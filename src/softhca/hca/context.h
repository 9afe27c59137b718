/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * context.h - the private halves of devices and contexts. Each embeds the public struct, so a
 * pointer that the user passes is a pointer to the private half.
 *
 * Lock order of the library, outermost first: the locks of this process's handles of target QPs and
 * XRC domains (objects/), which are also held around an HCA's ctl_lock; the lock of event_ack.h;
 * the locks of lists of objects (execution/flush.c, queues/cq.c); cq->lock; qp->sq_lock; rq->lock;
 * the locks of the engine, of due CQ events and of memory/segment.c. A thread that waits without a
 * limit until other threads have left their epochs holds no lock, with three exceptions: the RESET
 * of a target QP holds its tgt_lock (fabric/README.md), ibv_resize_cq() holds cq->lock, and the
 * last close of an XRC domain holds the lock of the handles of domains.
 */
#ifndef SHCA_CONTEXT_H
#define SHCA_CONTEXT_H

#include "process.h"

/* A device as applications see it, with room behind it that the checks of providers may read as
 * zeros. */
struct shca_device {
	struct ibv_device ibv;
	char provider_room[1024];
	struct shca_hca *hca;
};

struct shca_context_object; /* context_objects.h */

#define SHCA_CLOSED 0
struct shca_context {
	struct verbs_context vctx; /* the user holds a pointer to vctx.context */
	struct shca_hca *hca;
	unsigned hca_idx;
	uint32_t async_channel; /* id of its channel for asynchronous events (fabric/event.h) */
	struct shca_proc *proc; /* the process that opened it */
	unsigned fork_count;    /* shca_self.fork_count when it was opened, or SHCA_CLOSED */
	unsigned tgt_handles;   /* handles of target QPs; guarded by shca_qp_lock_handles() */
	uint64_t file;          /* inode of cmd_fd: the same for contexts that share objects */
	struct shca_context_object *objects; /* everything that was made in it */
	struct shca_context *next;
};

static inline struct shca_context *shca_ctx(struct ibv_context *context)
{
	return (struct shca_context *)((char *)context -
				       offsetof(struct shca_context, vctx.context));
}

/*
 * Returns true if this process may use the objects of a context: false if the context was closed,
 * or was inherited through a fork, when any use would harm the parent. Functions of the data path
 * don't check this: the tables of an unusable context no longer name them.
 */
static inline bool shca_ours(struct ibv_context *context)
{
	return shca_ctx(context)->fork_count == shca_self.fork_count;
}

#endif
