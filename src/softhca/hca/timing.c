/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timing.c - the two tables.
 */
#include "timing.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/proc.h"
#include "fabric/trace.h"

/* ---------------------------------------------------------------- real time */

static void wake_sleeper(void)
{
	shca_proc_wake_sleeper(shca_self.proc);
}

static void announce_real(uint64_t when)
{
	(void)when;
	wake_sleeper();
}

static void ignore(uint64_t when)
{
	(void)when;
}

static uint64_t real_date_of(uint64_t stamp)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	return (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec - (shca_now() - stamp);
}

/* Longest time (ns) that a thread waits without sleeping. A choice: a sleep takes some 50 us more.
 */
#define SPIN_NS 50000u

static void elapse_real(uint64_t ns)
{
	const uint64_t until = shca_now() + ns;
	struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	if (ns <= SPIN_NS)
		while (shca_now() < until)
			;
	else
		while (nanosleep(&left, &left) && errno == EINTR)
			;
}

static ssize_t read_traced(int fd, void *record, size_t len)
{
	uint64_t since = shca_tracing() ? shca_now() : 0;
	ssize_t n = read(fd, record, len);

	if (since)
		shca_trace_stretch(SHCA_TRACE_WAITS, since, shca_now());
	return n;
}

#define REAL                                                                                 \
	{                                                                                    \
		.wake = wake_sleeper, .announce = announce_real, .schedule = ignore,         \
		.date_of = real_date_of, .read_channel = read_traced, .elapse = elapse_real, \
	}

/* ---------------------------------------------------------------- virtual time */

/* The clock wakes the adapters when they are due. */
static void wake_nobody(void)
{
}

static void announce_virtual(uint64_t when)
{
	shca_actor_sooner(shca_clk, shca_self.slot, when);
}

static void set_due(uint64_t when)
{
	uint64_t connections;

	shca_clock_due(shca_self.slot, when ? when : shca_now());
	/* The rest is read after that, because a reaper, which has no turn, asks for attention, or
	 * for a look at connections, before it makes the adapters due. */
	connections = atomic_load(&shca_self.proc->cm_due);
	if (connections)
		shca_actor_sooner(shca_clk, shca_self.slot, connections);
	if (atomic_load(&shca_self.proc->attention))
		shca_clock_due(shca_self.slot, shca_now());
}

static uint64_t virtual_date_of(uint64_t stamp)
{
	return stamp - shca_clk->zero + shca_clk->real_zero;
}

static ssize_t await_and_read(int fd, void *record, size_t len)
{
	return shca_clock_await_event(fd) ? -1 : read(fd, record, len);
}

static void elapse_virtual(uint64_t ns)
{
	shca_clock_wait(shca_now() + ns, 0);
}

/* Has the owner's polling threads woken when they may see the completion. */
static void wake_polling(unsigned owner, const struct shca_cqe *cqe, uint64_t visible_at)
{
	uint64_t now = shca_now(), at = visible_at > now ? visible_at : now;

	shca_log_completion(owner, at, cqe->opcode, cqe->status, cqe->byte_len);
	shca_actors_wake_spinning(shca_clk, owner, at);
}

/* Threads that poll the memory may see the change now. */
static void touch(unsigned proc)
{
	shca_actors_touch(shca_clk, proc);
}

static const struct shca_timing real = REAL, virtual = {
						     .wake = wake_nobody,
						     .announce = announce_virtual,
						     .schedule = set_due,
						     .date_of = virtual_date_of,
						     .read_channel = await_and_read,
						     .elapse = elapse_virtual,
						     .completion = wake_polling,
						     .memory_written = touch,
						     .posting_is_free = true,
};

struct shca_timing shca_timing = REAL;

void shca_timing_choose(void)
{
	shca_timing = shca_clk ? virtual : real;
}
