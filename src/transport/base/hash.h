/* SPDX-License-Identifier: BSD-3-Clause */
/* uthash and utlist, with a hash function of the library's own. */
#ifndef TQ_BASE_HASH_H
#define TQ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tags and context ids are mostly small and dense: a multiplication spreads them well enough, at a
 * fraction of what uthash's own function costs each message. */
static inline unsigned tq_hash(const void *key, size_t len)
{
	const unsigned char *k = key;
	uint32_t word, h = 0;

	for (; len >= sizeof(word); len -= sizeof(word), k += sizeof(word)) {
		memcpy(&word, k, sizeof(word));
		h = (h ^ word) * 0x9e3779b1u;
		h ^= h >> 15;
	}
	for (; len > 0; len--)
		h = (h ^ *k++) * 0x9e3779b1u;
	return h;
}
/* uthash would end the process with exit(), and with it run the handlers of MPI and of the user. */
#define uthash_fatal(text)                                                       \
	do {                                                                     \
		fputs("TupleQ: there is no memory for a hash table.\n", stderr); \
		abort();                                                         \
	} while (0)
#define HASH_FUNCTION(key, len, value) ((value) = tq_hash((key), (len)))
#include <uthash.h>
#include <utlist.h>

#endif
