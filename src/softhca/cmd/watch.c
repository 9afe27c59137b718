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

/* Looks in a row that find a thread asleep before it loses its turn: a single one may come between
 * two system calls. */
#define ASLEEP_LOOKS 3
/* Looks in a row after which the thread loses its turn although others of the job never sleep. */
#define ASLEEP_LOOKS_MAX 2000
/* Looks at the turn between two looks at the real world, while nothing is due. */
#define WORLD_LOOK_INTERVAL 5
/* Time (ms) that the kernel may take to end a process that was killed. */
#define KILL_TIMEOUT_MS 2000
/* CPU time (ns) that a thread may use without a sync point; the second one is for clocks on which
 * computing takes no time. */
#define QUANTUM_NS      10000000u
#define QUANTUM_FREE_NS 500000000u

/* Returns the state letter of a thread as in /proc, or 0 if there is no such thread. Stores its CPU
 * time (ns). */
static char thread_state(pid_t pid, pid_t tid, uint64_t *cpu)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (shca_procfs_read(path, text, sizeof(text)) > 0)
		*cpu = strtoull(text, NULL, 10);
	return shca_procfs_state(pid, tid);
}

/* Takes the turn from the watched actor, unless the actor has given it away since. */
static void take_turn_away(struct shca_fabric *fabric, const struct shca_watch *watch,
			   enum shca_actor_state state)
{
	struct shca_clock *clock = &fabric->hdr->clock;
	uint32_t index = watch->holder - 1;

	shca_actors_lock(fabric);
	if (atomic_load(&clock->holder) == watch->holder &&
	    atomic_load(&clock->turns) == watch->turns && !atomic_load(&clock->idle)) {
		atomic_store(&clock->due[index], SHCA_NEVER);
		atomic_store(&clock->actors[index].state, state);
		atomic_fetch_add(&clock->taken, 1);
		shca_actors_pass(fabric);
	}
	shca_actors_unlock(fabric);
}

/* Returns the CPU time (ns) that a thread may use without a sync point. */
static uint64_t quantum(const struct shca_fabric *fabric)
{
	uint64_t ns = (uint64_t)shca_opt(fabric, SHCA_O_CLOCK_QUANTUM);

	if (ns)
		return ns;
	return shca_opt(fabric, SHCA_O_CLOCK_CPU) ? QUANTUM_NS : QUANTUM_FREE_NS;
}

/* Begins to watch a turn. Returns true if it is the turn of the last look. */
static bool follow_turn(const struct shca_clock *clock, struct shca_watch *watch)
{
	uint32_t holder = atomic_load(&clock->holder);
	uint64_t turns = atomic_load(&clock->turns), syncs = atomic_load(&clock->syncs);

	if (holder && holder == watch->holder && turns == watch->turns && syncs == watch->syncs)
		return true;
	*watch = (struct shca_watch){
		.holder = holder, .turns = turns, .syncs = syncs, .looks = watch->looks};
	return false;
}

/* Lets threads that watch something look at times while nothing is due: the real world may do
 * something that no thread here has caused. */
static void look_at_world(struct shca_fabric *fabric, struct shca_watch *watch)
{
	struct shca_clock *clock = &fabric->hdr->clock;

	if ((watch->holder && !atomic_load(&clock->pacing)) || ++watch->looks % WORLD_LOOK_INTERVAL)
		return;
	shca_actors_lock(fabric);
	shca_actors_look(clock, SHCA_WATCHES_PROCESS);
	if (!atomic_load(&clock->holder))
		shca_actors_pass(fabric);
	shca_actors_unlock(fabric);
}

/* Returns true if the thread sleeps, and no other thread is about to wake it: while others of the
 * job run, one of them may hold a lock that the thread waits for. */
static bool is_asleep(struct shca_fabric *fabric, const struct shca_watch *watch)
{
	return watch->asleep >= ASLEEP_LOOKS_MAX ||
	       (watch->asleep >= ASLEEP_LOOKS && shca_world_sleeps(fabric));
}

void shca_watch_look(struct shca_fabric *fabric, struct shca_watch *watch)
{
	struct shca_clock *clock = &fabric->hdr->clock;
	bool same = follow_turn(clock, watch);
	const struct shca_actor *actor;
	uint64_t cpu = 0;
	pid_t pid, tid;
	char state;

	look_at_world(fabric, watch);
	if (!watch->holder)
		return;
	actor = &clock->actors[watch->holder - 1];
	pid = atomic_load(&fabric->hdr->procs[actor->proc].pid);
	tid = atomic_load(&actor->tid) ? atomic_load(&actor->tid) : pid;
	state = thread_state(pid, tid, &cpu);
	if (!same) {
		watch->cpu = cpu;
		return;
	}
	/* The thread that gave the turn may have been killed before it woke the actor. */
	if (atomic_load(&actor->granted))
		shca_actor_wake(fabric, watch->holder - 1);
	/* A thread that waits for a disk waits for no other thread. */
	watch->asleep = state == 'R' || state == 'D' ? 0 : watch->asleep + 1;
	if (atomic_load(&clock->idle) ||
	    (!atomic_load(&actor->tid) && state != 'T' && state != 't')) {
		/* The CPU time of a wait for the real world, which serves all threads, isn't the
		 * program's. */
		watch->cpu = cpu;
		watch->asleep = 0;
		return;
	}
	if (is_asleep(fabric, watch))
		take_turn_away(fabric, watch, SHCA_ACTOR_OUT);
	else if (cpu - watch->cpu > quantum(fabric))
		take_turn_away(fabric, watch, SHCA_ACTOR_COMPUTES);
}

/* Kills the process of a slot, and waits for its end. Returns true if there was one. */
static bool end_process(const struct shca_fabric *fabric, unsigned slot)
{
	struct pollfd pidfd = {.events = POLLIN};
	bool runs;

	if (!shca_proc_alive(fabric, slot))
		return false;
	pidfd.fd = pidfd_open(atomic_load(&fabric->hdr->procs[slot].pid), 0);
	if (pidfd.fd < 0)
		return false;
	/* If the process still runs now, the descriptor is its own and not that of a later process
	 * with its pid. */
	runs = shca_proc_running(fabric, slot) && !pidfd_send_signal(pidfd.fd, SIGKILL, NULL, 0);
	if (runs)
		poll(&pidfd, 1, KILL_TIMEOUT_MS);
	close(pidfd.fd);
	return runs;
}

unsigned shca_watch_end(const struct shca_fabric *fabric)
{
	unsigned ended = 0;

	for (unsigned i = 0; shca_fabric_clock(fabric) && i < SHCA_MAX_PROCS; i++)
		ended += end_process(fabric, i);
	return ended;
}
