/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrc_life.c - openers of XRC domains and target QPs.
 *
 * Every step can be repeated: an opener's bit is cleared last, and an object that is ending carries
 * the name of the process on whose behalf it ends, so that the reaper of that process finds the
 * object if the process dies on the way.
 */
#include "xrc_life.h"

#include <errno.h>
#include <fcntl.h>

#include "epoch.h"
#include "table.h"

#define BATCH 64 /* target QPs that end together */

static void openers_drop(_Atomic uint64_t *openers, unsigned proc)
{
	atomic_fetch_and(&openers[proc / 64], ~(1ULL << (proc % 64)));
}

/* Returns true if any process but `proc` has the object open. */
static bool opened_by_others(const _Atomic uint64_t *openers, unsigned proc)
{
	uint64_t any = 0;
	unsigned i;

	for (i = 0; i < SHCA_MAX_PROCS / 64; i++) {
		uint64_t bits = atomic_load(&openers[i]);

		any |= i == proc / 64 ? bits & ~(1ULL << (proc % 64)) : bits;
	}
	return any;
}

static bool is_live(const void *entry)
{
	return shca_word_state(shca_table_state_word(entry)) == SHCA_LIVE;
}

static uint32_t high(const struct shca_hca *hca, enum shca_kind kind)
{
	return atomic_load(&hca->tables[kind].high);
}

/* Returns true for a live target QP of domain `xrcd`. */
static bool is_target_of(const struct shca_qp_entry *qp, uint32_t xrcd)
{
	return is_live(qp) && qp->type == IBV_QPT_XRC_RECV && qp->xrcd == xrcd;
}

/* Retires up to `room` live target QPs of the domain. Returns how many, and stores which. */
static unsigned retire_targets(struct shca_fabric *fabric, struct shca_hca *hca, uint32_t xrcd,
			       unsigned proc, struct shca_qp_entry **which, unsigned room)
{
	uint32_t i, n = 0, end = high(hca, SHCA_QP);

	for (i = 0; i < end && n < room; i++) {
		struct shca_qp_entry *qp = shca_table_entry(fabric, &hca->tables[SHCA_QP], i);

		if (is_target_of(qp, xrcd) && shca_table_retire_as(qp, proc))
			which[n++] = qp;
	}
	return n;
}

static struct shca_xrcd_entry *find_domain(struct shca_fabric *fabric, struct shca_hca *hca,
					   uint64_t dev, uint64_t ino, uint32_t *idx)
{
	uint32_t i, end = high(hca, SHCA_XRCD);

	for (i = 0; i < end; i++) {
		struct shca_xrcd_entry *entry =
			shca_table_entry(fabric, &hca->tables[SHCA_XRCD], i);

		if (is_live(entry) && entry->dev == dev && entry->ino == ino) {
			*idx = i;
			return entry;
		}
	}
	return NULL;
}

int64_t shca_xrcd_open(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc,
		       uint64_t dev, uint64_t ino, int oflags)
{
	struct shca_xrcd_entry *entry = NULL;
	int64_t idx;
	uint32_t i;

	shca_lock(&hca->ctl_lock);
	if (dev || ino)
		entry = find_domain(fabric, hca, dev, ino, &i);
	if (entry) {
		idx = (oflags & O_EXCL) ? -EINVAL : (int64_t)i;
		if (idx >= 0)
			shca_openers_add(entry->openers, proc);
	} else if (!(oflags & O_CREAT)) {
		idx = -EAGAIN;
	} else {
		idx = shca_table_alloc(fabric, hca, SHCA_XRCD, proc);
		if (idx >= 0) {
			entry = shca_table_entry(fabric, &hca->tables[SHCA_XRCD], (uint32_t)idx);
			entry->dev = dev;
			entry->ino = ino;
			shca_openers_add(entry->openers, proc);
			shca_table_publish(entry);
		}
	}
	shca_unlock(&hca->ctl_lock);
	return idx;
}

void shca_xrcd_close(struct shca_fabric *fabric, struct shca_hca *hca,
		     struct shca_xrcd_entry *entry, unsigned proc)
{
	uint32_t idx = shca_table_index(fabric, &hca->tables[SHCA_XRCD], entry);
	struct shca_qp_entry *which[BATCH];
	unsigned n, i;
	bool last;

	shca_lock(&hca->ctl_lock);
	last = !opened_by_others(entry->openers, proc) && shca_table_retire_as(entry, proc);
	if (!last) {
		shca_table_disown(entry, proc);
		openers_drop(entry->openers, proc);
	}
	shca_unlock(&hca->ctl_lock);
	if (!last)
		return;
	/* No process can make or open a target QP in the domain any more. A death in here leaves
	 * the domain DYING in this process's name, from which the reaper goes on. */
	do {
		shca_lock(&hca->ctl_lock);
		n = retire_targets(fabric, hca, idx, proc, which, BATCH);
		shca_unlock(&hca->ctl_lock);
		shca_epoch_sync_for(fabric, SHCA_HOLDS_ANY, UINT64_MAX);
		for (i = 0; i < n; i++)
			shca_table_free(hca, SHCA_QP, which[i]);
	} while (n == BATCH);
	shca_table_free(hca, SHCA_XRCD, entry);
}

