/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <sys/random.h>

uint64_t tq_random(void)
{
	uint64_t bits = 0;

	/* 8 bytes are never cut short, and the kernel's pool is long ready when a job starts. */
	while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		;
	return bits;
}
