/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw.h - memory windows (IBA 10.6.7): keys by which peers may use a part of a region. A window of
 * type 1 is open to all QPs of its protection domain, one of type 2 (2B) to the QP that bound it.
 */
#ifndef SHCA_MW_H
#define SHCA_MW_H

#include "mr.h"

struct shca_mw {
	struct ibv_mw ibv;
	struct shca_mw_entry *entry;
	struct shca_pd *pd; /* domain that it counts for */
	struct shca_context_object context_node;
};

/* A request to bind. */
struct shca_bind {
	uint64_t addr, length; /* in the region; no length: the window is bound no more */
	uint32_t number;       /* the window's */
	uint32_t tag;          /* last 8 bits of the new key */
	uint32_t region;       /* key */
	uint32_t access;       /* ibv_access_flags */
};

/*
 * Binds a window of this process by a request to its QP with that number and protection domain. The
 * caller is inside an epoch. Returns 0, or -EACCES if window, region and QP don't allow that.
 */
int shca_mw_bind(struct shca_hca *hca, const struct shca_bind *bind, uint32_t pdn, uint32_t qpn);
/* Ends the binding that gave a window of type 2 this key, by a request of or to the QP, which is
 * process `owner`'s. Inside an epoch. Returns 0, or -EACCES if there is no such binding. Accesses
 * that have begun go on. */
int shca_mw_invalidate(struct shca_hca *hca, uint32_t key, unsigned owner, uint32_t pdn,
		       uint32_t qpn);
/* Checks an access as shca_mr_check() does, by the key of a window and through that QP. */
int shca_mw_check(struct shca_hca *hca, uint32_t key, unsigned owner, uint32_t pdn, uint32_t qpn,
		  uint64_t addr, uint64_t len, uint32_t access, struct shca_run *run);

/* Retires a region of this process, so that no window is bound to it from here on. Returns false if
 * a window is bound to it: then the region stays. */
bool shca_mw_retire_region(const struct shca_hca *hca, struct shca_mr_entry *region, uint32_t key);
/* Starts over, in a forked child. */
void shca_mw_reset(void);

#endif
