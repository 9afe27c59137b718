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
#include "job.h"

#define NAP_NS     20000u /* between looks, at first */
#define NAP_MAX_NS 1000000u
/* A world that is never quiet, after which a wait ends: CPU time (s) of one thread, and looks at
 * which nobody ran, but somebody had, or waited for a disk. Real time would tell nothing: a busy
 * machine may give the job no CPU. */
#define PATIENCE_S     2
#define PATIENCE_LOOKS 4096u
#define FAILED_WAITS   12 /* halvings of these at most, in a row */

/* The job, and the looks at it. */
struct world {
	struct shca_job job;
	unsigned from; /* thread at which the next look begins: the one that was busy last */
	char busy;     /* its state then; 0: none was busy */
	pid_t only;    /* process that is looked at, beside those that are not clocked; 0: all */
};

/* Returns the CPU time of a process, or UINT64_MAX if it has ended. */
static uint64_t cpu_time_of(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return UINT64_MAX;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns true if a thread of that process computes beside the others. */
static bool computes(const struct world *w, pid_t pid)
{
	const struct shca_fabric_header *hdr = w->job.fabric->hdr;
	uint32_t high = atomic_load(&hdr->clock.high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&hdr->clock.actors[i].state) == SHCA_ACTOR_COMPUTES &&
		    atomic_load(&hdr->procs[hdr->clock.actors[i].proc].pid) == pid)
			return true;
	return false;
}

/* Returns the CPU time of the processes that are not clocked and of one other (-1: of none), or of
 * all if that is 0. Leaves out those that compute, because their CPU time grows meanwhile. */
static uint64_t cpu_time(struct world *w, pid_t of)
{
	uint64_t sum = 0, t;

	for (unsigned i = 0; i < w->job.nprocs; i++) {
		if (w->job.procs[i].clocked && of && w->job.procs[i].pid != of)
			continue;
		if (w->job.procs[i].clocked && computes(w, w->job.procs[i].pid))
			continue;
		t = cpu_time_of(w->job.procs[i].pid);
		if (t == UINT64_MAX)
			shca_job_forget_process(&w->job, i--);
		else
			sum += t;
	}
	return sum;
}

/* Returns true if nobody has to wait for a thread: it wants the turn, and does nothing before it
 * has the turn, or it has had the turn for a quantum and computes beside the others. */
static bool is_apart(const struct world *w, unsigned i)
{
	const struct shca_clock *c = &w->job.fabric->hdr->clock;
	uint32_t actor = w->job.threads[i].actor;

	if (actor == SHCA_NO_ACTOR || atomic_load(&c->actors[actor].tid) != w->job.threads[i].tid)
		return false;
	switch (atomic_load(&c->actors[actor].state)) {
	case SHCA_ACTOR_COMPUTES:
		return true;
	case SHCA_ACTOR_READY:
	case SHCA_ACTOR_SPINS:
	case SHCA_ACTOR_WAITS:
		/* But for the handler of a signal that somebody has sent. */
		return !atomic_load(&c->signalled);
	default:
		return false;
	}
}

enum look { SLEEPS, BUSY, GONE };

static enum look look_at(struct world *w, unsigned i)
{
	char text[256];
	const char *p;
	ssize_t n;

