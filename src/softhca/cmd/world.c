/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - waiting until each process below the launcher sleeps and has used no CPU time while
 * that was found out. Threads that wait for their turn sleep too: they have reported by then what
 * they were woken for in the real world.
 */
#define _GNU_SOURCE 1
#include "world.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fabric/actors.h"
#include "fabric/proc.h"
#include "fabric/reap.h"
#include "job.h"

/* Time between two looks: at first, and at most. */
#define PAUSE_NS     20000u
#define PAUSE_MAX_NS 1000000u
/* A wait ends without success after BUSY_CPU_S seconds of CPU time of one thread, or IDLE_LOOKS_MAX
 * looks that found no thread running although one had used CPU time or waited for a disk. Real time
 * would tell nothing: a busy machine may give the job no CPU. */
#define BUSY_CPU_S     2
#define IDLE_LOOKS_MAX 4096u
/* A failed wait halves these limits for the next one, at most FAILED_WAITS times in a row. */
#define FAILED_WAITS 12

/* The job, and the looks at it. */
struct world {
	struct shca_job job;
	unsigned from;    /* thread at which the next look begins: the one that was busy last */
	char busy;        /* its state then; 0: none was busy */
	bool waiting_too; /* threads that wait for the turn have to sleep, too */
	bool ended;       /* a thread with a clock was found to have ended */
	pid_t only;       /* process that is looked at, beside those that are not clocked; 0: all */
};

/* Returns the CPU time of a process, or UINT64_MAX if it has ended. */
static uint64_t cpu_time_of(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return UINT64_MAX;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Returns true if a thread of the process, or with 0 of any process, computes beside the others. */
static bool computes(const struct world *world, pid_t pid)
{
	const struct shca_fabric_header *hdr = world->job.fabric->hdr;
	uint32_t high = atomic_load(&hdr->clock.high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&hdr->clock.actors[i].state) == SHCA_ACTOR_COMPUTES &&
		    (!pid || atomic_load(&hdr->procs[hdr->clock.actors[i].proc].pid) == pid))
			return true;
	return false;
}

/* Returns the CPU time of the processes that are not clocked and of one other (-1: of none), or of
 * all if that is 0. Leaves out those that compute, because their CPU time grows meanwhile. */
static uint64_t cpu_time(struct world *world, pid_t of)
{
	bool any_computes = computes(world, 0);
	uint64_t sum = 0, cpu;

	for (unsigned i = 0; i < world->job.nprocs; i++) {
		if (world->job.procs[i].clocked && of && world->job.procs[i].pid != of)
			continue;
		if (any_computes && world->job.procs[i].clocked &&
		    computes(world, world->job.procs[i].pid))
			continue;
		cpu = cpu_time_of(world->job.procs[i].pid);
		if (cpu == UINT64_MAX)
			shca_job_forget_process(&world->job, i--);
		else
			sum += cpu;
	}
	return sum;
}

/* Returns true if nobody has to wait for a thread, because the thread, or the adapters whose engine
 * it is, do nothing before they have the turn, or because it has had the turn for a quantum and
 * computes beside the others. */
static bool need_not_sleep(const struct world *world, unsigned i)
{
	const struct shca_clock *clock = &world->job.fabric->hdr->clock;
	uint32_t actor = world->job.threads[i].actor;

	/* The signal may be one that ends the process. */
	if (world->job.threads[i].engine)
		return !world->waiting_too && !atomic_load(&clock->signalled);
	if (actor == SHCA_NO_ACTOR ||
	    atomic_load(&clock->actors[actor].tid) != world->job.threads[i].tid)
		return false;
	switch (atomic_load(&clock->actors[actor].state)) {
	case SHCA_ACTOR_COMPUTES:
		return true;
	case SHCA_ACTOR_READY:
	case SHCA_ACTOR_SPINS:
	case SHCA_ACTOR_WAITS:
		/* The handler of a signal that was sent may run without the turn. */
		return !world->waiting_too && !atomic_load(&clock->signalled);
	default:
		return false;
	}
}

enum look { SLEEPS, BUSY, GONE };

static enum look look_at(struct world *world, unsigned i)
{
	char text[256], state;
	ssize_t len;

	if ((world->only && world->job.threads[i].clocked &&
	     world->job.threads[i].pid != world->only) ||
	    need_not_sleep(world, i))
		return SLEEPS;
	len = pread(world->job.threads[i].stat, text, sizeof(text) - 1, 0);
	if (len <= 0)
		return GONE;
	text[len] = '\0';
	world->job.threads[i].engine =
		world->job.threads[i].clocked && strstr(text, " (" SHCA_ENGINE_NAME ") ");
	state = shca_proc_state_in(text);
	if (state == 'Z' || state == 'X')
		return GONE;
	if ((state != 'R' && state != 'D') || need_not_sleep(world, i))
		return SLEEPS;
	world->busy = state;
	return BUSY;
}

/* Looks at the threads until one is busy, and forgets those that are gone. Returns true if all
 * sleep. */
static bool look_at_threads(struct world *world)
{
	world->busy = 0;
	for (unsigned k = 0; k < world->job.nthreads;) {
		unsigned i = (world->from + k) % world->job.nthreads;

		switch (look_at(world, i)) {
		case BUSY:
			world->from = i;
			return false;
		case GONE:
			world->ended |= world->job.threads[i].clocked;
			shca_job_forget_thread(&world->job, i);
			k = 0;
			break;
		case SLEEPS:
			k++;
			break;
		}
	}
	return true;
}

/* Looks which threads the job has. Returns true if all sleep, and used no CPU time meanwhile, and
 * no process has ended since the last look: others may wait for what its end does. */
