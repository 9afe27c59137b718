/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.c - checking keys, translating addresses, pinning memory.
 */
#include "mr.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/say.h"
#include "fabric/table.h"
#include "hca/fault.h"
#include "segment.h"

#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |   \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_MW_BIND)

static uint64_t memlock_limit(void)
{
	const struct shca_config *config = &shca_self.fabric.hdr->config;
	struct rlimit limit;

	if (config->memlock_mode == SHCA_MEMLOCK_UNLIMITED)
		return UINT64_MAX;
	if (config->memlock_mode == SHCA_MEMLOCK_BYTES)
		return config->memlock_bytes;
	if (shca_may(CAP_IPC_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

void shca_mr_unpin(uint64_t bytes)
{
	atomic_fetch_sub(&shca_self.proc->pinned, bytes);
}

/* Counts whole pages against the limit, as the kernel's ib_umem_get() does: a page in two
 * regions counts twice. */
static int pin(struct shca_context *ctx, uint64_t addr, uint64_t len, uint64_t *bytes)
{
	static _Atomic bool said;
	uint64_t first = addr & ~4095ULL, end = (addr + len + 4095) & ~4095ULL;
	uint64_t limit = memlock_limit();

	uint64_t before;
	bool fault;

	*bytes = end - first;
	before = atomic_fetch_add(&shca_self.proc->pinned, *bytes);
	fault = shca_fault_draw(SHCA_O_FAULT_MEMLOCK, ctx->hca);
	if (before + *bytes <= limit && !fault)
		return 0;
	shca_mr_unpin(*bytes);
	shca_count(ctx->hca, SHCA_C_MEMLOCK_FAILURES, 1);
	if (!fault && !atomic_exchange(&said, true))
		shca_say("%" PRIu64 " bytes can't be registered beside %" PRIu64
			 " that are, because the memlock limit is %" PRIu64
			 " bytes: raise it (ulimit -l) or run with --memlock unlimited.",
			 len, before, limit);
	return -ENOMEM;
}

int shca_mr_check_access_flags(uint32_t access)
{
	if (access & ~(uint32_t)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return -EINVAL;
	if ((access & REMOTE_CHANGES) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if ((access & IBV_ACCESS_ON_DEMAND) &&
	    shca_opt(&shca_self.fabric, SHCA_O_ODP) == SHCA_ODP_OFF)
		return -EOPNOTSUPP;
	return 0;
}

int shca_mr_check_access(uint64_t addr, uint64_t len, uint32_t access)
{
	int64_t odp = shca_opt(&shca_self.fabric, SHCA_O_ODP);
	int rc = shca_mr_check_access_flags(access);

	if (rc)
		return rc;
	if (!len)
		return -EINVAL;
	if (len == SIZE_MAX && !addr)
		return (access & IBV_ACCESS_ON_DEMAND) && odp == SHCA_ODP_IMPLICIT ? 0 : -EINVAL;
	if (len > (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_MAX_MR_SIZE))
		return -EINVAL;
	return 0;
}

int shca_mr_describe(struct shca_context *ctx, struct shca_mr_entry *entry, uint64_t addr,
		     uint64_t len, uint64_t iova, uint32_t access, uint64_t *pinned)
{
	bool implicit = len == SIZE_MAX && !addr;
	int rc = shca_mr_check_access(addr, len, access);

	*pinned = 0;
	if (rc)
		return rc;
	if (!(access & IBV_ACCESS_ON_DEMAND)) {
		rc = pin(ctx, addr, len, pinned);
		if (rc)
			return rc;
		rc = shca_mem_populate(addr, len, access & IBV_ACCESS_LOCAL_WRITE);
		if (rc) {
			shca_mr_unpin(*pinned);
			*pinned = 0;
			return rc;
		}
	}
	entry->va = addr;
	entry->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	entry->length = len;
	entry->access = access;
	entry->flags = implicit ? SHCA_MR_IMPLICIT : 0;
	shca_segment_hold(entry);
	return 0;
}
