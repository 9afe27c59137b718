/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - the context tables of an HCA. An entry's number (QPN, SRQN, key ...) is a scrambled
 * (generation, index): numbers are scattered, a stale number is not found, and no lock is needed.
 */
#ifndef SHCA_TABLE_H
#define SHCA_TABLE_H

#include "fabric.h"

/* Return the bits of a number of that kind, and of the index within it: the rest is the entry's
 * generation. */
static inline unsigned shca_kind_bits(enum shca_kind kind)
{
	return kind == SHCA_MR ? 31 : kind == SHCA_MW ? 23 : 24;
}
static inline unsigned shca_kind_log2(enum shca_kind kind)
{
	switch (kind) {
	case SHCA_QP:
	case SHCA_SRQ:
	case SHCA_MW:
		return 17;
	case SHCA_CQ:
		return 16;
	case SHCA_MR:
		return 20;
	default:
		return 12;
	}
}
static inline uint32_t shca_kind_size(enum shca_kind kind)
{
	switch (kind) {
	case SHCA_QP:
		return sizeof(struct shca_qp_entry);
	case SHCA_SRQ:
		return sizeof(struct shca_srq_entry);
	case SHCA_CQ:
		return sizeof(struct shca_cq_entry);
	case SHCA_MR:
		return sizeof(struct shca_mr_entry);
	case SHCA_MW:
		return sizeof(struct shca_mw_entry);
	default:
		return sizeof(struct shca_xrcd_entry);
	}
}

/*
 * Odd multipliers and their inverses modulo 2^32, which are inverses modulo each smaller power too.
 */
#define SHCA_MIX1     0x9e3779b1u
#define SHCA_MIX1_INV 0x0e8b2f51u
#define SHCA_MIX2     0x2c1b3c6du
#define SHCA_MIX2_INV 0x64ea2d65u
static_assert((uint32_t)(SHCA_MIX1 * SHCA_MIX1_INV) == 1 &&
		      (uint32_t)(SHCA_MIX2 * SHCA_MIX2_INV) == 1,
	      "each pair undoes itself");

/* Map numbers of `bits` bits (8 to 32) one to one, and back. */
static inline uint32_t shca_scatter(uint32_t x, unsigned bits, uint64_t seed)
{
	const uint32_t mask = UINT32_MAX >> (32 - bits);
	const unsigned half = (bits + 1) / 2; /* 2 * half >= bits: x ^ x >> half undoes itself */

	x = ((x ^ (uint32_t)seed) * SHCA_MIX1) & mask;
	x ^= x >> half;
	x = (x * SHCA_MIX2) & mask;
	x ^= x >> half;
	return (x ^ (uint32_t)(seed >> 32)) & mask;
}
static inline uint32_t shca_gather(uint32_t x, unsigned bits, uint64_t seed)
{
	const uint32_t mask = UINT32_MAX >> (32 - bits);
	const unsigned half = (bits + 1) / 2;

	x = (x ^ (uint32_t)(seed >> 32)) & mask;
	x ^= x >> half;
	x = (x * SHCA_MIX2_INV) & mask;
	x ^= x >> half;
	return ((x * SHCA_MIX1_INV) ^ (uint32_t)seed) & mask;
}

/* Takes a free entry for process slot proc. Returns its index, or -ENOMEM (limit, table or
 * memory exhausted). The entry is zeroed but for its state word, in state ALLOCATED. Lock-free. */
int64_t shca_table_alloc(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
			 unsigned proc);
/* Makes an entry visible to lookups: a process that finds it sees everything that was written
 * before. */
void shca_table_publish(void *entry);
/* Ends lookups of an entry (LIVE or ALLOCATED -> DYING). */
void shca_table_retire(void *entry);
/* Ends lookups of an entry that several processes may retire (XRC). Returns true to the one that
 * did; the state word then names `proc`, so that its reaper finishes the work should it die. */
bool shca_table_retire_as(void *entry, unsigned proc);
/* Lets the entry stay when its owner goes: the state word names SHCA_NO_PROC if it named `proc`. */
void shca_table_disown(void *entry, unsigned proc);
/* Gives the entry back. No process may hold a reference any more (see epoch.h). */
void shca_table_free(struct shca_hca *hca, enum shca_kind kind, void *entry);

/* Returns a table's seed. Each table scatters in its own way, so that a number of one kind or
 * HCA is rarely one of another. */
static inline uint64_t shca_table_seed(const struct shca_fabric *fabric, const struct shca_hca *hca,
				       enum shca_kind kind)
{
	return fabric->hdr->seed ^
	       ((shca_hca_index(fabric, hca) + 1ULL) << 8 | (kind + 1u)) * 0x9e3779b97f4a7c15ULL;
}

