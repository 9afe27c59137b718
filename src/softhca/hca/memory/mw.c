/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw.c - binding memory windows, ending their bindings, and checking accesses through them.
 *
 * All threads that bind a window are its owner's, one at a time. Peers read a binding without a
 * lock: its fields are valid if the word `binding` is the same before and after. (The operations
 * are sequentially consistent, because windows are no part of the usual way of a message.)
 */
#include "mw.h"

#include "fabric/table.h"

#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define REMOTE         (REMOTE_CHANGES | IBV_ACCESS_REMOTE_READ)

/* Between the check of a region and what the check allows: a binding to it, or its end. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void shca_mw_reset(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Returns the key of a binding, or 0. */
static uint32_t key_of(uint64_t binding)
{
	return (uint32_t)binding;
}

/* Returns the word that follows `binding`, with that key. */
static uint64_t next(uint64_t binding, uint32_t key)
{
	return ((binding >> 32) + 1) << 32 | key;
}

static struct shca_mw_entry *find(const struct shca_hca *hca, uint32_t number, unsigned owner,
				  uint32_t pdn)
{
	struct shca_mw_entry *entry =
		shca_table_find(&shca_self.fabric, hca, SHCA_MW, number, NULL);

	return entry && entry->pdn == pdn &&
			       shca_word_owner(atomic_load(&entry->state_word)) == owner
		       ? entry
		       : NULL;
}

/* Returns true if a window may be bound to that part of the region, with that access. */
static bool allowed(const struct shca_hca *hca, const struct shca_bind *bind, uint32_t pdn)
{
	const struct shca_mr_entry *region =
		shca_table_find(&shca_self.fabric, hca, SHCA_MR, bind->region, NULL);

	return region && region->pdn == pdn &&
	       shca_word_owner(atomic_load(&region->state_word)) == shca_self.slot &&
	       (region->access & IBV_ACCESS_MW_BIND) &&
	       shca_mr_holds(region, bind->addr, bind->length) &&
	       (!(bind->access & REMOTE_CHANGES) || (region->access & IBV_ACCESS_LOCAL_WRITE));
}

static void set(struct shca_mw_entry *entry, const struct shca_bind *bind, uint32_t qpn)
{
	uint64_t binding = atomic_load(&entry->binding);

	binding = next(binding, 0);
	atomic_store(&entry->binding, binding);
	if (!bind->length)
		return;
	atomic_store(&entry->iova, bind->access & IBV_ACCESS_ZERO_BASED ? 0 : bind->addr);
	atomic_store(&entry->length, bind->length);
	atomic_store(&entry->start, bind->addr);
	atomic_store(&entry->region, bind->region);
	atomic_store(&entry->access, bind->access & REMOTE);
	atomic_store(&entry->qpn, entry->type == IBV_MW_TYPE_2 ? qpn : 0);
	atomic_store(&entry->binding, next(binding, SHCA_MW_KEY(bind->number, bind->tag)));
}

int shca_mw_bind(struct shca_hca *hca, const struct shca_bind *bind, uint32_t pdn, uint32_t qpn)
{
	struct shca_mw_entry *entry = find(hca, bind->number, shca_self.slot, pdn);
	bool is_bound;
	int rc = 0;

	if (!entry)
		return -EACCES;
	pthread_mutex_lock(&lock);
	is_bound = key_of(atomic_load(&entry->binding));
	/* A window of type 2 is bound only when it is free, and freed only by its QP. */
	if (bind->length && !allowed(hca, bind, pdn))
		rc = -EACCES;
	else if (entry->type == IBV_MW_TYPE_2 &&
		 (bind->length ? is_bound : !is_bound || atomic_load(&entry->qpn) != qpn))
		rc = -EACCES;
	else
		set(entry, bind, qpn);
	pthread_mutex_unlock(&lock);
	return rc;
}

int shca_mw_invalidate(struct shca_hca *hca, uint32_t key, unsigned owner, uint32_t pdn,
		       uint32_t qpn)
{
	struct shca_mw_entry *entry =
		SHCA_IS_MW_KEY(key) ? find(hca, SHCA_MW_NUMBER(key), owner, pdn) : NULL;
	uint64_t binding;

	if (!entry || entry->type != IBV_MW_TYPE_2)
		return -EACCES;
	binding = atomic_load(&entry->binding);
	return key_of(binding) == key && atomic_load(&entry->qpn) == qpn &&
			       atomic_compare_exchange_strong(&entry->binding, &binding,
							      next(binding, 0))
		       ? 0
		       : -EACCES;
}

/* Copies the fields of a binding. Returns false if the window isn't bound by that key. */
static bool snapshot(struct shca_mw_entry *entry, uint32_t key, struct shca_mw_entry *seen)
{
	uint64_t binding;

	do {
		binding = atomic_load(&entry->binding);
		if (key_of(binding) != key)
			return false;
		atomic_store(&seen->iova, atomic_load(&entry->iova));
		atomic_store(&seen->length, atomic_load(&entry->length));
		atomic_store(&seen->start, atomic_load(&entry->start));
		atomic_store(&seen->region, atomic_load(&entry->region));
		atomic_store(&seen->access, atomic_load(&entry->access));
		atomic_store(&seen->qpn, atomic_load(&entry->qpn));
	} while (atomic_load(&entry->binding) != binding);
	return true;
}

int shca_mw_check(struct shca_hca *hca, uint32_t key, unsigned owner, uint32_t pdn, uint32_t qpn,
		  uint64_t addr, uint64_t len, uint32_t access, struct shca_run *run)
{
	struct shca_mw_entry *entry =
		SHCA_IS_MW_KEY(key) ? find(hca, SHCA_MW_NUMBER(key), owner, pdn) : NULL;
	struct shca_mw_entry seen = {0};

	if (!entry || !snapshot(entry, key, &seen) || (seen.access & access) != access ||
	    (seen.qpn && seen.qpn != qpn) || addr < seen.iova || len > seen.length ||
	    addr - seen.iova > seen.length - len)
		return -EACCES;
	/* The window's access counts; the region's was asked for when the window was bound. */
	return shca_mr_check(shca_table_find(&shca_self.fabric, hca, SHCA_MR, seen.region, NULL),
			     owner, pdn, seen.start + (addr - seen.iova), len, 0, run);
}

/* Returns true if a window of this process is bound to the region with that key. */
static bool is_used(const struct shca_hca *hca, uint32_t region)
{
	const struct shca_table *table = &hca->tables[SHCA_MW];
	uint32_t high = atomic_load(&table->high);

	for (uint32_t i = 0; i < high; i++) {
		const struct shca_mw_entry *entry = shca_table_entry(&shca_self.fabric, table, i);
		uint64_t word = atomic_load(&entry->state_word);

		if (shca_word_state(word) == SHCA_LIVE && shca_word_owner(word) == shca_self.slot &&
		    key_of(atomic_load(&entry->binding)) && atomic_load(&entry->region) == region)
			return true;
	}
	return false;
}

bool shca_mw_retire_region(const struct shca_hca *hca, struct shca_mr_entry *region, uint32_t key)
{
	bool used;

	pthread_mutex_lock(&lock);
	used = (region->access & IBV_ACCESS_MW_BIND) && is_used(hca, key);
	if (!used)
		shca_table_retire(region);
	pthread_mutex_unlock(&lock);
	return !used;
}