int64_t shca_tgt_open(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc,
		      uint32_t xrcd, uint32_t qpn)
{
	struct shca_qp_entry *qp;
	int64_t rc = -EINVAL;
	uint32_t idx;

	/* No epoch is needed: a target QP is retired under this lock only. */
	shca_lock(&hca->ctl_lock);
	qp = shca_table_find(fabric, hca, SHCA_QP, qpn, &idx);
	if (qp && is_target_of(qp, xrcd)) {
		shca_openers_add(qp->openers, proc);
		rc = idx;
	}
	shca_unlock(&hca->ctl_lock);
	return rc;
}

bool shca_tgt_close(struct shca_hca *hca, struct shca_qp_entry *qp, unsigned proc)
{
	bool last;

	shca_lock(&hca->ctl_lock);
	last = !opened_by_others(qp->openers, proc) && shca_table_retire_as(qp, proc);
	if (!last) {
		shca_table_disown(qp, proc);
		openers_drop(qp->openers, proc);
	}
	shca_unlock(&hca->ctl_lock);
	return last;
}

void shca_tgt_free(struct shca_fabric *fabric, struct shca_hca *hca, struct shca_qp_entry *qp)
{
	shca_epoch_sync_for(fabric, SHCA_HOLDS_ANY, UINT64_MAX);
	shca_table_free(hca, SHCA_QP, qp);
}

/* Returns true if anything but `proc` keeps the target QP. A process that ends without
 * destroying it leaves it to its domain. */
static bool is_held(const struct shca_fabric *fabric, const struct shca_hca *hca,
		    const struct shca_qp_entry *qp, unsigned proc)
{
	const struct shca_xrcd_entry *entry =
		shca_table_entry(fabric, &hca->tables[SHCA_XRCD], qp->xrcd);

	if (opened_by_others(qp->openers, proc))
		return true;
	return shca_opt(fabric, SHCA_O_TGT_LIFETIME) == SHCA_TGT_DOMAIN && is_live(entry) &&
	       opened_by_others(entry->openers, proc);
}

bool shca_tgt_leave(struct shca_fabric *fabric, struct shca_hca *hca, struct shca_qp_entry *qp,
		    unsigned proc)
{
	bool held;

	shca_lock(&hca->ctl_lock);
	held = is_held(fabric, hca, qp, proc);
	if (held) {
		shca_table_disown(qp, proc);
		openers_drop(qp->openers, proc);
	}
	shca_unlock(&hca->ctl_lock);
	return held;
}

/* Removes a process that died from the openers of a target QP. */
static void leave_target(struct shca_fabric *fabric, struct shca_hca *hca, struct shca_qp_entry *qp,
			 unsigned proc)
{
	if (is_held(fabric, hca, qp, proc))
		shca_table_disown(qp, proc);
	else
		shca_table_retire_as(qp, proc);
	openers_drop(qp->openers, proc);
}

static void leave_domain(struct shca_fabric *fabric, struct shca_hca *hca,
			 struct shca_xrcd_entry *entry, unsigned proc)
{
	struct shca_qp_entry *which[BATCH];
	uint32_t idx = shca_table_index(fabric, &hca->tables[SHCA_XRCD], entry);
	uint64_t word = shca_table_state_word(entry);

	if (shca_word_state(word) == SHCA_LIVE) {
		if (!shca_opened_by(entry->openers, proc))
			return;
		if (opened_by_others(entry->openers, proc)) {
			shca_table_disown(entry, proc);
			openers_drop(entry->openers, proc);
			return;
		}
		shca_table_retire_as(entry, proc);
	} else if (shca_word_state(word) != SHCA_DYING || shca_word_owner(word) != proc) {
		return;
	}
	while (retire_targets(fabric, hca, idx, proc, which, BATCH) == BATCH)
		;
}

void shca_xrc_leave(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc)
{
	uint32_t i, end = high(hca, SHCA_QP);

	/* QPs first: whether they stay depends on the other openers of the domain. */
	for (i = 0; i < end; i++) {
		struct shca_qp_entry *qp = shca_table_entry(fabric, &hca->tables[SHCA_QP], i);

		if (is_live(qp) && qp->type == IBV_QPT_XRC_RECV &&
		    (shca_opened_by(qp->openers, proc) ||
		     shca_word_owner(shca_table_state_word(qp)) == proc))
			leave_target(fabric, hca, qp, proc);
	}
	end = high(hca, SHCA_XRCD);
	for (i = 0; i < end; i++)
		leave_domain(fabric, hca, shca_table_entry(fabric, &hca->tables[SHCA_XRCD], i),
			     proc);
}