static bool look_for_quiet(struct world *world)
{
	uint64_t cpu;
	bool quiet;

	shca_job_refresh(&world->job);
	cpu = cpu_time(world, world->only);
	quiet = look_at_threads(world) && cpu_time(world, world->only) == cpu;
	if (!world->ended)
		return quiet;
	world->ended = false;
	shca_reap_all(world->job.fabric);
	return false;
}

bool shca_world_sleeps(struct shca_fabric *fabric)
{
	static struct world world;

	world.job.fabric = fabric;
	/* On a busy machine a thread that is about to wait for its turn may still hold a lock. */
	world.waiting_too = true;
	return look_for_quiet(&world);
}

/* Returns the CPU time (ticks) of the thread that was busy last. */
static unsigned long ticks_of_busy(const struct world *world)
{
	unsigned long user = 0, kernel = 0;
	char text[512];
	const char *name_end;
	ssize_t len = pread(world->job.threads[world->from].stat, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	name_end = strrchr(text, ')');
	if (name_end)
		sscanf(name_end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &kernel);
	return user + kernel;
}

/* The observations of a wait for quiet. */
struct observed {
	pid_t tid;           /* the thread that was busy at the last look */
	unsigned long ticks; /* its CPU time at the first look that found it busy */
	unsigned looks;      /* looks at which no thread ran */
};

/* Notes a look that found the job busy. Returns true if the wait should be given up, as
 * `failed_waits` earlier ones in a row were. */
static bool note_busy_look(const struct world *world, struct observed *seen, unsigned failed_waits)
{
	unsigned long ticks;

	if (world->busy != 'R')
		return ++seen->looks > IDLE_LOOKS_MAX >> failed_waits;
	ticks = ticks_of_busy(world);
	if (seen->tid != world->job.threads[world->from].tid) {
		seen->tid = world->job.threads[world->from].tid;
		seen->ticks = ticks;
	}
	return ticks > seen->ticks && ticks - seen->ticks >
					      (unsigned long)sysconf(_SC_CLK_TCK) * BUSY_CPU_S >>
					      failed_waits;
}

static void wait_for_quiet(struct world *world)
{
	static unsigned failed_waits;
	struct shca_clock *clock = &world->job.fabric->hdr->clock;
	struct observed seen = {0};
	uint64_t pause_ns = PAUSE_NS;

	for (;;) {
		struct timespec pause = {0, (long)pause_ns};

		if (!world->only)
			atomic_store(&clock->others_disturbed, 0);
		if (look_for_quiet(world))
			break;
		if (world->busy)
			atomic_store(&clock->world_busy, world->job.threads[world->from].tid);
		if (note_busy_look(world, &seen, failed_waits)) {
			atomic_fetch_add(&clock->unquiet, 1);
			failed_waits =
				failed_waits < FAILED_WAITS ? failed_waits + 1 : FAILED_WAITS;
			return;
		}
		nanosleep(&pause, NULL);
		pause_ns = pause_ns * 2 < PAUSE_MAX_NS ? pause_ns * 2 : PAUSE_MAX_NS;
	}
	failed_waits = 0;
	/* Threads that aren't listed may be busy. */
	if (world->job.incomplete)
		atomic_fetch_add(&clock->unquiet, 1);
}

/* Lists the processes that are not clocked in the clock, after all were quiet. */
static void publish_unclocked(struct world *world)
{
	struct shca_clock *clock = &world->job.fabric->hdr->clock;

	clock->unclocked_cpu = cpu_time(world, -1);
	clock->nunclocked = 0;
	clock->unclocked_known = !world->job.incomplete;
	for (unsigned i = 0; i < world->job.nprocs; i++) {
		if (world->job.procs[i].clocked)
			continue;
		if (clock->nunclocked < SHCA_MAX_UNCLOCKED)
			clock->unclocked[clock->nunclocked++] = world->job.procs[i].pid;
		else
			clock->unclocked_known = false;
	}
}

/*
 * Waits until the process `of` is quiet, or all are if it is 0. A thread mostly disturbs other
 * threads of its process. The other processes in virtual time are only looked at if a thread has
 * written to a descriptor since they were quiet, or a process without a clock has done something:
 * mpirun, a shell, or a process that is about to join.
 */
static void settle(struct world *world, pid_t of)
{
	struct shca_clock *clock = &world->job.fabric->hdr->clock;

	world->only = of;
	if (of) {
		wait_for_quiet(world);
		if (!atomic_load(&clock->others_disturbed) &&
		    cpu_time(world, -1) == clock->unclocked_cpu)
			return;
	}
	world->only = 0;
	atomic_fetch_add(&clock->waits_for_all, 1);
	wait_for_quiet(world);
	publish_unclocked(world);
}

static void *answer(void *arg)
{
	static struct world world;
	struct shca_clock *clock;

	world.job.fabric = arg;
	clock = &world.job.fabric->hdr->clock;
	for (;;) {
		uint32_t asked = atomic_load(&clock->world_asked);

		if (asked == atomic_load(&clock->world_done)) {
			syscall(SYS_futex, &clock->world_asked, FUTEX_WAIT, asked, NULL, NULL, 0);
			continue;
		}
		settle(&world,
		       atomic_load(&world.job.fabric->hdr->procs[clock->world_process].pid));
		atomic_store(&clock->world_done, asked);
		syscall(SYS_futex, &clock->world_done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return NULL;
}

int shca_world_start(struct shca_fabric *fabric)
{
	pthread_t thread;

	return -pthread_create(&thread, NULL, answer, fabric);
}
