/* SPDX-License-Identifier: BSD-3-Clause */
#include "marks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* What others write, and the number of the communicator that has each word, 0: none. The memory
 * stays: component_close() may come before the endpoint's end. */
static struct table {
	struct mca_coll_tupleq_mark_words words[TUPLEQ_MARKS];
	_Atomic uint64_t ids[TUPLEQ_MARKS];
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
	rc = tq_mr_register(ep, mem, sizeof(table->words), true, &mr);
	if (rc) {
		munmap(mem, sizeof(*table));
		return rc;
	}
	table = mem;
	table_key = tq_mr_key(mr);
	/* The endpoint's from now on. */
	tq_mr_abandon(ep, mr);
	return 0;
}

static size_t index_of(const struct mca_coll_tupleq_mark *mark)
{
	return (mark->addr - (uintptr_t)table->words) / sizeof(table->words[0]);
}

int mca_coll_tupleq_mark_take(struct tq_ep *ep, struct mca_coll_tupleq_mark *mark)
{
	int rc = table ? 0 : make_table(ep);
	size_t i;

	if (rc)
		return rc;
	/* In turn, so that each is unused for long before it is lent again. */
	for (int n = 0; n < TUPLEQ_MARKS; n++) {
		i = ++last_id % TUPLEQ_MARKS;
		if (atomic_load_explicit(&table->ids[i], memory_order_relaxed))
			continue;
		atomic_store_explicit(&table->ids[i], last_id, memory_order_relaxed);
		mark->addr = (uintptr_t)&table->words[i];
		mark->id = last_id;
		mark->key = table_key;
		return 0;
	}
	return -ENOSPC;
}

void mca_coll_tupleq_mark_give_back(struct mca_coll_tupleq_mark *mark)
{
	if (!mark->id)
		return;
	atomic_store_explicit(&table->ids[index_of(mark)], 0, memory_order_relaxed);
	mark->id = 0;
}

bool mca_coll_tupleq_marked(const struct mca_coll_tupleq_mark *mark, bool *differ)
{
	uint64_t word;

	if (!mark->id)
		return false;
	word = atomic_load_explicit(&table->words[index_of(mark)].failed, memory_order_relaxed);
	*differ = word == mca_coll_tupleq_mark_failed(mark, true);
	return *differ || word == mca_coll_tupleq_mark_failed(mark, false);
}

bool mca_coll_tupleq_mark_news(const struct mca_coll_tupleq_mark *mark,
			       struct mca_coll_tupleq_told *told)
{
	return mark->id &&
	       mca_coll_tupleq_news_take(&table->words[index_of(mark)].news, mark->id, told);
}
