/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrcd.c - XRC domains: the handles of this process. The domains themselves are in
 * fabric/xrc_life.c.
 */
#define _GNU_SOURCE 1
#include "xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/xrc_life.h"
#include "hca/context_objects.h"

/* Guards `handle_counts`. A process counts once in a domain, however many handles it has. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *handle_counts[SHCA_MAX_HCAS]; /* number of handles, by table index */

void shca_xrcd_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < SHCA_MAX_HCAS; i++)
		handle_counts[i] = NULL; /* these were the parent's; the child has opened none */
}

static uint32_t *count_of(struct shca_context *ctx, uint32_t idx)
{
	uint32_t **h = &handle_counts[ctx->hca_idx];

	if (!*h)
		*h = calloc(ctx->hca->tables[SHCA_XRCD].size, sizeof(**h));
	return *h ? *h + idx : NULL;
}

/* Keeps a file, so that no other one gets its inode number while the domain lives: the kernel holds
 * the inode too. Unlike a duplicate, the descriptor releases no lock when it is closed. */
static int keep_file(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_PATH | O_CLOEXEC);
}

void shca_xrcd_close_file(struct shca_xrcd *xrcd)
{
	if (xrcd->file >= 0)
		close(xrcd->file);
	xrcd->file = -1;
}

/* Opens a domain, whose file is kept already, for a new handle. Returns its index or -errno. */
static int64_t open_domain(struct shca_context *ctx, const struct stat *st, int oflags)
{
	uint32_t *count;
	int64_t idx;

	pthread_mutex_lock(&lock);
	count = count_of(ctx, 0);
	idx = count ? shca_xrcd_open(&shca_self.fabric, ctx->hca, shca_self.slot, st->st_dev,
				     st->st_ino, oflags)
		    : -ENOMEM;
	if (idx >= 0)
		count[idx]++;
	pthread_mutex_unlock(&lock);
	return idx;
}

struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ibctx, struct ibv_xrcd_init_attr *attr)
{
	SHCA_CLOCKED(VERB, 1);
	const uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct shca_context *ctx = shca_ctx(ibctx);
	struct shca_xrcd *xrcd;
	struct stat st = {0};
	int64_t idx;

	if (attr->comp_mask != need || (attr->oflags & ~(O_CREAT | O_EXCL)) ||
	    (attr->fd == -1 && !(attr->oflags & O_CREAT))) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->fd != -1 && fstat(attr->fd, &st)) {
		errno = EBADF;
		return NULL;
	}
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->file = attr->fd != -1 ? keep_file(attr->fd) : -1;
	if (attr->fd != -1 && xrcd->file < 0) {
		free(xrcd);
		return NULL;
	}
	idx = open_domain(ctx, &st, attr->oflags);
	if (idx < 0) {
		shca_xrcd_close_file(xrcd);
		free(xrcd);
		errno = (int)-idx;
		return NULL;
	}
	xrcd->ibv.context = ibctx;
	xrcd->idx = (uint32_t)idx;
	xrcd->entry = shca_table_entry(&shca_self.fabric, &ctx->hca->tables[SHCA_XRCD], xrcd->idx);
	shca_context_objects_add(ibctx, &xrcd->context_node, SHCA_OBJECT_XRCD, xrcd);
	return &xrcd->ibv;
}

void shca_xrcd_end(struct shca_xrcd *xrcd)
{
	struct shca_context *ctx = shca_ctx(xrcd->ibv.context);

	pthread_mutex_lock(&lock);
	if (!--*count_of(ctx, xrcd->idx))
		shca_xrcd_close(&shca_self.fabric, ctx->hca, xrcd->entry, shca_self.slot);
	pthread_mutex_unlock(&lock);
	shca_xrcd_close_file(xrcd);
}

int shca_close_xrcd(struct ibv_xrcd *ibx)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_xrcd *xrcd = (struct shca_xrcd *)ibx;

	if (!shca_ours(ibx->context))
		return EIO;
	if (atomic_load(&xrcd->refs))
		return EBUSY;
	shca_context_objects_remove(&xrcd->context_node);
	shca_xrcd_end(xrcd);
	free(xrcd);
	return 0;
}
