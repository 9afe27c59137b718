/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_random.c - random numbers come from the seed if runs can be repeated. So a library that
 * decides by them, say which of two connections stays, does the same in each run.
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
	FN(int, getentropy, (void *buf, size_t len))                    \
	FN(uint32_t, arc4random, (void))                                \
	FN(void, arc4random_buf, (void *buf, size_t len))               \
	FN(uint32_t, arc4random_uniform, (uint32_t bound))

NEXT_FUNCTIONS(FUNCTIONS)

static void fill(void *buf, size_t len)
{
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t bits = shca_program_random();
		size_t left = len - at;

		memcpy((char *)buf + at, &bits, left < sizeof(bits) ? left : sizeof(bits));
	}
}

/* Returns true if the calling thread's random numbers come from the seed. */
static bool is_seeded(void)
{
	return shca_program_join() && shca_program_is_repeatable();
}

ssize_t shca_getrandom(void *buf, size_t len, unsigned flags)
{
	if (!is_seeded())
		return NEXT(getrandom)(buf, len, flags);
	fill(buf, len);
	return (ssize_t)len;
}

int shca_getentropy(void *buf, size_t len)
{
	if (!is_seeded())
		return NEXT(getentropy)(buf, len);
	if (len > 256) { /* getentropy(3) */
		errno = EIO;
		return -1;
	}
	fill(buf, len);
	return 0;
}

/* glibc's arc4random functions don't call getrandom() as a program would. */
uint32_t shca_arc4random(void)
{
	return is_seeded() ? (uint32_t)shca_program_random() : NEXT(arc4random)();
}

void shca_arc4random_buf(void *buf, size_t len)
{
	if (is_seeded())
		fill(buf, len);
	else
		NEXT(arc4random_buf)(buf, len);
}

uint32_t shca_arc4random_uniform(uint32_t bound)
{
	if (!is_seeded())
		return NEXT(arc4random_uniform)(bound);
	return (uint32_t)((unsigned __int128)shca_program_random() * bound >> 64);
}
