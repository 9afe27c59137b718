/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.c - waits until the real world has done what this job asked of it: until each process
 * below the launcher sleeps, and has slept all the time between two looks. Threads that wait for
 * their turn sleep too, and what they were woken for in the real world they have said by then.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define NAP_NS      20000u /* between looks, at first */
#define NAP_MAX_NS  1000000u
#define PATIENCE_NS 2000000000u /* for a world that is never quiet; then less and less */
#define DEPTH       32

struct look {
	struct shca_fabric *fabric;
	pid_t me; /* the thread that looks */
	bool busy;
	uint64_t switches; /* over all threads: how often they were on a CPU */
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

/* Returns whether a thread goes on computing beside the one with the turn: it is not waited for. */
static bool computes(const struct shca_clock *c, pid_t tid)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&c->actors[i].tid) == tid)
			return atomic_load(&c->actors[i].state) == SHCA_ACTOR_COMPUTES;
	return false;
}

static void look_at_thread(struct look *l, pid_t pid, pid_t tid)
{
	char path[64], text[512];
	const char *p;

	if (tid == l->me)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	p = strrchr(text, ')');
	if (p && (p[2] == 'R' || p[2] == 'D') && !computes(&l->fabric->hdr->clock, tid))
		l->busy = true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	p = strrchr(text, ' ');
	l->switches += p ? strtoull(p, NULL, 10) + (uint64_t)tid : 0;
}

static void look_at_process(struct look *l, pid_t pid, unsigned depth);

static void look_at_children(struct look *l, pid_t pid, pid_t tid, unsigned depth)
{
	char path[64], text[4096], *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	for (char *p = text;; p = end) {
		long child = strtol(p, &end, 10);

		if (end == p || l->busy)
			return;
		look_at_process(l, (pid_t)child, depth + 1);
	}
}

static void look_at_process(struct look *l, pid_t pid, unsigned depth)
{
	const struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = depth < DEPTH ? opendir(path) : NULL;
	while (d && !l->busy && (e = readdir(d))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		/* The launcher itself only waits, and reaps. */
		if (depth)
			look_at_thread(l, pid, tid);
		look_at_children(l, pid, tid, depth);
	}
	if (d)
		closedir(d);
}

static struct look look(struct shca_fabric *f)
{
	struct look l = {.fabric = f, .me = (pid_t)syscall(SYS_gettid)};

	look_at_process(&l, atomic_load(&f->hdr->owner_pid), 0);
	return l;
}

void shca_clock_settle(struct shca_fabric *f)
{
	static _Atomic uint64_t patience = PATIENCE_NS;
	uint64_t start = shca_real_now(), nap = NAP_NS;
	struct look was = look(f), is;

	for (;;) {
		struct timespec t = {0, (long)nap};

		if (!was.busy) {
			is = look(f);
			if (!is.busy && is.switches == was.switches) {
				atomic_store(&patience, PATIENCE_NS);
				return;
			}
			was = is;
			if (!is.busy)
				continue;
		}
		if (shca_real_now() - start > atomic_load(&patience))
			break;
		nanosleep(&t, NULL);
		nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
		was = look(f);
	}
	atomic_fetch_add(&f->hdr->clock.unquiet, 1);
	atomic_store(&patience, atomic_load(&patience) / 2 + NAP_MAX_NS);
}
