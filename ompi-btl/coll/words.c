/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

void mca_coll_tupleq_words_put(uint64_t *words, const void *data, size_t len, uint32_t stamp)
{
	const unsigned char *from = data;

	do {
		uint64_t *const first = words++;
		uint32_t bits = 0;
		uint64_t word;
		int i = 0;

		for (; i < TUPLEQ_WORDS && len >= sizeof(word); i++, len -= sizeof(word)) {
			memcpy(&word, from, sizeof(word));
			from += sizeof(word);
			bits |= (uint32_t)(word & 1) << i;
			*words++ = word | 1;
		}
		if (i < TUPLEQ_WORDS && len) {
			word = 0;
			memcpy(&word, from, len);
			len = 0;
			bits |= (uint32_t)(word & 1) << i;
			*words++ = word | 1;
		}
		*first = (uint64_t)stamp << 32 | bits;
	} while (len);
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
	unsigned char *to = data;

	do {
		uint32_t bits = (uint32_t)*words;
		uint64_t word;
		int i = 0;

		*words++ = 0;
		for (; i < TUPLEQ_WORDS && len >= sizeof(word); i++, len -= sizeof(word)) {
			word = (*words & ~UINT64_C(1)) | (bits >> i & 1);
			*words++ = 0;
			memcpy(to, &word, sizeof(word));
			to += sizeof(word);
		}
		if (i < TUPLEQ_WORDS && len) {
			word = (*words & ~UINT64_C(1)) | (bits >> i & 1);
			*words++ = 0;
			memcpy(to, &word, len);
			len = 0;
		}
	} while (len);
}
