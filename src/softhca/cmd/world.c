/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - waiting until each process below the launcher sleeps and has used no CPU time while
 * that was found out. Threads that wait for their turn sleep too: they have reported by then what
 * they were woken for in the real world.
 */
#define _GNU_SOURCE 1
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "procfs.h"

#define NAP_NS     20000u /* between looks, at first */
#define NAP_MAX_NS 1000000u
/* A world that is never quiet, after which a wait ends: CPU time (s) of one thread, and looks at
 * which nobody ran, but somebody had, or waited for a disk. Real time would tell nothing: a busy
 * machine may give the job no CPU. */
#define PATIENCE_S     2
#define PATIENCE_LOOKS 4096u
#define WORN           12 /* halvings of these at most, in a row */
#define DEPTH          32
#define MAX_THREADS    8192
#define MAX_PROCS      1024
/* New ids since the last look beyond which the lists are made anew. */
#define MANY_IDS 1024
/* Time (ns) after which one with a new id can be looked at, or has ended. */
#define BIRTH_NS 50000000u

/* The threads of the job, each with its file in /proc, and its processes. */
struct world {
	struct shca_fabric *fabric;
	unsigned long newest; /* last id that the kernel had given away when the lists were made */
	unsigned nthreads, nprocs;
	bool incomplete; /* there was no room, or no descriptor, for one */
	unsigned from;   /* thread at which the next look begins: the one that was busy last */
	char busy;       /* its state then; 0: none was busy */
	uint32_t joins;  /* number of joins for which the threads' actors are known */
	pid_t of;        /* process that is looked at, beside those that are not clocked; 0: all */
	uint64_t around; /* CPU time of the processes that are not clocked, when all were quiet */
	struct {
		pid_t tid, pid;
		int stat;
		uint32_t actor; /* SHCA_NO_ACTOR: none is known */
		bool clocked;   /* its process is */
	} threads[MAX_THREADS];
	struct {
		pid_t pid;
		bool clocked; /* has threads with clocks */
	} procs[MAX_PROCS];
	unsigned nunborn;
	struct unborn {
		pid_t id;
		uint64_t since; /* real time at which the id was new */
	} unborn[MANY_IDS];
};

static uint32_t actor_of(const struct shca_clock *c, pid_t tid)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&c->actors[i].tid) == tid)
			return i;
	return SHCA_NO_ACTOR;
}

/* ---------------------------------------------------------------- the lists */

static void add_process(struct world *w, pid_t pid, unsigned depth);

static void add_children(struct world *w, pid_t pid, pid_t tid, unsigned depth)
{
	char path[64], text[MAX_PROCS * sizeof("4194304")], *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (shca_procfs_read(path, text, sizeof(text)) <= 0)
		return;
	for (char *p = text;; p = end) {
		long child = strtol(p, &end, 10);

		if (end == p)
			return;
		if (child != getpid())
			add_process(w, (pid_t)child, depth + 1);
	}
}

static void note_process(struct world *w, pid_t pid)
{
	w->incomplete |= w->nprocs == MAX_PROCS;
	if (w->nprocs == MAX_PROCS)
		return;
	w->procs[w->nprocs].clocked = false;
	w->procs[w->nprocs++].pid = pid;
}

static bool is_clocked(const struct world *w, pid_t pid)
{
	for (unsigned i = 0; i < w->nprocs; i++)
		if (w->procs[i].pid == pid)
			return w->procs[i].clocked;
	return false;
}

static void add_thread(struct world *w, pid_t pid, pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	errno = EMFILE;
	fd = w->nthreads < MAX_THREADS ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	w->incomplete |= fd < 0 && (errno == EMFILE || errno == ENFILE);
	if (fd < 0)
		return;
	w->threads[w->nthreads].actor = actor_of(&w->fabric->hdr->clock, tid);
	w->threads[w->nthreads].clocked = is_clocked(w, pid);
	w->threads[w->nthreads].tid = tid;
	w->threads[w->nthreads].pid = pid;
	w->threads[w->nthreads++].stat = fd;
}

static void add_process(struct world *w, pid_t pid, unsigned depth)
{
	const struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = depth < DEPTH ? opendir(path) : NULL;
	if (!d)
		return;
	/* The launcher itself only waits, and reaps. */
	if (depth)
		note_process(w, pid);
	while ((e = readdir(d))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (depth)
			add_thread(w, pid, tid);
		add_children(w, pid, tid, depth);
	}
	closedir(d);
}

