/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h - memory regions: keys, and the checks that the adapter makes on every access (IBA 10.6.3).
 */
#ifndef SHCA_MR_H
#define SHCA_MR_H

#include "hca/objects.h"
#include "mem.h"

/*
 * May [addr, addr + len) be used with `key` in protection domain pdn, with all of `access`
 * (ibv_access_flags; 0 = local read)? On success *run says where it lies in the memory of *proc.
 * -EACCES otherwise. len > 0. Inside an epoch.
 */
int shca_mr_check(struct shca_hca *hca, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		  uint32_t access, struct shca_run *run, unsigned *proc);

/* Where a receive's bytes go in our own memory, its key having been checked when it was claimed.
 * -EACCES: the region is gone. len > 0. */
int shca_mr_translate(struct shca_hca *hca, uint32_t key, uint64_t addr, uint64_t len,
		      struct shca_run *run);

#endif
