/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle_near.c - most of what a thread disturbs are a few threads of its own process. To look at
 * them costs less than to wake the monitor, which looks at them from another CPU. The monitor is
 * asked where more than that may be busy, or is busy for long.
 *
 * No function here is a cancellation point, or allocates memory: the caller may be in an allocator.
 */
#define _GNU_SOURCE 1
#include "settle_near.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fabric/proc.h"
#include "fabric/text.h"
#include "turn_self.h"

#define LOOKS    10    /* before the monitor is asked: within 1 ms */
#define PAUSE_NS 1000u /* between looks, at first */
#define THREADS  64    /* of a process: the monitor looks at one that has more */

/* The most bytes of an entry of /proc/PID/task. */
#define ENTRY_BYTES ((ssize_t)sizeof(uint64_t) * 4)

/* The kernel's numbers of CPU clocks (include/linux/posix-timers.h). */
#define CPU_CLOCK_OF_PROCESS(pid) (~(clockid_t)(pid)*8 + 2)
#define CPU_CLOCK_OF_THREAD(tid)  (~(clockid_t)(tid)*8 + 6)

/* The threads of a process without those that have a turn to wait for. */
struct threads {
	pid_t pid;
	uint32_t slot; /* SHCA_NO_PROC: a process without a clock */
	unsigned n;
	pid_t tids[THREADS];
};

static ssize_t read_at_once(const char *path, char *buf, size_t len)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = syscall(SYS_read, fd, buf, len);
	syscall(SYS_close, fd);
	return n;
}

/* Returns true if nobody has to wait for a thread: it does nothing before it has the turn, or
 * computes beside the others. */
static bool is_apart(const struct shca_clock *clock, uint32_t slot, pid_t tid)
{
	uint32_t i = slot == SHCA_NO_PROC ? 0 : atomic_load(&clock->threads[slot]);

	while (i && atomic_load(&clock->actors[i - 1].tid) != tid)
		i = atomic_load(&clock->actors[i - 1].sibling);
	if (!i)
		return false;
	switch (atomic_load(&clock->actors[i - 1].state)) {
	case SHCA_ACTOR_READY:
	case SHCA_ACTOR_SPINS:
	case SHCA_ACTOR_WAITS:
	case SHCA_ACTOR_COMPUTES:
		return true;
	default:
		return false;
	}
}

/* Adds the threads of some entries of /proc/PID/task that aren't apart, but for the calling one.
 * Returns false if there are too many. */
static bool list_some(const struct shca_clock *clock, struct threads *threads, const char *buf,
		      ssize_t n)
{
	pid_t me = (pid_t)syscall(SYS_gettid);
	const struct dirent64 *e;

	for (ssize_t at = 0; at < n; at += e->d_reclen) {
		pid_t tid;

		e = (const struct dirent64 *)(const void *)(buf + at);
		tid = (pid_t)strtol(e->d_name, NULL, 10);
		if (tid <= 0 || tid == me || is_apart(clock, threads->slot, tid))
			continue;
		if (threads->n == THREADS)
			return false;
		threads->tids[threads->n++] = tid;
	}
	return true;
}

/* Lists the threads of a process that aren't apart, but for the calling one. Returns false if there
 * are too many. */
static bool list(const struct shca_clock *clock, uint32_t slot, pid_t pid, struct threads *threads)
{
	char path[32], *end, buf[512] __attribute__((aligned(8)));
	bool listed = true;
	ssize_t n;
	int fd;

	threads->pid = pid;
	threads->slot = slot;
	threads->n = 0;
	end = shca_put_number(shca_put_text(path, "/proc/"), (uint64_t)pid);
	shca_put_text(end, "/task");
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		n = syscall(SYS_getdents64, fd, buf, sizeof(buf));
		listed = n >= 0 && list_some(clock, threads, buf, n);
		/* The kernel gives whole entries, and leaves out those that don't fit in. */
	} while (listed && n > (ssize_t)(sizeof(buf) - ENTRY_BYTES));
	syscall(SYS_close, fd);
	return listed;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	/* One that has ended uses no more. */
	if (syscall(SYS_clock_gettime, clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the CPU time of the threads. The kernel tells that of another process only as a whole. */
static uint64_t cpu_time(const struct threads *threads)
{
	uint64_t sum = 0;

	if (threads->pid != (pid_t)syscall(SYS_getpid))
		return read_clock(CPU_CLOCK_OF_PROCESS(threads->pid));
	for (unsigned i = 0; i < threads->n; i++)
		sum += read_clock(CPU_CLOCK_OF_THREAD(threads->tids[i]));
	return sum;
}

static bool sleeps(pid_t pid, pid_t tid)
{
	char path[64], *end, text[256], state;
	ssize_t n;

	end = shca_put_number(shca_put_text(path, "/proc/"), (uint64_t)pid);
	end = shca_put_number(shca_put_text(end, "/task/"), (uint64_t)tid);
	shca_put_text(end, "/stat");
	n = read_at_once(path, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	state = shca_proc_state_in(text);
	return state != 'R' && state != 'D';
}

static bool all_sleep(const struct shca_clock *clock, const struct threads *threads)
{
	for (unsigned i = 0; i < threads->n; i++)
		if (!sleeps(threads->pid, threads->tids[i]) &&
		    !is_apart(clock, threads->slot, threads->tids[i]))
			return false;
	return true;
}

/* Returns true if each of the threads slept, and none used CPU time meanwhile: it would have if it
 * had made another thread. */
static bool is_quiet(const struct shca_clock *clock, uint32_t slot)
{
	struct threads threads;
	uint64_t cpu;

	if (!list(clock, slot, atomic_load(&shca_turn_here.fabric->hdr->procs[slot].pid), &threads))
		return false;
	cpu = cpu_time(&threads);
	return all_sleep(clock, &threads) && cpu_time(&threads) == cpu;
}

/* Returns true if the processes without a clock sleep, and have used no CPU time since all were
 * quiet. The kernel counts that of another process only when a thread stops running, or now and
 * then. */
static bool are_unclocked_quiet(const struct shca_clock *clock)
{
	struct threads threads;
	uint64_t sum = 0;

	if (!clock->unclocked_known)
		return false;
	for (uint32_t i = 0; i < clock->nunclocked; i++)
		if (!list(clock, SHCA_NO_PROC, clock->unclocked[i], &threads) ||
		    !all_sleep(clock, &threads))
			return false;
	for (uint32_t i = 0; i < clock->nunclocked; i++)
		sum += read_clock(CPU_CLOCK_OF_PROCESS(clock->unclocked[i]));
	return sum == clock->unclocked_cpu;
}

static bool may_others_be_busy(const struct shca_clock *clock)
{
	return atomic_load(&clock->others_disturbed) || atomic_load(&clock->signalled);
}

bool shca_settle_near(struct shca_clock *clock)
{
	struct timespec pause = {0, PAUSE_NS};

	for (unsigned i = 0; i < LOOKS && !may_others_be_busy(clock); i++) {
		if (is_quiet(clock, clock->world_process))
			return are_unclocked_quiet(clock) && !may_others_be_busy(clock);
		/* The threads of a job share a CPU. A yield would let those of other jobs run for
		 * long, too. */
		syscall(SYS_nanosleep, &pause, NULL);
		pause.tv_nsec *= 2;
	}
	return false;
}