static void forget_thread(struct world *w, unsigned i)
{
	close(w->threads[i].stat);
	w->threads[i] = w->threads[--w->nthreads];
}

static void list_all(struct world *w)
{
	while (w->nthreads)
		forget_thread(w, w->nthreads - 1);
	w->nprocs = w->nunborn = 0;
	w->incomplete = false;
	w->joins = 0;
	add_process(w, atomic_load(&w->fabric->hdr->owner_pid), 0);
}

static bool is_listed(const struct world *w, pid_t pid)
{
	for (unsigned i = 0; i < w->nprocs; i++)
		if (w->procs[i].pid == pid)
			return true;
	return false;
}

static pid_t number_after(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? (pid_t)strtol(p + strlen(name), NULL, 10) : 0;
}

/* Lists a thread or process that is new on this machine, if it is the job's. Returns false if it
 * has ended, or has only got its id by now. */
static bool list_new(struct world *w, pid_t id)
{
	char path[64], text[1024];
	pid_t pid, parent;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
	if (id == getpid())
		return true;
	if (shca_procfs_read(path, text, sizeof(text)) <= 0)
		return false;
	pid = number_after(text, "\nTgid:");
	parent = number_after(text, "\nPPid:");
	if (id == pid && !is_listed(w, pid) &&
	    (parent == atomic_load(&w->fabric->hdr->owner_pid) || is_listed(w, parent)))
		note_process(w, pid);
	if (is_listed(w, pid))
		add_thread(w, pid, id);
	return true;
}

/* Lists those that had only got their ids at earlier looks. */
static void list_unborn(struct world *w)
{
	uint64_t now = shca_real_now();

	for (unsigned i = 0; i < w->nunborn;) {
		if (list_new(w, w->unborn[i].id) || now - w->unborn[i].since > BIRTH_NS)
			w->unborn[i] = w->unborn[--w->nunborn];
		else
			i++;
	}
}

static void note_unborn(struct world *w, pid_t id)
{
	if (w->nunborn < MANY_IDS)
		w->unborn[w->nunborn++] = (struct unborn){id, shca_real_now()};
}

/* Lists the threads and processes that are new since the last look. */
static void refresh(struct world *w)
{
	char text[128], *p;
	unsigned long newest, was = w->newest;

	if (shca_procfs_read("/proc/loadavg", text, sizeof(text)) <= 0)
		return;
	p = strrchr(text, ' ');
	newest = p ? strtoul(p, NULL, 10) : 0;
	w->newest = newest;
	list_unborn(w);
	/* Ids begin anew at some time. */
	if (!was || newest < was || newest - was > MANY_IDS) {
		list_all(w);
		return;
	}
	for (unsigned long id = was + 1; id <= newest; id++)
		if (!list_new(w, (pid_t)id))
			note_unborn(w, (pid_t)id);
}

/* ---------------------------------------------------------------- looking */

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
	const struct shca_fabric_header *hdr = w->fabric->hdr;
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

	for (unsigned i = 0; i < w->nprocs; i++) {
		if (w->procs[i].clocked && of && w->procs[i].pid != of)
			continue;
		if (w->procs[i].clocked && computes(w, w->procs[i].pid))
			continue;
		t = cpu_time_of(w->procs[i].pid);
		if (t == UINT64_MAX)
			w->procs[i--] = w->procs[--w->nprocs];
		else
			sum += t;
	}
	return sum;
}

/* Finds the actors of all threads again if some have joined the clock since. */
static void find_actors(struct world *w)
{
	const struct shca_clock *c = &w->fabric->hdr->clock;
	uint32_t joins = atomic_load(&c->joins);

	if (joins == w->joins)
		return;
	for (unsigned i = 0; i < w->nthreads; i++)
		w->threads[i].actor = actor_of(c, w->threads[i].tid);
	for (unsigned i = 0; i < w->nprocs; i++)
		for (unsigned k = 0; k < w->nthreads; k++)
			w->procs[i].clocked |= w->threads[k].pid == w->procs[i].pid &&
					       w->threads[k].actor != SHCA_NO_ACTOR;
	for (unsigned i = 0; i < w->nthreads; i++)
		w->threads[i].clocked = is_clocked(w, w->threads[i].pid);
	w->joins = joins;
}

