/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

/* Whole words have a loop of their own, so that the compiler moves their four bytes by one
 * instruction. */
void mca_coll_tupleq_words_put(uint64_t *words, const void *data, size_t len, uint32_t stamp)
{
	const uint64_t high = (uint64_t)stamp << 32;
	const unsigned char *from = data;
	uint32_t piece;

	*words = high; /* a message without data */

	for (; len >= sizeof(piece); words++, from += sizeof(piece), len -= sizeof(piece)) {
		memcpy(&piece, from, sizeof(piece));
		*words = high | piece;
	}
	if (len) {
		piece = 0;
		memcpy(&piece, from, len);
		*words = high | piece;
	}
}

bool mca_coll_tupleq_words_poll(const uint64_t *words, size_t len, size_t *arrived)
{
	size_t n = mca_coll_tupleq_words_size(len) / sizeof(*words);

	/* acquire: this process sees all that the writer saw before it wrote the word. */
	while (*arrived < n && __atomic_load_n(&words[*arrived], __ATOMIC_ACQUIRE))
		++*arrived;
	return *arrived == n;
}

void mca_coll_tupleq_words_take(uint64_t *words, void *data, size_t len)
{
	unsigned char *to = data;
	uint32_t piece;

	if (!len) {
		*words = 0;
		return;
	}

	for (; len >= sizeof(piece); words++, to += sizeof(piece), len -= sizeof(piece)) {
		piece = (uint32_t)*words;
		memcpy(to, &piece, sizeof(piece));
		*words = 0;
	}
	if (len) {
		piece = (uint32_t)*words;
		memcpy(to, &piece, len);
		*words = 0;
	}
}
