/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.c - process slots: taking one, giving it back, and asking the kernel whether a process still
 * runs.
 */
#define _GNU_SOURCE 1
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "actors.h"
#include "arena.h"
#include "epoch.h"
#include "text.h"
#include "event.h"
#include "reap.h"

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Fields of /proc/PID/stat. */
struct pid_stat {
	char comm[16];
	char state;
	long threads;
	uint64_t start_time;
	uint64_t image; /* changes when the process replaces its program; 0 = it can't be seen */
};

static void forked(void)
{
	shca_epoch_reset();
	shca_arena_reset();
	shca_event_reset();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* Returns the text of field `n` (3 is the first after the name) in what follows the name. */
static const char *field(const char *rest, int n)
{
	while (n-- > 3 && rest) {
		rest = strchr(rest, ' ');
		if (rest)
			rest++;
	}
	return rest ? rest : "";
}

/*
 * Returns where the program and its stack are, in one number, which only exec changes. The kernel
 * shows these fields only to processes that may trace this one, and hides those of a process that
 * is ending or whose first thread has ended. (Without address randomisation a program that replaces
 * itself by itself looks unchanged; it gives up its former slot when it opens a device.)
 */
static uint64_t image_of(const char *rest)
{
	static const int fields[] = {26, 27, 28, 45, 46}; /* code, stack, data */
	uint64_t image = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t n = strtoull(field(rest, fields[i]), NULL, 10);

		if (n <= 1) /* the value that is shown instead */
			return 0;
		image = (image ^ n) * 0x9e3779b97f4a7c15ULL;
	}
	return image;
}

/* Returns 0, -ESRCH (no such process), or another -errno if /proc can't tell. */
static int read_stat(pid_t pid, struct pid_stat *st)
{
	char path[32], text[768], *open_paren, *close_paren, *end;
	ssize_t n;
	int fd, rc;

	end = shca_put_number(shca_put_text(path, "/proc/"), (uint64_t)pid);
	shca_put_text(end, "/stat");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text) - 1);
	rc = n < 0 ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	text[n] = '\0';
	/* The name may hold anything, parentheses and spaces too. */
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren[1] != ' ')
		return -EIO;
	*close_paren = '\0';
	strncpy(st->comm, open_paren + 1, sizeof(st->comm) - 1);
	st->comm[sizeof(st->comm) - 1] = '\0';
	st->state = close_paren[2];
	st->threads = strtol(field(close_paren + 2, 20), NULL, 10);
	st->start_time = strtoull(field(close_paren + 2, 22), NULL, 10);
	st->image = image_of(close_paren + 2);
	return 0;
}

bool shca_proc_running(const struct shca_fabric *fabric, unsigned proc)
{
	const struct shca_proc *record = &fabric->hdr->procs[proc];
	pid_t pid = atomic_load(&record->pid);
	struct pid_stat st;
	int rc;

	if (pid <= 0)
		return false;
	rc = read_stat(pid, &st);
	if (rc == -ESRCH)
		return false;
	if (rc) /* for example, out of descriptors: better to reap too late than too early */
		return !kill(pid, 0) || errno != ESRCH;
	if (st.start_time != record->start_time ||
	    (st.image && record->image && st.image != record->image))
		return false;
	/* A first thread that ended by itself looks like a zombie while other threads of its
	 * process go on. */
	return st.state != 'X' && (st.state != 'Z' || st.threads > 1);
}

/* Tells the monitor, if there is one, to watch a new process. */
static void say(const struct shca_fabric *fabric, uint32_t slot)
{
	char path[sizeof(fabric->hdr->dir) + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/monitor", fabric->hdr->dir);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	/* A monitor that doesn't read this finds the process when it looks at the table. */
	if (write(fd, &slot, sizeof(slot)) != sizeof(slot))
		(void)errno;
	close(fd);
}

/* Ends the use of a slot, and reaps it. */
static void give_up(struct shca_fabric *fabric, unsigned proc)
{
	struct shca_proc *record = &fabric->hdr->procs[proc];
	uint64_t s;

	shca_lock(&fabric->hdr->ctl_lock);
	s = atomic_load(&record->state);
	if ((s & 0xff) == SHCA_PROC_ALIVE)
		shca_proc_set_state(record, SHCA_PROC_REAPING);
	shca_unlock(&fabric->hdr->ctl_lock);
	shca_reap(fabric, proc);
}

/* Reaps the slot that this process had before it replaced its image. */
static void reap_former_self(struct shca_fabric *fabric, const struct pid_stat *me)
{
	unsigned i, e;

	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *proc = &fabric->hdr->procs[i];
		bool was_inside;

		if ((atomic_load(&proc->state) & 0xff) == SHCA_PROC_FREE ||
		    atomic_load(&proc->pid) != getpid() || proc->start_time != me->start_time)
			continue;
		/* The threads that were inside an epoch are gone, although the process seems to
		 * run. */
		was_inside = shca_proc_is_inside(proc);
		for (e = 0; e < SHCA_MAX_EXEC; e++)
			if (atomic_load(&proc->exec[e].seq) & 1)
				atomic_fetch_add(&proc->exec[e].seq, 1);
		if (was_inside)
			shca_proc_sender_gone(fabric);
		give_up(fabric, i);
	}
}