/* Returns true if nobody has to wait for a thread: it wants the turn, and does nothing before it
 * has the turn, or it has had the turn for a quantum and computes beside the others. */
static bool is_apart(const struct world *w, unsigned i)
{
	const struct shca_clock *c = &w->fabric->hdr->clock;
	uint32_t actor = w->threads[i].actor;

	if (actor == SHCA_NO_ACTOR || atomic_load(&c->actors[actor].tid) != w->threads[i].tid)
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

	if ((w->of && w->threads[i].clocked && w->threads[i].pid != w->of) || is_apart(w, i))
		return SLEEPS;
	n = pread(w->threads[i].stat, text, sizeof(text) - 1, 0);
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
	for (unsigned k = 0; k < w->nthreads;) {
		unsigned i = (w->from + k) % w->nthreads;

		switch (look_at(w, i)) {
		case BUSY:
			w->from = i;
			return false;
		case GONE:
			forget_thread(w, i);
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

	refresh(w);
	find_actors(w);
	cpu = cpu_time(w, w->of);
	return all_sleep(w) && cpu_time(w, w->of) == cpu;
}

bool shca_world_sleeps(struct shca_fabric *f)
{
	static struct world w;

	w.fabric = f;
	return is_quiet(&w);
}

/* Returns the CPU time (ticks) of the thread that was busy last. */
static unsigned long ticks_of_busy(const struct world *w)
{
	unsigned long user = 0, kernel = 0;
	char text[512];
	const char *p;
	ssize_t n = pread(w->threads[w->from].stat, text, sizeof(text) - 1, 0);

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

/* Returns true if the wait should be given up. `worn`: how many earlier waits in a row were. */
static bool is_in_vain(const struct world *w, struct patience *p, unsigned worn)
{
	unsigned long ticks;

	if (w->busy != 'R')
		return ++p->looks > PATIENCE_LOOKS >> worn;
	ticks = ticks_of_busy(w);
	if (p->tid != w->threads[w->from].tid) {
		p->tid = w->threads[w->from].tid;
		p->ticks = ticks;
	}
	return ticks > p->ticks &&
	       ticks - p->ticks > (unsigned long)sysconf(_SC_CLK_TCK) * PATIENCE_S >> worn;
}

static void wait_for_quiet(struct world *w)
{
	static unsigned worn;
	struct shca_clock *c = &w->fabric->hdr->clock;
	struct patience p = {0};
	uint64_t nap = NAP_NS;

	for (;;) {
		struct timespec t = {0, (long)nap};

		if (!w->of)
			atomic_store(&c->reached, 0);
		if (is_quiet(w))
			break;
		if (is_in_vain(w, &p, worn)) {
			atomic_fetch_add(&c->unquiet, 1);
			worn = worn < WORN ? worn + 1 : WORN;
			return;
		}
		nanosleep(&t, NULL);
		nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
	}
	worn = 0;
	/* Nobody knows of those that aren't listed. */
	if (w->incomplete)
		atomic_fetch_add(&c->unquiet, 1);
}

/*
 * Most of what a thread stirs are other threads of its process. The other processes in virtual time
 * are only looked at if a thread has written to a descriptor since they were quiet, or a process
 * without a clock has done something: mpirun, a shell, or one that is about to join.
 */
static void settle(struct world *w, pid_t of)
{
	struct shca_clock *c = &w->fabric->hdr->clock;

	w->of = of;
	if (of) {
		wait_for_quiet(w);
		if (!atomic_load(&c->reached) && cpu_time(w, -1) == w->around)
			return;
	}
	w->of = 0;
	atomic_fetch_add(&c->waits_for_all, 1);
	wait_for_quiet(w);
	w->around = cpu_time(w, -1);
}

static void *answer(void *arg)
{
	static struct world w;
	struct shca_clock *c;

	w.fabric = arg;
	c = &w.fabric->hdr->clock;
	for (;;) {
		uint32_t asked = atomic_load(&c->world_asked);

		if (asked == atomic_load(&c->world_done)) {
			syscall(SYS_futex, &c->world_asked, FUTEX_WAIT, asked, NULL, NULL, 0);
			continue;
		}
		settle(&w, atomic_load(&w.fabric->hdr->procs[c->world_asker].pid));
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
