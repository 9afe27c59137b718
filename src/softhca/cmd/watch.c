/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.c - watching the thread that has the turn of a virtual clock. A thread that sleeps in the
 * kernel waits for the real world in a call that no library stands in front of, or was stopped: it
 * loses its turn. A thread that computed for a quantum without a sync point keeps its CPU, and
 * others run beside it.
 */
#define _GNU_SOURCE 1
#include "watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "fabric/actors.h"
#include "fabric/proc.h"
#include "procfs.h"
#include "world.h"

/* Number of looks at which a thread has to sleep: it may be between two system calls. */
#define ASLEEP 3
/* Number of looks after which that is believed although others of the job never sleep. */
#define FOREVER 2000
/* Looks at the turn between two looks at the real world, while nothing is due. */
#define LOOK_AROUND 5
/* Time (ms) that the kernel may take to end a process that was killed. */
#define DEATH_MS 2000
/* The quantum, and where computing takes no time. */
#define QUANTUM_NS      10000000u
#define QUANTUM_FREE_NS 500000000u

/* Returns the state letter of a thread as in /proc, or 0 if there is no such thread. Stores its CPU
 * time (ns). */
static char look_at(pid_t pid, pid_t tid, uint64_t *cpu)
{
	char path[64], text[512];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (shca_procfs_read(path, text, sizeof(text)) > 0)
		*cpu = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (shca_procfs_read(path, text, sizeof(text)) <= 0)
		return 0;
	p = strrchr(text, ')');
	return p ? p[2] : 0;
}

/* Takes the turn away, if that actor still has it and has had no other since. */
static void take_away(struct shca_fabric *f, const struct shca_watch *w,
		      enum shca_actor_state state)
{
	struct shca_clock *c = &f->hdr->clock;
	uint32_t actor = w->holder - 1;

	shca_clock_lock(f);
	if (atomic_load(&c->holder) == w->holder && atomic_load(&c->turns) == w->turns &&
	    !atomic_load(&c->idle)) {
		atomic_store(&c->due[actor], SHCA_NEVER);
		atomic_store(&c->actors[actor].state, state);
		atomic_fetch_add(&c->taken, 1);
		shca_actors_pass(f);
	}
	shca_clock_unlock(f);
}

/* Returns the CPU time (ns) that a thread may use without a sync point. */
static uint64_t quantum(const struct shca_fabric *f)
{
	uint64_t ns = (uint64_t)shca_opt(f, SHCA_O_CLOCK_QUANTUM);

	if (ns)
		return ns;
	return shca_opt(f, SHCA_O_CLOCK_CPU) ? QUANTUM_NS : QUANTUM_FREE_NS;
}

/* Begins to watch a turn. Returns true if it is the turn of the last look. */
static bool is_same(const struct shca_clock *c, struct shca_watch *w)
{
	uint32_t holder = atomic_load(&c->holder);
	uint64_t turns = atomic_load(&c->turns), syncs = atomic_load(&c->syncs);

	if (holder && holder == w->holder && turns == w->turns && syncs == w->syncs)
		return true;
	*w = (struct shca_watch){
		.holder = holder, .turns = turns, .syncs = syncs, .looks = w->looks};
	return false;
}

/* While nothing is due, the real world may do something that no thread here has caused. */
static void look_around(struct shca_fabric *f, struct shca_watch *w)
{
	struct shca_clock *c = &f->hdr->clock;

	if ((w->holder && !atomic_load(&c->pacing)) || ++w->looks % LOOK_AROUND)
		return;
	shca_clock_lock(f);
	shca_actors_look(c, SHCA_NO_PROC, SHCA_WATCHES_PROCESS);
	if (!atomic_load(&c->holder))
		shca_actors_pass(f);
	shca_clock_unlock(f);
}

/* Returns true if the thread sleeps, and nobody is about to wake it: while others of the job run,
 * one of them may hold a lock that the thread waits for. */
static bool is_asleep(struct shca_fabric *f, const struct shca_watch *w)
{
	return w->asleep >= FOREVER || (w->asleep >= ASLEEP && shca_world_sleeps(f));
}

void shca_watch_look(struct shca_fabric *f, struct shca_watch *w)
{
	struct shca_clock *c = &f->hdr->clock;
	bool same = is_same(c, w);
	const struct shca_actor *a;
	uint64_t cpu = 0;
	pid_t pid, tid;
	char state;

	look_around(f, w);
	if (!w->holder)
		return;
	a = &c->actors[w->holder - 1];
	pid = atomic_load(&f->hdr->procs[a->proc].pid);
	tid = atomic_load(&a->tid) ? atomic_load(&a->tid) : pid;
	state = look_at(pid, tid, &cpu);
	if (!same) {
		w->cpu = cpu;
		return;
	}
	/* The thread that gave the turn may have been killed before it woke the actor. */
	if (atomic_load(&a->granted))
		shca_actor_wake(f, w->holder - 1);
	/* One that waits for a disk waits for no other thread. */
	w->asleep = state == 'R' || state == 'D' ? 0 : w->asleep + 1;
	if (atomic_load(&c->idle) || (!atomic_load(&a->tid) && state != 'T' && state != 't')) {
		w->asleep = 0;
		return;
	}
	if (is_asleep(f, w))
		take_away(f, w, SHCA_ACTOR_OUT);
	else if (cpu - w->cpu > quantum(f))
		take_away(f, w, SHCA_ACTOR_COMPUTES);
}

/* Kills the process of a slot, and waits for its end. Returns true if there was one. */
static bool end_process(const struct shca_fabric *f, unsigned slot)
{
	struct pollfd end = {.events = POLLIN};
	bool runs;

	if (!shca_proc_alive(f, slot))
		return false;
	end.fd = pidfd_open(atomic_load(&f->hdr->procs[slot].pid), 0);
	if (end.fd < 0)
		return false;
	/* If the process still runs now, the descriptor is its own and not that of a later process
	 * with its pid. */
	runs = shca_proc_running(f, slot) && !pidfd_send_signal(end.fd, SIGKILL, NULL, 0);
	if (runs)
		poll(&end, 1, DEATH_MS);
	close(end.fd);
	return runs;
}

unsigned shca_watch_end(const struct shca_fabric *f)
{
	unsigned n = 0;

	for (unsigned i = 0; shca_clock_of(f) && i < SHCA_MAX_PROCS; i++)
		n += end_process(f, i);
	return n;
}
