/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.c - the lists of a job's threads and processes. They are read from /proc once; then only the
 * ids that the kernel has given away since are looked at.
 */
#define _GNU_SOURCE 1
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/actors.h"
#include "procfs.h"

#define DEPTH_MAX 32 /* of processes below the launcher */
/* Time (ns) after which a thread or process with a new id is in /proc, or has ended. */
#define NEW_ID_NS 50000000u

static uint32_t actor_of(const struct shca_clock *clock, pid_t tid)
{
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&clock->actors[i].tid) == tid)
			return i;
	return SHCA_NO_ACTOR;
}

static void add_process(struct shca_job *job, pid_t pid, unsigned depth);

static void add_children(struct shca_job *job, pid_t pid, pid_t tid, unsigned depth)
{
	char path[64], text[SHCA_JOB_PROCS * sizeof("4194304")], *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (shca_procfs_read(path, text, sizeof(text)) <= 0)
		return;
	for (char *next = text;; next = end) {
		long child = strtol(next, &end, 10);

		if (end == next)
			return;
		if (child != getpid())
			add_process(job, (pid_t)child, depth + 1);
	}
}

static void note_process(struct shca_job *job, pid_t pid)
{
	job->incomplete |= job->nprocs == SHCA_JOB_PROCS;
	if (job->nprocs == SHCA_JOB_PROCS)
		return;
	job->procs[job->nprocs].clocked = false;
	job->procs[job->nprocs++].pid = pid;
}

static bool is_clocked(const struct shca_job *job, pid_t pid)
{
	for (unsigned i = 0; i < job->nprocs; i++)
		if (job->procs[i].pid == pid)
			return job->procs[i].clocked;
	return false;
}

static void add_thread(struct shca_job *job, pid_t pid, pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	errno = EMFILE;
	fd = job->nthreads < SHCA_JOB_THREADS ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	job->incomplete |= fd < 0 && (errno == EMFILE || errno == ENFILE);
	if (fd < 0)
		return;
	job->threads[job->nthreads].actor = actor_of(&job->fabric->hdr->clock, tid);
	job->threads[job->nthreads].clocked = is_clocked(job, pid);
	job->threads[job->nthreads].engine = false;
	job->threads[job->nthreads].tid = tid;
	job->threads[job->nthreads].pid = pid;
	job->threads[job->nthreads++].stat = fd;
}

static void add_process(struct shca_job *job, pid_t pid, unsigned depth)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = depth < DEPTH_MAX ? opendir(path) : NULL;
	if (!dir)
		return;
	/* The launcher itself only waits, and reaps. */
	if (depth)
		note_process(job, pid);
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		if (depth)
			add_thread(job, pid, tid);
		add_children(job, pid, tid, depth);
	}
	closedir(dir);
}

void shca_job_forget_thread(struct shca_job *job, unsigned i)
{
	close(job->threads[i].stat);
	job->threads[i] = job->threads[--job->nthreads];
}

static void list_all(struct shca_job *job)
{
	while (job->nthreads)
		shca_job_forget_thread(job, job->nthreads - 1);
	job->nprocs = job->npending = 0;
	job->incomplete = false;
	job->joins = 0;
	add_process(job, atomic_load(&job->fabric->hdr->owner_pid), 0);
}

static bool is_listed(const struct shca_job *job, pid_t pid)
{
	for (unsigned i = 0; i < job->nprocs; i++)
		if (job->procs[i].pid == pid)
			return true;
	return false;
}

static pid_t number_after(const char *text, const char *name)
{
	const char *value = strstr(text, name);

	return value ? (pid_t)strtol(value + strlen(name), NULL, 10) : 0;
}

/* Lists a thread or process that is new on this machine, if it is the job's. Returns false if /proc
 * has no such id: the thread or process has ended, or isn't there yet. */
static bool list_new(struct shca_job *job, pid_t id)
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
	if (id == pid && !is_listed(job, pid) &&
	    (parent == atomic_load(&job->fabric->hdr->owner_pid) || is_listed(job, parent)))
		note_process(job, pid);
	if (is_listed(job, pid))
		add_thread(job, pid, id);
	return true;
}

/* Lists threads and processes that had an id, but no entry in /proc, at earlier looks. */
static void list_pending(struct shca_job *job)
{
	uint64_t now = shca_real_now();

	for (unsigned i = 0; i < job->npending;) {
		if (list_new(job, job->pending[i].id) || now - job->pending[i].since > NEW_ID_NS)
			job->pending[i] = job->pending[--job->npending];
		else
			i++;
	}
}

static void note_pending(struct shca_job *job, pid_t id)
{
	if (job->npending < SHCA_JOB_IDS)
		job->pending[job->npending++] = (struct shca_job_id){id, shca_real_now()};
}

/* Lists the threads and processes that are new since the last look. */
static void list_since(struct shca_job *job)
{
	char text[128], *last;
	unsigned long last_id, previous_id = job->last_id;

	if (shca_procfs_read("/proc/loadavg", text, sizeof(text)) <= 0)
		return;
	last = strrchr(text, ' ');
	last_id = last ? strtoul(last, NULL, 10) : 0;
	job->last_id = last_id;
	list_pending(job);
	/* The kernel's ids start again from the lowest one at some time. */
	if (!previous_id || last_id < previous_id || last_id - previous_id > SHCA_JOB_IDS) {
		list_all(job);
		return;
	}
	for (unsigned long id = previous_id + 1; id <= last_id; id++)
		if (!list_new(job, (pid_t)id))
			note_pending(job, (pid_t)id);
}

/* Finds the actors of all threads again if some have joined the clock since. */
static void find_actors(struct shca_job *job)
{
	const struct shca_clock *clock = &job->fabric->hdr->clock;
	uint32_t joins = atomic_load(&clock->joins);

	if (joins == job->joins)
		return;
	for (unsigned i = 0; i < job->nthreads; i++)
		job->threads[i].actor = actor_of(clock, job->threads[i].tid);
	for (unsigned i = 0; i < job->nprocs; i++)
		for (unsigned k = 0; k < job->nthreads; k++)
			job->procs[i].clocked |= job->threads[k].pid == job->procs[i].pid &&
						 job->threads[k].actor != SHCA_NO_ACTOR;
	for (unsigned i = 0; i < job->nthreads; i++)
		job->threads[i].clocked = is_clocked(job, job->threads[i].pid);
	job->joins = joins;
}

void shca_job_forget_process(struct shca_job *job, unsigned i)
{
	job->procs[i] = job->procs[--job->nprocs];
}

void shca_job_refresh(struct shca_job *job)
{
	list_since(job);
	find_actors(job);
}
