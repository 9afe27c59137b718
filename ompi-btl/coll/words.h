/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data as words that each show their arrival. An RDMA write guarantees only that 8 aligned bytes
 * appear together. So the lowest bit of each word of data is set, and the bits that belong there
 * come in one more word, with a stamp that isn't 0 (stamp.h), for each 32 words. A word that isn't
 * 0 has arrived. The reader sets words back to 0. A message without data is one word with a stamp.
 */
#ifndef TUPLEQ_COLL_WORDS_H
#define TUPLEQ_COLL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of data behind a word with a stamp, which has a bit for each. */
enum { TUPLEQ_WORDS = 32 };

/* Returns how many bytes the words of `len` bytes of data take. */
static inline size_t mca_coll_tupleq_words_size(size_t len)
{
	size_t words = (len + sizeof(uint64_t) - 1) / sizeof(uint64_t);
	size_t stamps = words ? (words + TUPLEQ_WORDS - 1) / TUPLEQ_WORDS : 1;

	return (words + stamps) * sizeof(uint64_t);
}

/* Makes words of data. */
void mca_coll_tupleq_words_put(uint64_t *words, const void *data, size_t len, uint32_t stamp);

/* Returns the stamp of the first word, or 0 if that hasn't arrived. */
static inline uint32_t mca_coll_tupleq_words_stamp(const uint64_t *words)
{
	return (uint32_t)(__atomic_load_n(words, __ATOMIC_ACQUIRE) >> 32);
}

/* Advances *arrived, which is 0 at first, over the words that have arrived. Returns true if all
 * have. */
bool mca_coll_tupleq_words_poll(const uint64_t *words, size_t len, size_t *arrived);

/* Takes the data out and sets the words to 0. */
void mca_coll_tupleq_words_take(uint64_t *words, void *data, size_t len);

#endif