	if ((w->only && w->job.threads[i].clocked && w->job.threads[i].pid != w->only) ||
	    is_apart(w, i))
		return SLEEPS;
	n = pread(w->job.threads[i].stat, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return GONE;
	text[n] = '\0';
	p = strrchr(text, ')');
	if (!p || (p[2] != 'R' && p[2] != 'D') || is_apart(w, i))
		return SLEEPS;
	w->busy = p[2];
	return BUSY;
}

static bool all_sleep(struct world *w)
{
	w->busy = 0;
	for (unsigned k = 0; k < w->job.nthreads;) {
		unsigned i = (w->from + k) % w->job.nthreads;

		switch (look_at(w, i)) {
		case BUSY:
			w->from = i;
			return false;
		case GONE:
			shca_job_forget_thread(&w->job, i);
			k = 0;
			break;
		case SLEEPS:
			k++;
			break;
		}
	}
	return true;
}

static bool is_quiet(struct world *w)
{
	uint64_t cpu;

	shca_job_refresh(&w->job);
	cpu = cpu_time(w, w->only);
	return all_sleep(w) && cpu_time(w, w->only) == cpu;
}

bool shca_world_sleeps(struct shca_fabric *f)
{
	static struct world w;

	w.job.fabric = f;
	return is_quiet(&w);
}

/* Returns the CPU time (ticks) of the thread that was busy last. */
static unsigned long ticks_of_busy(const struct world *w)
{
	unsigned long user = 0, kernel = 0;
	char text[512];
	const char *p;
	ssize_t n = pread(w->job.threads[w->from].stat, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	if (p)
		sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &kernel);
	return user + kernel;
}

/* The observations of a wait for quiet. */
struct patience {
	pid_t tid; /* the thread that was busy at the last look, and its CPU time when first seen so
		    */
	unsigned long ticks;
	unsigned looks; /* at which no thread ran */
};

/* Returns true if the wait should be given up. `failed_waits`: how many earlier waits in a row
 * were. */
static bool is_in_vain(const struct world *w, struct patience *p, unsigned failed_waits)
{
	unsigned long ticks;

	if (w->busy != 'R')
		return ++p->looks > PATIENCE_LOOKS >> failed_waits;
	ticks = ticks_of_busy(w);
	if (p->tid != w->job.threads[w->from].tid) {
		p->tid = w->job.threads[w->from].tid;
		p->ticks = ticks;
	}
	return ticks > p->ticks &&
	       ticks - p->ticks > (unsigned long)sysconf(_SC_CLK_TCK) * PATIENCE_S >> failed_waits;
}

static void wait_for_quiet(struct world *w)
{
	static unsigned failed_waits;
	struct shca_clock *c = &w->job.fabric->hdr->clock;
	struct patience p = {0};
	uint64_t nap = NAP_NS;

	for (;;) {
		struct timespec t = {0, (long)nap};

		if (!w->only)
			atomic_store(&c->others_disturbed, 0);
		if (is_quiet(w))
			break;
		if (w->busy)
			atomic_store(&c->world_busy, w->job.threads[w->from].tid);
		if (is_in_vain(w, &p, failed_waits)) {
			atomic_fetch_add(&c->unquiet, 1);
			failed_waits =
				failed_waits < FAILED_WAITS ? failed_waits + 1 : FAILED_WAITS;
			return;
		}
		nanosleep(&t, NULL);
		nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
	}
	failed_waits = 0;
	/* Nobody knows of those that aren't listed. */
	if (w->job.incomplete)
		atomic_fetch_add(&c->unquiet, 1);
}

/* Lists the processes that are not clocked in the clock, after all were quiet. */
static void publish_unclocked(struct world *w)
{
	struct shca_clock *c = &w->job.fabric->hdr->clock;

	c->unclocked_cpu = cpu_time(w, -1);
	c->nunclocked = 0;
	c->unclocked_known = !w->job.incomplete;
	for (unsigned i = 0; i < w->job.nprocs; i++) {
		if (w->job.procs[i].clocked)
			continue;
		if (c->nunclocked < SHCA_MAX_UNCLOCKED)
			c->unclocked[c->nunclocked++] = w->job.procs[i].pid;
		else
			c->unclocked_known = false;
	}
}

/*
 * Most of what a thread disturbs are other threads of its process. The other processes in virtual
 * time are only looked at if a thread has written to a descriptor since they were quiet, or a
 * process without a clock has done something: mpirun, a shell, or one that is about to join.
 */
static void settle(struct world *w, pid_t of)
{
	struct shca_clock *c = &w->job.fabric->hdr->clock;

	w->only = of;
	if (of) {
		wait_for_quiet(w);
		if (!atomic_load(&c->others_disturbed) && cpu_time(w, -1) == c->unclocked_cpu)
			return;
	}
	w->only = 0;
	atomic_fetch_add(&c->waits_for_all, 1);
	wait_for_quiet(w);
	publish_unclocked(w);
}

static void *answer(void *arg)
{
	static struct world w;
	struct shca_clock *c;

	w.job.fabric = arg;
	c = &w.job.fabric->hdr->clock;
	for (;;) {
		uint32_t asked = atomic_load(&c->world_asked);

		if (asked == atomic_load(&c->world_done)) {
			syscall(SYS_futex, &c->world_asked, FUTEX_WAIT, asked, NULL, NULL, 0);
			continue;
		}
		settle(&w, atomic_load(&w.job.fabric->hdr->procs[c->world_process].pid));
		atomic_store(&c->world_done, asked);
		syscall(SYS_futex, &c->world_done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return NULL;
}

int shca_world_start(struct shca_fabric *f)
{
	pthread_t thread;

	return -pthread_create(&thread, NULL, answer, f);
}
