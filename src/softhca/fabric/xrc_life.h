/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrc_life.h - how long XRC domains and XRC target QPs live: both are shared by processes, and go
 * with the last.
 *
 * A process has one bit in an object's `openers`, however often it opened it: it counts its own
 * handles, and calls the close functions here with the last of them. All of it happens under the
 * HCA's ctl_lock.
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
/* Has any process but `proc` it open? */
bool shca_opened_by_others(const _Atomic uint64_t *openers, unsigned proc);

/* Opens the domain that file (dev, ino) names for `proc`, with open(2)'s O_CREAT and O_EXCL in
 * oflags; 0,0 makes a private one. Its index, or as the kernel: -EAGAIN (none, and no O_CREAT),
 * -EINVAL (exists, and O_EXCL), -ENOMEM. */
int64_t shca_xrcd_open(struct shca_fabric *f, struct shca_hca *hca, unsigned proc, uint64_t dev,
		       uint64_t ino, int oflags);
/* Closes it; the last one out ends the domain and all its target QPs. Waits for a grace period
 * (epoch.h). */
void shca_xrcd_close(struct shca_fabric *f, struct shca_hca *hca, struct shca_xrcd_entry *x,
		     unsigned proc);

/* Opens target QP `qpn` of domain `xrcd` (ibv_open_qp): its index, or -EINVAL if there is none. The
 * QP's creator sets its bit itself, before it publishes the QP. */
int64_t shca_tgt_open(struct shca_fabric *f, struct shca_hca *hca, unsigned proc, uint32_t xrcd,
		      uint32_t qpn);
/* ibv_destroy_qp by one that has it open; by the last it ends the QP, after a grace period. True if
 * it ended. */
bool shca_tgt_close(struct shca_fabric *f, struct shca_hca *hca, struct shca_qp_entry *qp,
		    unsigned proc);

/* Its process closed the context in which it had it open: as at a process's end it stays if others
 * have it open, or as long as its domain lives. True if so, and `proc` is out; else
 * shca_tgt_close() is what is left to do. */
bool shca_tgt_leave(struct shca_fabric *f, struct shca_hca *hca, struct shca_qp_entry *qp,
		    unsigned proc);

/* For the reaper, with ctl_lock held: what a process that died had open of this HCA. Whatever ends
 * by it is DYING in the name of `proc` afterwards. Can be repeated from any point. */
void shca_xrc_leave(struct shca_fabric *f, struct shca_hca *hca, unsigned proc);

#endif
