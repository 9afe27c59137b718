/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

#define STAMP (UINT64_C(1) << 32)

void tupleq_words_put(uint64_t *words, const void *data, size_t len)
{
	const unsigned char *from = data;

	for (; len > 0; words++) {
		size_t n = len < 4 ? len : 4;
		uint32_t piece = 0;

		memcpy(&piece, from, n);
		*words = STAMP | piece;
		from += n;
		len -= n;
	}
}

bool tupleq_words_here(const uint64_t *words, size_t len, size_t *got)
{
	size_t n = tupleq_words_size(len) / sizeof(*words);

	/* acquire: what the writer had seen before is seen after this. */
	while (*got < n && __atomic_load_n(&words[*got], __ATOMIC_ACQUIRE))
		++*got;
	return *got == n;
}

void tupleq_words_take(uint64_t *words, void *data, size_t len)
{
	unsigned char *to = data;

	for (; len > 0; words++) {
		size_t n = len < 4 ? len : 4;
		uint32_t piece = (uint32_t)*words;

		memcpy(to, &piece, n);
		*words = 0;
		to += n;
		len -= n;
	}
}
