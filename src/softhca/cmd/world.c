/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - waiting until each process below the launcher sleeps and has used no CPU time while
 * that was found out. Threads that wait for their turn sleep too: they have reported by then what
 * they were woken for in the real world.
 */
#define _GNU_SOURCE 1
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS      20000u /* between looks, at first */
#define NAP_MAX_NS  1000000u
#define PATIENCE_NS 2000000000u /* for a world that is never quiet; then longer and longer */
#define DEPTH       32
#define MAX_THREADS 8192
#define MAX_PROCS   1024

/* The threads of the job, each with its file in /proc, and its processes. */
struct world {
	struct shca_fabric *fabric;
	unsigned long newest; /* last pid that the kernel had given away when the lists were made */
	unsigned nthreads, nprocs;
	struct {
		pid_t tid;
		int stat;
	} threads[MAX_THREADS];
	pid_t procs[MAX_PROCS];
};

static ssize_t read_file(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, len - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* ---------------------------------------------------------------- the lists */

static void add_process(struct world *w, pid_t pid, unsigned depth);

static void add_children(struct world *w, pid_t pid, pid_t tid, unsigned depth)
{
	char path[64], text[8192], *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	for (char *p = text;; p = end) {
		long child = strtol(p, &end, 10);

		if (end == p)
			return;
		if (child != getpid())
			add_process(w, (pid_t)child, depth + 1);
	}
}

static void add_thread(struct world *w, pid_t pid, pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	fd = w->nthreads < MAX_THREADS ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	w->threads[w->nthreads].tid = tid;
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
	if (depth && w->nprocs < MAX_PROCS)
		w->procs[w->nprocs++] = pid;
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

/* Makes the lists anew if there were new threads or processes on this machine. */
static void refresh(struct world *w)
{
	char text[128], *p;
	unsigned long newest;

	if (read_file("/proc/loadavg", text, sizeof(text)) <= 0)
		return;
	p = strrchr(text, ' ');
	newest = p ? strtoul(p, NULL, 10) : 0;
	if (newest == w->newest)
		return;
	for (unsigned i = 0; i < w->nthreads; i++)
		close(w->threads[i].stat);
	w->newest = newest;
	w->nthreads = w->nprocs = 0;
	add_process(w, atomic_load(&w->fabric->hdr->owner_pid), 0);
}

/* ---------------------------------------------------------------- looking */

static uint64_t cpu_time(const struct world *w)
{
	struct timespec t;
	uint64_t sum = 0;
	clockid_t clock;

	for (unsigned i = 0; i < w->nprocs; i++) {
		if (!clock_getcpuclockid(w->procs[i], &clock) && !clock_gettime(clock, &t))
			sum += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return sum;
}

/* Returns true if a thread goes on computing beside the one with the turn: nobody waits for it. */
static bool computes(const struct shca_clock *c, pid_t tid)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&c->actors[i].tid) == tid)
			return atomic_load(&c->actors[i].state) == SHCA_ACTOR_COMPUTES;
	return false;
}

static bool is_busy(const struct world *w, unsigned i)
{
	char text[256];
	ssize_t n = pread(w->threads[i].stat, text, sizeof(text) - 1, 0);
	const char *p;

	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')');
	return p && (p[2] == 'R' || p[2] == 'D') &&
	       !computes(&w->fabric->hdr->clock, w->threads[i].tid);
}

static bool is_quiet(struct world *w)
{
	uint64_t cpu;

	refresh(w);
	cpu = cpu_time(w);
	for (unsigned i = 0; i < w->nthreads; i++)
		if (is_busy(w, i))
			return false;
	return cpu_time(w) == cpu;
}

static void wait_for_quiet(struct world *w)
{
	static uint64_t patience = PATIENCE_NS;
	uint64_t start = shca_real_now(), nap = NAP_NS;

	while (!is_quiet(w)) {
		struct timespec t = {0, (long)nap};

		if (shca_real_now() - start > patience) {
			atomic_fetch_add(&w->fabric->hdr->clock.unquiet, 1);
			patience = patience / 2 + NAP_MAX_NS;
			return;
		}
		nanosleep(&t, NULL);
		nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
	}
	patience = PATIENCE_NS;
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
		wait_for_quiet(&w);
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
