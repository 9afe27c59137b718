/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h - memory regions: their keys, the checks that the adapter makes on every access
 * (IBA 10.6.3), and the pinning of their memory.
 */
#ifndef SHCA_MR_H
#define SHCA_MR_H

#include <errno.h>

#include "hca/domains.h"
#include "mem.h"

struct shca_dm;
struct shca_mr {
	struct ibv_mr ibv;
	struct shca_mr_entry *entry;
	uint64_t pinned;    /* bytes counted against memlock */
	struct shca_pd *pd; /* domain that it counts for */
	struct shca_dm *dm; /* device memory that it is a region of, or NULL */
	struct shca_context_object context_node;
};

/* The two functions that follow are inlined, because each message calls them. */

static inline bool shca_mr_holds(const struct shca_mr_entry *entry, uint64_t addr, uint64_t len)
{
	return addr >= entry->iova && len <= entry->length &&
	       addr - entry->iova <= entry->length - len;
}

/*
 * Checks that the region that a key was found to name (NULL: none) is process `owner`'s, and that
 * [addr, addr + len) of it may be used in protection domain pdn with all flags of `access`
 * (ibv_access_flags; 0 = local read). Returns 0, with *run in the memory of that process, or
 * -EACCES. len > 0. Inside an epoch.
 */
static inline int shca_mr_check(const struct shca_mr_entry *entry, unsigned owner, uint32_t pdn,
				uint64_t addr, uint64_t len, uint32_t access, struct shca_run *run)
{
	if (!entry || entry->pdn != pdn || (entry->access & access) != access ||
	    shca_word_owner(atomic_load_explicit(&entry->state_word, memory_order_relaxed)) !=
		    owner)
		return -EACCES;
	if (__builtin_expect(entry->flags & SHCA_MR_NULL, 0)) {
		*run = (struct shca_run){.len = len, .null = true};
		return 0;
	}
	if (!shca_mr_holds(entry, addr, len))
		return -EACCES;
	*run = (struct shca_run){.addr = entry->va + (addr - entry->iova),
				 .len = len,
				 .on_demand = entry->access & IBV_ACCESS_ON_DEMAND,
				 .writable = entry->access & IBV_ACCESS_LOCAL_WRITE,
				 .mr = entry->flags & SHCA_MR_SEGMENT ? entry : NULL};
	return 0;
}

/* Returns where an address of own memory is whose region was checked before. Returns NULL if there
 * is no such memory: the region is gone (`entry` NULL), or is the null MR. len > 0. */
static inline void *shca_mr_translate(const struct shca_mr_entry *entry, uint64_t addr,
				      uint64_t len)
{
	if (!entry || (entry->flags & SHCA_MR_NULL) || !shca_mr_holds(entry, addr, len))
		return NULL;
	return (void *)(uintptr_t)(entry->va + (addr - entry->iova));
}

/* Checks whether a region may have that access, as the kernel does before it looks at the memory.
 * Returns 0 or -errno. */
int shca_mr_check_access_flags(uint32_t access);
/* Checks whether a region of that place and length may have that access. Returns 0 or -errno. */
int shca_mr_check_access(uint64_t addr, uint64_t len, uint32_t access);
/* Checks and pins the memory of a region, and describes it in *entry. Returns 0 or -errno; *pinned
 * is what to pass to shca_mr_unpin() later. */
int shca_mr_describe(struct shca_context *ctx, struct shca_mr_entry *entry, uint64_t addr,
		     uint64_t len, uint64_t iova, uint32_t access, uint64_t *pinned);
/* Takes bytes off the count of pinned memory. */
void shca_mr_unpin(uint64_t bytes);

#endif
