/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data as words that each say that they are there: of an RDMA write nothing but 8 aligned bytes is
 * known to appear together, so each word has 4 bytes of data and a stamp that isn't 0 (stamp.h).
 * The reader leaves zeros. Without data there is one word.
 */
#ifndef TUPLEQ_COLL_WORDS_H
#define TUPLEQ_COLL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that `len` bytes of data take. */
static inline size_t mca_coll_tupleq_words_size(size_t len)
{
	return (len + 3 + !len) / 4 * sizeof(uint64_t);
}

void mca_coll_tupleq_words_put(uint64_t *words, const void *data, size_t len, uint32_t stamp);

/* The first word's stamp; 0: it isn't there yet. */
static inline uint32_t mca_coll_tupleq_words_stamp(const uint64_t *words)
{
	return (uint32_t)(__atomic_load_n(words, __ATOMIC_ACQUIRE) >> 32);
}

/* Is all of it there? *got: words that are known to be; 0 at first. */
bool mca_coll_tupleq_words_here(const uint64_t *words, size_t len, size_t *got);

/* Takes it out. */
void mca_coll_tupleq_words_take(uint64_t *words, void *data, size_t len);

#endif
