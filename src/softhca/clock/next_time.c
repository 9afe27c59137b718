/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_time.c - the time that a program reads, and its sleeps.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
#include "program.h"

#define SECOND 1000000000u

#define FUNCTIONS                                                                         \
	FN(int, clock_gettime, (clockid_t clock, struct timespec * t))                    \
	FN(int, gettimeofday, (struct timeval * t, void *zone))                           \
	FN(time_t, time, (time_t * t))                                                    \
	FN(int, timespec_get, (struct timespec * t, int base))                            \
	FN(int, nanosleep, (const struct timespec *t, struct timespec *left))             \
	FN(int, clock_nanosleep,                                                          \
	   (clockid_t clock, int flags, const struct timespec *t, struct timespec *left)) \
	FN(int, usleep, (useconds_t us))                                                  \
	FN(unsigned int, sleep, (unsigned int seconds))                                   \
	FN(int, sched_yield, (void))

#define FN NEXT_DECLARE_ONE
FUNCTIONS
#undef FN

__attribute__((constructor)) static void resolve(void)
{
#define FN NEXT_RESOLVE_ONE
	FUNCTIONS
#undef FN
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
}

static bool is_valid(const struct timespec *t)
{
	return t && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)SECOND;
}

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

/* Sets what is to be added to the program's time; false: a clock that is not of that kind. */
static bool offset_of(clockid_t clock, uint64_t *offset)
{
	*offset = 0;
	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		return true;
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_TAI:
		*offset = shca_program_date();
		return true;
	default:
		return false;
	}
}

int shca_clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t offset;

	if (!shca_program_is_clocked() || !t || !offset_of(clock, &offset))
		return NEXT(clock_gettime)(clock, t);
	*t = timespec_of(shca_program_now() + offset);
	return 0;
}

int shca_gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;

	if (!shca_program_is_clocked() || !t)
		return NEXT(gettimeofday)(t, zone);
	now = timespec_of(shca_program_now() + shca_program_date());
	*t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}

time_t shca_time(time_t *t)
{
	time_t now;

	if (!shca_program_is_clocked())
		return NEXT(time)(t);
	now = (time_t)((shca_program_now() + shca_program_date()) / SECOND);
	if (t)
		*t = now;
	return now;
}

int shca_timespec_get(struct timespec *t, int base)
{
	if (!shca_program_is_clocked() || !t || base != TIME_UTC)
		return NEXT(timespec_get)(t, base);
	*t = timespec_of(shca_program_now() + shca_program_date());
	return base;
}

static void sleep_for(uint64_t ns)
{
	shca_program_enter();
	shca_program_sleep(shca_program_now() + ns, false);
	shca_program_leave();
}

int shca_nanosleep(const struct timespec *t, struct timespec *left)
{
	if (!shca_program_is_clocked() || !is_valid(t))
		return NEXT(nanosleep)(t, left);
	sleep_for(ns_of(t));
	return 0;
}

int shca_clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
			 struct timespec *left)
{
	uint64_t offset, now, until;

	if (!shca_program_is_clocked() || !is_valid(t) || !offset_of(clock, &offset))
		return NEXT(clock_nanosleep)(clock, flags, t, left);
	if (!(flags & TIMER_ABSTIME)) {
		sleep_for(ns_of(t));
		return 0;
	}
	now = shca_program_now();
	until = ns_of(t) > offset ? ns_of(t) - offset : 0;
	sleep_for(until > now ? until - now : 0);
	return 0;
}

int shca_usleep(useconds_t us)
{
	if (!shca_program_is_clocked())
		return NEXT(usleep)(us);
	sleep_for((uint64_t)us * 1000);
	return 0;
}

unsigned int shca_sleep(unsigned int seconds)
{
	if (!shca_program_is_clocked())
		return NEXT(sleep)(seconds);
	sleep_for((uint64_t)seconds * SECOND);
	return 0;
}

int shca_sched_yield(void)
{
	if (!shca_program_is_clocked())
		return NEXT(sched_yield)();
	shca_program_enter();
	/* A lock that it wants may be kept by a thread that is parked. */
	shca_program_contends();
	shca_program_looked();
	shca_program_leave();
	return 0;
}
