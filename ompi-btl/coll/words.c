/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

/* Two words at a time, as compilers have instructions for. */
typedef uint64_t pair __attribute__((vector_size(2 * sizeof(uint64_t))));

enum { PAIRS = TUPLEQ_WORDS / 2, BLOCK = TUPLEQ_WORDS * sizeof(uint64_t) };

/* Makes the words of a whole block. Returns the bits: the upper half has those of the words with
 * even numbers, the last pair's in the lowest place. */
static uint32_t put_block(uint64_t *words, const unsigned char *from)
{
	pair bits = {0, 0}, word;

	for (size_t i = 0; i < PAIRS; i++) {
		memcpy(&word, from + i * sizeof(word), sizeof(word));
		bits = (bits << 1) | (word & 1);
		word |= 1;
		memcpy(words + 2 * i, &word, sizeof(word));
	}
	return (uint32_t)(bits[0] << PAIRS | bits[1]);
}

static void take_block(const uint64_t *words, unsigned char *to, uint32_t all)
{
	pair bits = {all >> PAIRS, all}, word;

	for (size_t i = PAIRS; i-- > 0;) {
		memcpy(&word, words + 2 * i, sizeof(word));
		word = (word & ~UINT64_C(1)) | (bits & 1);
		bits >>= 1;
		memcpy(to + i * sizeof(word), &word, sizeof(word));
	}
}

/* Makes the words of less than a block. Returns the bits: the first word's is the lowest one. */
static uint32_t put_rest(uint64_t *words, const unsigned char *from, size_t len)
{
	uint32_t bits = 0;

	for (size_t i = 0, n; len; i++, from += n, len -= n) {
		uint64_t word = 0;

		n = len < sizeof(word) ? len : sizeof(word);
		memcpy(&word, from, n);
		bits |= (uint32_t)(word & 1) << i;
		words[i] = word | 1;
	}
	return bits;
}

static void take_rest(const uint64_t *words, unsigned char *to, size_t len, uint32_t bits)
{
	for (size_t i = 0, n; len; i++, to += n, len -= n) {
		uint64_t word = (words[i] & ~UINT64_C(1)) | (bits >> i & 1);

		n = len < sizeof(word) ? len : sizeof(word);
		memcpy(to, &word, n);
	}
}

void mca_coll_tupleq_words_put(uint64_t *words, const void *data, size_t len, uint32_t stamp)
{
	const unsigned char *from = data;

	for (; len >= BLOCK; len -= BLOCK, from += BLOCK, words += 1 + TUPLEQ_WORDS) {
		words[0] = (uint64_t)stamp << 32 | put_block(words + 1, from);
		if (len == BLOCK)
			return;
	}
	words[0] = (uint64_t)stamp << 32 | put_rest(words + 1, from, len);
}

bool mca_coll_tupleq_words_poll(const uint64_t *words, size_t len, size_t *arrived)
{
	size_t n = mca_coll_tupleq_words_size(len) / sizeof(*words);

	/* The last word mostly comes last. Until then the other cache lines are left to the writer.
	 */
	if (!__atomic_load_n(&words[n - 1], __ATOMIC_RELAXED))
		return false;
	/* acquire: this process sees all that the writer saw before it wrote the word. */
	while (*arrived < n && __atomic_load_n(&words[*arrived], __ATOMIC_ACQUIRE))
		++*arrived;
	return *arrived == n;
}

void mca_coll_tupleq_words_take(uint64_t *words, void *data, size_t len)
{
	size_t size = mca_coll_tupleq_words_size(len);
	const uint64_t *from = words;
	unsigned char *to = data;

	for (; len >= BLOCK; len -= BLOCK, to += BLOCK, from += 1 + TUPLEQ_WORDS)
		take_block(from + 1, to, (uint32_t)from[0]);
	if (len)
		take_rest(from + 1, to, len, (uint32_t)from[0]);
	memset(words, 0, size);
}