/* Returns the live entry with that number, and stores its index in *idx (which may be NULL);
 * NULL if there is none. Call this inside an epoch. Inlined, and with a constant `kind`, this is
 * a dozen instructions on the way of each message. */
static inline void *shca_table_find(const struct shca_fabric *fabric, const struct shca_hca *hca,
				    enum shca_kind kind, uint32_t number, uint32_t *idx)
{
	const struct shca_table *table = &hca->tables[kind];
	uint32_t i = shca_gather(number, shca_kind_bits(kind), shca_table_seed(fabric, hca, kind)) &
		     ((1u << shca_kind_log2(kind)) - 1);
	char *entry;
	uint64_t value;

	/* Beyond `high` there is no memory: even a read would allocate some, or be a SIGBUS. */
	if (i >= atomic_load_explicit(&table->high, memory_order_acquire))
		return NULL;
	entry = (char *)fabric->hdr + table->offset + (uint64_t)i * shca_kind_size(kind);
	value = atomic_load_explicit((_Atomic uint64_t *)(void *)entry, memory_order_acquire);
	if (shca_word_number(value) != number || shca_word_state(value) != SHCA_LIVE)
		return NULL;
	if (idx)
		*idx = i;
	return entry;
}

/* Returns this process's own entry with that number, LIVE or DYING, or NULL if there is none. */
static inline void *shca_table_peek(const struct shca_fabric *fabric, const struct shca_hca *hca,
				    enum shca_kind kind, uint32_t number)
{
	const struct shca_table *table = &hca->tables[kind];
	uint32_t i = shca_gather(number, shca_kind_bits(kind), shca_table_seed(fabric, hca, kind)) &
		     ((1u << shca_kind_log2(kind)) - 1);
	_Atomic uint64_t *word = shca_table_entry(fabric, table, i);
	uint64_t w;

	if (i >= atomic_load_explicit(&table->high, memory_order_acquire))
		return NULL;
	w = atomic_load_explicit(word, memory_order_acquire);
	return shca_word_number(w) == number && shca_word_state(w) >= SHCA_LIVE ? (void *)word
										: NULL;
}

/* The result of the last search for an entry of one kind. All zero before the first search. */
struct shca_table_last {
	const struct shca_hca *hca;
	void *entry;
	uint32_t idx;
};

/* Returns the state in which the last entry has that number, or SHCA_FREE if it hasn't. The memory
 * of an entry stays, and a number names one object as long as that is there. */
static inline enum shca_entry_state shca_table_last_state(const struct shca_table_last *last,
							  const struct shca_hca *hca,
							  uint32_t number)
{
	uint64_t word;

	if (last->hca != hca || !last->entry)
		return SHCA_FREE;
	word = atomic_load_explicit((_Atomic uint64_t *)last->entry, memory_order_acquire);
	return shca_word_number(word) == number ? shca_word_state(word) : SHCA_FREE;
}

/* Search as shca_table_find() and shca_table_peek() do, and store what they find in *last. */
void *shca_table_find_anew(const struct shca_fabric *fabric, const struct shca_hca *hca,
			   enum shca_kind kind, uint32_t number, struct shca_table_last *last);
void *shca_table_peek_anew(const struct shca_fabric *fabric, const struct shca_hca *hca,
			   enum shca_kind kind, uint32_t number, struct shca_table_last *last);

/* Return what shca_table_find() and shca_table_peek() do, but look first at the entry that was
 * found last, which takes a quarter of the instructions. */
static inline void *shca_table_find_again(const struct shca_fabric *fabric,
					  const struct shca_hca *hca, enum shca_kind kind,
					  uint32_t number, struct shca_table_last *last)
{
	return shca_table_last_state(last, hca, number) == SHCA_LIVE
		       ? last->entry
		       : shca_table_find_anew(fabric, hca, kind, number, last);
}
static inline void *shca_table_peek_again(const struct shca_fabric *fabric,
					  const struct shca_hca *hca, enum shca_kind kind,
					  uint32_t number, struct shca_table_last *last)
{
	return shca_table_last_state(last, hca, number) >= SHCA_LIVE
		       ? last->entry
		       : shca_table_peek_anew(fabric, hca, kind, number, last);
}

/* Returns the state word of any entry. */
static inline uint64_t shca_table_state_word(const void *entry)
{
	return atomic_load_explicit((const _Atomic uint64_t *)entry, memory_order_acquire);
}
static inline uint32_t shca_table_number(const void *entry)
{
	return shca_word_number(shca_table_state_word(entry));
}

#endif
