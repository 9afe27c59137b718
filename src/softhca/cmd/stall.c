/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.c - says which thread holds a virtual clock up, and where that is: one that is stopped, the
 * one with the turn, one that computes without end, or one that waits in the real world while
 * nothing else is due.
 */
#define _GNU_SOURCE 1
#include "stall.h"

#include <stdio.h>
#include <string.h>

#include "fabric/actors.h"
#include "procfs.h"

/* Looks in the time after which a sentence is due. */
#define LOOKS 10
/* Threads that take turns without a price may also be many that start, each with much to ask of its
 * launcher. So --clock-stall is multiplied by ROUND_TIMES for them. */
#define ROUND_TIMES 6

/* Reasons why the clock is held up. */
enum cause {
	NOTHING_DUE, /* all threads wait for each other */
	ROUND,       /* threads take turns without a price */
	BUSY,        /* the clock waits until the job is quiet in the real world */
	THREAD,      /* a thread has the turn, is stopped, computes, or is out in the real world */
};

static void read_line(char *text, size_t len, const char *file, pid_t pid, pid_t tid)
{
	char path[64];

	*text = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	shca_procfs_read(path, text, len);
	text[strcspn(text, "\n")] = '\0';
}

static pid_t pid_of(const struct shca_fabric *fabric, uint32_t actor)
{
	return atomic_load(&fabric->hdr->procs[fabric->hdr->clock.actors[actor].proc].pid);
}

static bool is_stopped(const struct shca_fabric *fabric, uint32_t actor)
{
	char state = shca_procfs_state(pid_of(fabric, actor),
				       atomic_load(&fabric->hdr->clock.actors[actor].tid));

	return state == 'T' || state == 't';
}

/* Returns a thread in that state, or SHCA_NO_ACTOR. */
static uint32_t find_state(const struct shca_fabric *fabric, enum shca_actor_state state,
			   bool stopped)
{
	const struct shca_clock *clock = &fabric->hdr->clock;
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&clock->actors[i].state) == (uint32_t)state &&
		    (!stopped || is_stopped(fabric, i)))
			return i;
	return SHCA_NO_ACTOR;
}

/* Returns the thread that the others wait for, or SHCA_NO_ACTOR. A thread that was stopped lost its
 * turn, and goes on only if somebody continues it. Threads that compute or wait in the real world
 * may be none that others wait for, so they come last. */
static uint32_t find_culprit(const struct shca_fabric *fabric, bool same_turn)
{
	const struct shca_clock *clock = &fabric->hdr->clock;
	uint32_t holder = atomic_load(&clock->holder), actor;

	actor = find_state(fabric, SHCA_ACTOR_OUT, true);
	if (actor != SHCA_NO_ACTOR)
		return actor;
	/* While the clock is paced, or waits for the real world, its holder only waits on behalf of
	 * all. */
	if (holder && same_turn && !atomic_load(&clock->idle))
		return holder - 1;
	actor = find_state(fabric, SHCA_ACTOR_COMPUTES, false);
	return actor != SHCA_NO_ACTOR ? actor : find_state(fabric, SHCA_ACTOR_OUT, false);
}

/* Returns true if an actor is due that isn't only to look whether it may go on. */
static bool any_due(const struct shca_clock *clock)
{
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = 0; i < high; i++)
		if (atomic_load(&clock->due[i]) != SHCA_NEVER &&
		    atomic_load(&clock->actors[i].watches) == SHCA_WATCHES_NOTHING &&
		    atomic_load(&clock->actors[i].state) != SHCA_ACTOR_FREE)
			return true;
	return false;
}

/* Returns the reason why the clock is held up. */
static enum cause find_cause(const struct shca_clock *clock, const struct shca_stall *stall)
{
	if (stall->busy)
		return BUSY;
	if (stall->actor != SHCA_NO_ACTOR)
		return THREAD;
	return any_due(clock) ? ROUND : NOTHING_DUE;
}

static bool any_thread(const struct shca_clock *clock)
{
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&clock->actors[i].state) != SHCA_ACTOR_FREE)
			return true;
	return false;
}

/* Stores a thread's activity, as the kernel shows it. */
static void describe(char *text, size_t len, pid_t pid, pid_t tid)
{
	char wchan[64];

	switch (shca_procfs_state(pid, tid)) {
	case 'R':
		snprintf(text, len, "computes");
		break;
	case 'T':
	case 't':
		snprintf(text, len, "is stopped");
		break;
	case 0:
		snprintf(text, len, "ends");
		break;
	default:
		read_line(wchan, sizeof(wchan), "wchan", pid, tid);
		snprintf(text, len, "waits in the kernel%s%s%s", wchan[0] > '0' ? " (" : "",
			 wchan[0] > '0' ? wchan : "", wchan[0] > '0' ? ")" : "");
		break;
	}
}

