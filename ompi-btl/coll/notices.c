/* SPDX-License-Identifier: BSD-3-Clause */
#include "notices.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* The words of each notice, which other processes write, and the id of its owner (0: not in use).
 * The table is never freed, because component_close() may run before the endpoint is closed. */
static struct table {
	struct mca_coll_tupleq_notice_words words[TUPLEQ_NOTICES];
	_Atomic uint64_t ids[TUPLEQ_NOTICES];
} * table;
static uint32_t table_key;
static uint64_t last_id;

static int make_table(struct tq_ep *ep)
{
	void *mem = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct tq_mr *mr;
	int rc;

	if (mem == MAP_FAILED)
		return -errno;
	rc = tq_mr_expose(ep, mem, sizeof(table->words), TQ_ACCESS_READ | TQ_ACCESS_WRITE, &mr);
	if (rc) {
		munmap(mem, sizeof(*table));
		return rc;
	}
	table = mem;
	table_key = tq_mr_key(mr);
	/* The registration ends with the endpoint. */
	tq_mr_abandon(ep, mr);
	return 0;
}

static size_t index_of(const struct mca_coll_tupleq_notice *notice)
{
	return (notice->addr - (uintptr_t)table->words) / sizeof(table->words[0]);
}

int mca_coll_tupleq_notice_acquire(struct tq_ep *ep, struct mca_coll_tupleq_notice *notice)
{
	int rc = table ? 0 : make_table(ep);
	size_t i;

	if (rc)
		return rc;
	/* Notices are used in turn, so that a released one stays unused as long as possible: late
	 * writes still come to it. */
	for (int n = 0; n < TUPLEQ_NOTICES; n++) {
		i = ++last_id % TUPLEQ_NOTICES;
		if (atomic_load_explicit(&table->ids[i], memory_order_relaxed))
			continue;
		atomic_store_explicit(&table->ids[i], last_id, memory_order_relaxed);
		notice->addr = (uintptr_t)&table->words[i];
		notice->id = last_id;
		notice->key = table_key;
		return 0;
	}
	return -ENOSPC;
}

void mca_coll_tupleq_notice_release(struct mca_coll_tupleq_notice *notice)
{
	if (!notice->id)
		return;
	atomic_store_explicit(&table->ids[index_of(notice)], 0, memory_order_relaxed);
	notice->id = 0;
}

void mca_coll_tupleq_notices_close(void)
{
	table = NULL;
	table_key = 0;
}

bool mca_coll_tupleq_notice_has_failed(const struct mca_coll_tupleq_notice *notice,
				       bool *mismatched)
{
	uint64_t word;

	if (!notice->id)
		return false;
	word = atomic_load_explicit(&table->words[index_of(notice)].failed, memory_order_relaxed);
	*mismatched = word == mca_coll_tupleq_notice_failed_word(notice, true);
	return *mismatched || word == mca_coll_tupleq_notice_failed_word(notice, false);
}

bool mca_coll_tupleq_notice_take_announcement(const struct mca_coll_tupleq_notice *notice,
					      struct mca_coll_tupleq_announcement *announcement)
{
	return notice->id && mca_coll_tupleq_mailbox_take(&table->words[index_of(notice)].mailbox,
							  notice->id, announcement);
}
