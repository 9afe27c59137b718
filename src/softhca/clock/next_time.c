/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_time.c - the time that a program reads, and its sleeps.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
#include "next_time.h"
#include "next_times.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                           \
	FN(int, clock_gettime, (clockid_t clock, struct timespec * now))                        \
	FN(int, gettimeofday, (struct timeval * result, void *zone))                            \
	FN(time_t, time, (time_t * result))                                                     \
	FN(int, timespec_get, (struct timespec * result, int base))                             \
	FN(int, nanosleep, (const struct timespec *duration, struct timespec *left))            \
	FN(int, clock_nanosleep,                                                                \
	   (clockid_t clock, int flags, const struct timespec *request, struct timespec *left)) \
	FN(int, usleep, (useconds_t us))                                                        \
	FN(unsigned int, sleep, (unsigned int seconds))                                         \
	FN(int, sched_yield, (void))

NEXT_FUNCTIONS(FUNCTIONS)

static bool is_valid(const struct timespec *time)
{
	return time && time->tv_sec >= 0 && shca_is_timespec(time);
}

/* Stores by how much (ns) a clock is ahead of the program's time. Returns false for a clock that
 * isn't virtual, such as one of CPU time. */
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
		*offset = shca_program_realtime_offset();
		return true;
	default:
		return false;
	}
}

int shca_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t offset;

	if (!shca_program_sees_virtual() || !now || !offset_of(clock, &offset))
		return NEXT(clock_gettime)(clock, now);
	*now = shca_timespec(shca_program_now() + offset);
	return 0;
}

int shca_gettimeofday(struct timeval *result, void *zone)
{
	struct timespec now;

	if (!shca_program_sees_virtual() || !result)
		return NEXT(gettimeofday)(result, zone);
	now = shca_timespec(shca_program_now() + shca_program_realtime_offset());
	*result = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}

time_t shca_time(time_t *result)
{
	time_t now;

	if (!shca_program_sees_virtual())
		return NEXT(time)(result);
	now = (time_t)((shca_program_now() + shca_program_realtime_offset()) / SHCA_SECOND);
	if (result)
		*result = now;
	return now;
}

int shca_timespec_get(struct timespec *result, int base)
{
	if (!shca_program_sees_virtual() || !result || base != TIME_UTC)
		return NEXT(timespec_get)(result, base);
	*result = shca_timespec(shca_program_now() + shca_program_realtime_offset());
	return base;
}

const struct timespec *shca_real_deadline(clockid_t clock, const struct timespec *deadline,
					  struct timespec *real)
{
	uint64_t offset, now;

	if (shca_program_join() || !shca_program_sees_virtual() || !is_valid(deadline) ||
	    !offset_of(clock, &offset) || NEXT(clock_gettime)(clock, real))
		return deadline;
	now = shca_program_now() + offset;
	*real = shca_timespec(
		shca_after(shca_ns(real), shca_ns(deadline) > now ? shca_ns(deadline) - now : 0));
	return real;
}

/* Waits until a time. Returns the ns that are left because a signal handler ran. Inside of a call.
 */
static uint64_t wait_until(uint64_t until)
{
	uint64_t now;
	bool heard;

	shca_program_listen(SHCA_HANDLER_ANY);
	shca_program_sleep(until, false);
	heard = shca_program_heard();
	shca_program_listen(0);
	now = shca_program_now();
	return heard && now < until ? until - now : 0;
}

/* Both functions are cancellation points, as those of the C library. */
static uint64_t sleep_until(uint64_t until)
{
	uint64_t left;

	pthread_testcancel();
	shca_program_enter();
	left = wait_until(until);
	shca_program_leave();
	pthread_testcancel();
	return left;
}

static uint64_t sleep_for(uint64_t ns)
{
	uint64_t left;

	pthread_testcancel();
	shca_program_enter();
	left = wait_until(shca_after(shca_program_now(), ns));
	shca_program_leave();
	pthread_testcancel();
	return left;
}

int shca_nanosleep(const struct timespec *duration, struct timespec *left)
{
	uint64_t ns;

	if (!shca_program_join() || !is_valid(duration))
		return NEXT(nanosleep)(duration, left);
	ns = sleep_for(shca_ns(duration));
	if (!ns)
		return 0;
	if (left)
		*left = shca_timespec(ns);
	errno = EINTR;
	return -1;
}

int shca_clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
			 struct timespec *left)
{
	struct timespec real;
	uint64_t offset, ns;

	if (!shca_program_join() || !is_valid(request) || !offset_of(clock, &offset))
		return NEXT(clock_nanosleep)(
			clock, flags,
			flags & TIMER_ABSTIME ? shca_real_deadline(clock, request, &real) : request,
			left);
	if (flags & TIMER_ABSTIME) {
		ns = sleep_until(shca_ns(request) > offset ? shca_ns(request) - offset : 0);
	} else {
		ns = sleep_for(shca_ns(request));
		if (ns && left)
			*left = shca_timespec(ns);
	}
	return ns ? EINTR : 0;
}

int shca_usleep(useconds_t us)
{
	if (!shca_program_join())
		return NEXT(usleep)(us);
	if (!sleep_for((uint64_t)us * 1000))
		return 0;
	errno = EINTR;
	return -1;
}

unsigned int shca_sleep(unsigned int seconds)
{
	if (!shca_program_join())
		return NEXT(sleep)(seconds);
	return (unsigned int)((sleep_for((uint64_t)seconds * SHCA_SECOND) + SHCA_SECOND / 2) /
			      SHCA_SECOND);
}

int shca_sched_yield(void)
{
	if (!shca_program_join())
		return NEXT(sched_yield)();
	if (shca_program_try_free_yield())
		return 0;
	shca_program_enter();
	/* A parked thread may hold a lock that the caller wants. */
	shca_program_wake_spinning();
	shca_program_looked();
	shca_program_leave();
	return 0;
}
