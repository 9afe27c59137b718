/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - taking and giving back entries of the context tables, without a lock.
 *
 * A process that dies in here can leave only an entry in its name, which the reaper finds, or a
 * count that is one too high (if it died between two instructions): the limit is then reached one
 * object early.
 */
#include "table.h"

#include "counters.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Bytes by which a table grows, and entries that are looked at before it does. Choices: a step is a
 * system call, and memory that may not be used; a longer search saves that memory, and takes time
 * for each object. */
#define BATCH_BYTES 65536u
#define PROBES      1024u

/* Numbers with another meaning: 0 and 1 are the management QPs, 0xffffff is the multicast QPN,
 * key 0 and key 0x100 (the null MR's) are reserved; 0 is also the number of an entry that was
 * never used. */
static bool reserved(enum shca_kind kind, uint32_t number)
{
	return number == 0 || (kind == SHCA_QP && (number == 1 || number == 0xffffff)) ||
	       (kind == SHCA_MR && number == 0x100);
}

static uint32_t next_number(uint64_t seed, enum shca_kind kind, uint32_t idx, uint32_t last)
{
	unsigned bits = shca_kind_bits(kind), log2 = shca_kind_log2(kind);
	uint32_t generation = last ? (shca_gather(last, bits, seed) >> log2) + 1 : 0;
	uint32_t number;

	/* The shift drops the bits of the generation that don't fit: it wraps. */
	do
		number = shca_scatter(generation++ << log2 | idx, bits, seed);
	while (reserved(kind, number));
	return number;
}

/* Backs entries [high, high + a batch) with memory. Two processes that extend at a time do the
 * same work twice. */
static int extend(const struct shca_fabric *fabric, struct shca_table *table, uint32_t high)
{
	uint32_t batch = BATCH_BYTES / table->entry_size, room = table->size - high;
	uint64_t from, to;
	int rc;

	if (!room)
		return -ENOMEM;
	if (batch > room)
		batch = room;
	from = (table->offset + (uint64_t)high * table->entry_size) & ~4095ULL;
	to = (table->offset + (uint64_t)(high + batch) * table->entry_size + 4095) & ~4095ULL;
	rc = shca_fabric_back(fabric, from, to - from);
	if (rc)
		return rc;
	rc = shca_fabric_touch((char *)fabric->hdr + from, to - from);
	if (rc)
		return rc;
	atomic_compare_exchange_strong(&table->high, &high, high + batch);
	return 0;
}

/* Takes the first free one of `n` entries from `start`, cyclically below `high`. */
static int64_t take(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
		    unsigned proc, uint32_t high, uint32_t start, uint32_t n)
{
	struct shca_table *table = &hca->tables[kind];
	uint32_t i, idx = start % high;

	for (i = 0; i < n; i++, idx = idx + 1 < high ? idx + 1 : 0) {
		_Atomic uint64_t *word = shca_table_entry(fabric, table, idx);
		uint64_t w = atomic_load_explicit(word, memory_order_relaxed);
		uint32_t number;

		if (shca_word_state(w) != SHCA_FREE)
			continue;
		number = next_number(shca_table_seed(fabric, hca, kind), kind, idx,
				     shca_word_number(w));
		/* acquire: the clearing below comes after everything that the last owner wrote. */
		if (!atomic_compare_exchange_strong_explicit(
			    word, &w, shca_word_make(number, proc, SHCA_ALLOCATED),
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		memset(word + 1, 0, table->entry_size - sizeof(*word));
		atomic_store_explicit(&table->hint, idx + 1, memory_order_relaxed);
		return idx;
	}
	return -ENOMEM;
}

int64_t shca_table_alloc(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
			 unsigned proc)
{
	struct shca_table *table = &hca->tables[kind];
	uint32_t count = atomic_load(&table->count), high;
	int64_t idx = -ENOMEM;
	int rc;

	do {
		if (count >= table->limit)
			return -ENOMEM;
	} while (!atomic_compare_exchange_weak(&table->count, &count, count + 1));

	do {
		high = atomic_load(&table->high);
		if (high)
			idx = take(fabric, hca, kind, proc, high, atomic_load(&table->hint),
				   high < PROBES ? high : PROBES);
		if (idx >= 0)
			return idx;
		rc = extend(fabric, table, high);
	} while (!rc);

	/* The table can't grow: look at each entry. */
	high = atomic_load(&table->high);
	if (high)
		idx = take(fabric, hca, kind, proc, high, 0, high);
	if (idx < 0)
		atomic_fetch_sub(&table->count, 1);
	return idx;
}

void shca_table_publish(void *entry)
{
	_Atomic uint64_t *word = entry;
	uint64_t w = atomic_load_explicit(word, memory_order_relaxed);

	/* release: pairs with the acquire in shca_table_find(). */
	atomic_store_explicit(word,
			      shca_word_make(shca_word_number(w), shca_word_owner(w), SHCA_LIVE),
			      memory_order_release);
}

bool shca_table_retire_as(void *entry, unsigned proc)
{
	_Atomic uint64_t *word = entry;
	uint64_t w = atomic_load(word);

	do {
		if (shca_word_state(w) != SHCA_LIVE && shca_word_state(w) != SHCA_ALLOCATED)
			return false;
		/* seq_cst: a thread that enters an epoch from here on sees it, and sync() sees
		 * threads that are inside. */
	} while (!atomic_compare_exchange_weak(
		word, &w, shca_word_make(shca_word_number(w), proc, SHCA_DYING)));
	return true;
}

void shca_table_retire(void *entry)
{
	shca_table_retire_as(entry, shca_word_owner(shca_table_state_word(entry)));
}

void shca_table_disown(void *entry, unsigned proc)
{
	_Atomic uint64_t *word = entry;
	uint64_t w = atomic_load(word);

	while (shca_word_owner(w) == proc && shca_word_state(w) == SHCA_LIVE)
		if (atomic_compare_exchange_weak(
			    word, &w, shca_word_make(shca_word_number(w), SHCA_NO_PROC, SHCA_LIVE)))
			break;
}

void shca_table_free(struct shca_hca *hca, enum shca_kind kind, void *entry)
{
	_Atomic uint64_t *word = entry;
	uint64_t w = atomic_load(word);

	if (kind == SHCA_QP && shca_word_state(w) != SHCA_FREE)
		shca_counters_fold(hca, entry);
	do {
		if (shca_word_state(w) == SHCA_FREE)
			return;
		/* release: pairs with the acquire of the next owner. The number stays, because
		 * it is the generation. */
	} while (!atomic_compare_exchange_weak(
		word, &w, shca_word_make(shca_word_number(w), SHCA_NO_PROC, SHCA_FREE)));
	/* In this order: a death in between leaves the count too high, never below zero. */
	atomic_fetch_sub(&hca->tables[kind].count, 1);
}

/* Not inlined, because few messages come here. */
__attribute__((noinline)) void *shca_table_find_anew(const struct shca_fabric *fabric,
						     const struct shca_hca *hca,
						     enum shca_kind kind, uint32_t number,
						     struct shca_table_last *last)
{
	last->hca = hca;
	last->entry = shca_table_find(fabric, hca, kind, number, &last->idx);
	return last->entry;
}

__attribute__((noinline)) void *shca_table_peek_anew(const struct shca_fabric *fabric,
						     const struct shca_hca *hca,
						     enum shca_kind kind, uint32_t number,
						     struct shca_table_last *last)
{
	last->hca = hca;
	last->entry = shca_table_peek(fabric, hca, kind, number);
	return last->entry;
}
