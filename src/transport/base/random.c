/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

/* Returns bits that differ between processes and from call to call, where a sandbox forbids
 * getrandom(). Nothing secret depends on them. */
static uint64_t unlike_others(void)
{
	static _Atomic uint64_t calls;
	uint64_t bits = tq_now() ^ (uint64_t)getpid() << 40;

	bits += (atomic_fetch_add(&calls, 1) + 1) * 0x9e3779b97f4a7c15ULL;
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
	return bits ^ bits >> 31;
}

uint64_t tq_random(void)
{
	uint64_t bits = 0;

	/* 8 bytes are never cut short, and the kernel's pool is long ready when a job starts. */
	while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		if (errno != EINTR)
			return unlike_others();
	return bits;
}