/* Returns the free slot that was used least, so that references to a slot's last process are
 * long gone when it is used again. Needs ctl_lock. */
static int free_slot(const struct shca_fabric *fabric)
{
	uint64_t least = UINT64_MAX;
	int i, best = -EAGAIN;

	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		uint64_t s = atomic_load(&fabric->hdr->procs[i].state);

		if ((s & 0xff) == SHCA_PROC_FREE && s < least) {
			least = s;
			best = i;
		}
	}
	return best;
}

static int take_slot(struct shca_fabric *fabric, const struct pid_stat *me)
{
	struct shca_proc *proc;
	int slot;

	shca_lock(&fabric->hdr->ctl_lock);
	slot = free_slot(fabric);
	if (slot >= 0) {
		proc = &fabric->hdr->procs[slot];
		atomic_store(&proc->pid, getpid());
		proc->start_time = me->start_time;
		proc->image = me->image;
		shca_lock_init(&proc->alive_lock);
		proc->node = 0;
		memcpy(proc->comm, me->comm, sizeof(proc->comm));
		atomic_store(&proc->arena_used, 0);
		atomic_store(&proc->pinned, 0);
		atomic_store(&proc->owes, 0);
		atomic_store(&proc->sleeping, 0);
		atomic_store(&proc->attention, 0);
		for (unsigned w = 0; w < SHCA_MAX_PROCS / 64; w++) {
			atomic_store(&proc->copy_asked[w], 0);
			atomic_store(&proc->attached[w], 0);
		}
		/* Stored last: if this process dies before, the slot stays free. */
		atomic_store(&proc->state,
			     ((atomic_load(&proc->state) >> 8) + 1) << 8 | SHCA_PROC_ALIVE);
	}
	shca_unlock(&fabric->hdr->ctl_lock);
	return slot;
}

int32_t shca_proc_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					    "SLURM_PROCID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *s = getenv(names[i]);

		if (s && *s >= '0' && *s <= '9')
			return (int32_t)(strtoul(s, NULL, 10) & INT32_MAX);
	}
	return -1;
}

unsigned shca_proc_job(void)
{
	const char *name = getenv("PMIX_NAMESPACE"), *at = name ? strrchr(name, '@') : NULL;
	unsigned long number;
	char *end;

	if (!name)
		return 0;
	/* PRRTE's names end in "@1", "@2" and so on. Open MPI 4's names are numbers, of which the
	 * lower half counts. */
	number = strtoul(at ? at + 1 : name, &end, 10);
	return *end || !number ? 0 : (unsigned)(number & UINT16_MAX) - 1;
}

int shca_proc_attach(struct shca_fabric *fabric)
{
	struct pid_stat me;
	int slot, rc;

	pthread_once(&fork_once, watch_forks);
	rc = read_stat(getpid(), &me);
	if (rc)
		return rc;
	reap_former_self(fabric, &me);
	slot = take_slot(fabric, &me);
	if (slot == -EAGAIN) {
		shca_reap_all(fabric);
		slot = take_slot(fabric, &me);
	}
	if (slot < 0)
		return slot;
	shca_arena_reset();
	shca_epoch_bind(&fabric->hdr->procs[slot]);
	say(fabric, (uint32_t)slot);
	return slot;
}

void shca_proc_detach(struct shca_fabric *fabric, unsigned proc)
{
	/* Done first: the end of a thread must not touch an executor that is another process's
	 * already. */
	shca_epoch_bind(NULL);
	give_up(fabric, proc);
}

void shca_proc_segments_gone(struct shca_fabric *fabric, unsigned proc)
{
	const struct shca_proc *owner = &fabric->hdr->procs[proc];

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *record = &fabric->hdr->procs[i];

		if (!(atomic_load(&owner->attached[i / 64]) >> (i % 64) & 1))
			continue;
		atomic_fetch_or(&record->attention, SHCA_ATTENTION_MR);
		shca_proc_notify(fabric, record);
	}
}

bool shca_proc_is_inside(const struct shca_proc *proc)
{
	for (unsigned i = 0; i < SHCA_MAX_EXEC; i++)
		if (atomic_load(&proc->exec[i].seq) & 1)
			return true;
	return false;
}

void shca_proc_sender_gone(struct shca_fabric *fabric)
{
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *record = &fabric->hdr->procs[i];

		if (!shca_proc_alive(fabric, i))
			continue;
		atomic_fetch_or(&record->attention, SHCA_ATTENTION_QP);
		shca_proc_notify(fabric, record);
	}
}

void shca_proc_notify(struct shca_fabric *fabric, struct shca_proc *proc)
{
	struct shca_clock *clock = shca_fabric_clock(fabric);

	/* The adapter is due now. A reaper has no turn. */
	if (clock) {
		shca_actors_lock(fabric);
		shca_actor_sooner(clock, (uint32_t)(proc - fabric->hdr->procs),
				  atomic_load(&clock->now));
		shca_actors_unlock(fabric);
	}
	shca_proc_wake(proc);
}

void shca_proc_wake(struct shca_proc *proc)
{
	/* seq_cst on both: either the engine sees the new value, or this thread sees it
	 * sleeping. */
	atomic_fetch_add(&proc->wake_word, 1);
	if (atomic_load(&proc->sleeping))
		syscall(SYS_futex, &proc->wake_word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
