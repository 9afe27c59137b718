/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrc_life.h - how long XRC domains and XRC target QPs live: processes share both, and both end
 * with their last opener.
 *
 * A process has one bit in an object's `openers`, however often it opened the object: it counts its
 * own handles, and calls the close functions here with the last of them. The functions that open,
 * close or leave an object take the HCA's ctl_lock, but for shca_xrc_leave().
 */
#ifndef SHCA_XRC_LIFE_H
#define SHCA_XRC_LIFE_H

#include "fabric.h"

static inline bool shca_opened_by(const _Atomic uint64_t *openers, unsigned proc)
{
	return atomic_load(&openers[proc / 64]) >> (proc % 64) & 1;
}
static inline void shca_openers_add(_Atomic uint64_t *openers, unsigned proc)
{
	atomic_fetch_or(&openers[proc / 64], 1ULL << (proc % 64));
}

/* Opens the domain that file (dev, ino) names for `proc`, with open(2)'s O_CREAT and O_EXCL in
 * oflags; 0,0 makes a private one. Returns its index, or an error as the kernel does: -EAGAIN
 * (none, and no O_CREAT), -EINVAL (exists, and O_EXCL), -ENOMEM. */
int64_t shca_xrcd_open(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc,
		       uint64_t dev, uint64_t ino, int oflags);
/* Closes a domain; the last opener's close ends the domain and all its target QPs. Waits for a
 * grace period (epoch.h). */
void shca_xrcd_close(struct shca_fabric *fabric, struct shca_hca *hca,
		     struct shca_xrcd_entry *entry, unsigned proc);

/* Opens target QP `qpn` of domain `xrcd` (ibv_open_qp). Returns its index, or -EINVAL if there
 * is none. The QP's creator sets its bit itself, before it publishes the QP. */
int64_t shca_tgt_open(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc,
		      uint32_t xrcd, uint32_t qpn);
/* Closes a target QP for ibv_destroy_qp. The last opener's close makes the QP unfindable and
 * returns true: the caller then has to call shca_tgt_free(). */
bool shca_tgt_close(struct shca_hca *hca, struct shca_qp_entry *qp, unsigned proc);
/* Frees a target QP after a grace period. */
void shca_tgt_free(struct shca_fabric *fabric, struct shca_hca *hca, struct shca_qp_entry *qp);

/* Leaves a target QP open when its process closed the context. As at a process's end, the QP
 * stays if others have it open, or as long as its domain lives: then this returns true, and
 * `proc` is no opener any more. Otherwise the caller has to call shca_tgt_close(). */
bool shca_tgt_leave(struct shca_fabric *fabric, struct shca_hca *hca, struct shca_qp_entry *qp,
		    unsigned proc);

/* Removes a process that died from the openers of this HCA's objects. Objects that end by this
 * are DYING in the name of `proc` afterwards. Can be repeated from any point. The reaper calls
 * this with ctl_lock held. */
void shca_xrc_leave(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc);

#endif
