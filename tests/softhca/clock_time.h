/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock_time.h - helpers of tests in virtual time: the real time, and checks of the time that
 * passed.
 */
#ifndef CLOCK_TIME_H
#define CLOCK_TIME_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

#define SECOND 1000000000ull

static inline uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

/* Returns the real time (ns), from the kernel itself. */
static inline uint64_t real_now(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return ns_of(&t);
}

/* Checks that `ns` have passed since `since`: not less, and at most 5 % and `more` above. */
static inline void passed_within(uint64_t since, uint64_t ns, uint64_t more)
{
	uint64_t took = t_now() - since;

	t_true(took >= ns && took < ns + ns / 20 + more, "%llu ns instead of %llu",
	       (unsigned long long)took, (unsigned long long)ns);
}

/* Returns the time of a clock some seconds from now. */
static inline struct timespec from_now(clockid_t clock, time_t seconds)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += seconds;
	return t;
}

#endif
