/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_random.c - random numbers. A library that draws lots by them, say which of two connections
 * stays, does the same in each run if runs can be repeated: then they come from the seed.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "next.h"
#include "program.h"

#define FUNCTIONS(FN)                                                   \
	FN(ssize_t, getrandom, (void *buf, size_t len, unsigned flags)) \
	FN(int, getentropy, (void *buf, size_t len))

NEXT_FUNCTIONS(FUNCTIONS)

static void fill(void *buf, size_t len)
{
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t bits = shca_program_random();
		size_t left = len - at;

		memcpy((char *)buf + at, &bits, left < sizeof(bits) ? left : sizeof(bits));
	}
}

ssize_t shca_getrandom(void *buf, size_t len, unsigned flags)
{
	if (!shca_program_is_clocked() || !shca_program_is_repeatable())
		return NEXT(getrandom)(buf, len, flags);
	fill(buf, len);
	return (ssize_t)len;
}

int shca_getentropy(void *buf, size_t len)
{
	if (!shca_program_is_clocked() || !shca_program_is_repeatable())
		return NEXT(getentropy)(buf, len);
	if (len > 256) { /* getentropy(3) */
		errno = EIO;
		return -1;
	}
	fill(buf, len);
	return 0;
}
