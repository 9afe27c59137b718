/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dm.c - allocating device memory, and access to it by the process.
 */
#include "dm.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "clock/clock.h"

/* Bytes in which a ConnectX gives its memory away; also the largest alignment. */
#define UNIT 64u

/* Checks the arguments of access by the process. Returns 0, or an errno as libmlx5 does. */
static int check_access(const struct shca_dm *dm, uint64_t offset, size_t length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return length % 4 || offset % 4 ? EINVAL : 0;
}

/* Copies whole words, because peers may look at the memory meanwhile. */
static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	struct shca_dm *dm = (struct shca_dm *)ibdm;
	_Atomic uint32_t *to = (_Atomic uint32_t *)(void *)(dm->memory + offset);
	int rc = check_access(dm, offset, length);

	for (size_t i = 0; !rc && i < length / 4; i++) {
		uint32_t word;

		memcpy(&word, (const char *)from + 4 * i, 4);
		atomic_store_explicit(&to[i], word, memory_order_relaxed);
	}
	return rc;
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct shca_dm *dm = (struct shca_dm *)ibdm;
	_Atomic uint32_t *from = (_Atomic uint32_t *)(void *)(dm->memory + offset);
	int rc = check_access(dm, offset, length);

	for (size_t i = 0; !rc && i < length / 4; i++) {
		uint32_t word = atomic_load_explicit(&from[i], memory_order_relaxed);

		memcpy((char *)to + 4 * i, &word, 4);
	}
	return rc;
}

/* Takes bytes of the adapter's memory. Returns 0 or an errno. */
static int take(struct shca_context *ctx, uint64_t bytes)
{
	uint64_t all = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_DM_SIZE);
	uint64_t used = atomic_load(&ctx->hca->dm_used);

	do {
		if (used + bytes > all)
			return ENOMEM;
	} while (!atomic_compare_exchange_weak(&ctx->hca->dm_used, &used, used + bytes));
	/* The reaper subtracts this count. */
	atomic_fetch_add(&ctx->proc->dm_used[ctx->hca_idx], bytes);
	return 0;
}

/* Gives bytes back, unless the process has ended and the reaper did. */
static void give_back(struct shca_context *ctx, uint64_t bytes)
{
	_Atomic uint64_t *count = &ctx->proc->dm_used[ctx->hca_idx];
	uint64_t used = atomic_load(count);

	do {
		if (used < bytes)
			return;
	} while (!atomic_compare_exchange_weak(count, &used, used - bytes));
	atomic_fetch_sub(&ctx->hca->dm_used, bytes);
}

/* Returns true if memory may be allocated and freed in a context: also by a forked child of the
 * process that opened the context, for that process. */
static bool is_open(struct ibv_context *context)
{
	return shca_ctx(context)->fork_count != SHCA_CLOSED;
}

static int check(const struct ibv_alloc_dm_attr *attr)
{
	uint64_t all = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_DM_SIZE);

	return !attr->length || attr->length > all || attr->comp_mask ||
			       attr->log_align_req >= 32 || 1u << attr->log_align_req > UNIT
		       ? EINVAL
		       : 0;
}

/* Number of the next one. */
static _Atomic uint32_t handles;

struct ibv_dm *shca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_context *ctx = shca_ctx(context);
	uint64_t taken = (attr->length + UNIT - 1) / UNIT * UNIT;
	struct shca_dm *dm;

	errno = is_open(context) ? check(attr) : EIO;
	if (errno)
		return NULL;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	errno = take(ctx, taken);
	if (errno)
		goto free_dm;
	dm->memory = mmap(NULL, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dm->memory == MAP_FAILED)
		goto give_back;
	dm->length = attr->length;
	dm->taken = taken;
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->ibv.handle = atomic_fetch_add(&handles, 1);
	shca_context_objects_add(context, &dm->context_node, SHCA_OBJECT_DM, dm);
	return &dm->ibv;
give_back:
	give_back(ctx, taken);
free_dm:
	free(dm);
	return NULL;
}

void shca_dm_end(struct shca_dm *dm)
{
	give_back(shca_ctx(dm->ibv.context), dm->taken);
}

int shca_free_dm(struct ibv_dm *ibdm)
{
	SHCA_CLOCKED(VERB, 1);
	struct shca_dm *dm = (struct shca_dm *)ibdm;

	if (!is_open(ibdm->context))
		return EIO;
	if (dm->imported)
		return EINVAL;
	if (atomic_load(&dm->refs))
		return EBUSY;
	shca_context_objects_remove(&dm->context_node);
	shca_dm_end(dm);
	munmap(dm->memory, dm->taken);
	free(dm);
	return 0;
}