static void report_thread(const struct shca_fabric *fabric, const struct shca_stall *stall,
			  double at)
{
	const struct shca_actor *actor = &fabric->hdr->clock.actors[stall->actor];
	pid_t pid = pid_of(fabric, stall->actor), tid = atomic_load(&actor->tid);
	char what[128], comm[32];

	tid = tid ? tid : pid;
	describe(what, sizeof(what), pid, tid);
	read_line(comm, sizeof(comm), "comm", pid, tid);
	dprintf(stall->err,
		"softhca: Virtual time is held up at %.9f s: thread %d of process %d (%s) %s; its "
		"last call was of kind %s. Look at all threads with softhca stat.\n",
		at, (int)tid, (int)pid, comm, what,
		shca_call_names[atomic_load(&actor->where) % SHCA_CALLS]);
}

static void report(const struct shca_fabric *fabric, const struct shca_stall *stall,
		   enum cause cause)
{
	const struct shca_clock *clock = &fabric->hdr->clock;
	double at = (double)(stall->now - clock->zero) / 1e9;
	char what[128], comm[32];
	pid_t busy = atomic_load(&clock->world_busy);

	switch (cause) {
	case NOTHING_DUE:
		dprintf(stall->err,
			"softhca: Virtual time stands still at %.9f s: all threads wait, and "
			"nothing is due. Look at them with softhca stat.\n",
			at);
		break;
	case ROUND:
		dprintf(stall->err,
			"softhca: Virtual time stands still at %.9f s: its threads take turns in "
			"calls that cost no time. Look at them with softhca stat.\n",
			at);
		break;
	case BUSY:
		describe(what, sizeof(what), busy, busy);
		read_line(comm, sizeof(comm), "comm", busy, busy);
		dprintf(stall->err,
			"softhca: Virtual time stands still at %.9f s until the job is quiet in "
			"the real world: thread %d (%s) %s. Look at it with ps -L.\n",
			at, (int)busy, comm, what);
		break;
	case THREAD:
		report_thread(fabric, stall, at);
		break;
	}
}

/* Notes when the time, and what holds the clock up, have changed since the last look. */
static void note_changes(struct shca_stall *stall, const struct shca_stall *was)
{
	bool passes = stall->now != was->now && stall->paced == was->paced;

	if (passes) {
		stall->stands_since = stall->looked;
		stall->said_round = false;
	}
	if (passes || stall->actor != was->actor || stall->turns != was->turns) {
		stall->since = stall->looked;
		stall->said = false;
	}
}

/* Returns true if the clock has been held up for so long that it is to be said. While the machine
 * is busy, one of the threads that take turns seems to keep its turn at some looks. */
static bool is_long(const struct shca_stall *stall, enum cause cause, uint64_t patience)
{
	return cause == ROUND ? stall->looked - stall->stands_since >= patience * ROUND_TIMES
			      : stall->looked - stall->since >= patience;
}

void shca_stall_look(const struct shca_fabric *fabric, struct shca_stall *stall)
{
	const struct shca_clock *clock = &fabric->hdr->clock;
	uint64_t patience = (uint64_t)shca_opt(fabric, SHCA_O_CLOCK_STALL);
	struct shca_stall was = *stall;
	enum cause cause;
	bool *said;

	stall->looked = shca_real_now();
	if (stall->looked - was.looked < patience / LOOKS) {
		stall->looked = was.looked;
		return;
	}
	stall->now = atomic_load(&clock->now);
	stall->paced = atomic_load(&clock->paced);
	stall->given = atomic_load(&clock->turns);
	stall->question = atomic_load(&clock->world_asked);
	stall->busy = stall->question == was.question &&
		      stall->question != atomic_load(&clock->world_done);
	stall->actor = find_culprit(fabric, stall->given == was.given);
	stall->turns =
		stall->actor == SHCA_NO_ACTOR ? 0 : atomic_load(&clock->actors[stall->actor].turns);
	note_changes(stall, &was);
	cause = find_cause(clock, stall);
	said = cause == ROUND ? &stall->said_round : &stall->said;
	if (*said || !is_long(stall, cause, patience) || !any_thread(clock))
		return;
	*said = true;
	report(fabric, stall, cause);
}
