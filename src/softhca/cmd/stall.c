/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall.c - says which thread holds a virtual clock up, and where that is: the one with the turn,
 * one that computes without end, or one that waits in the real world while nothing else is due.
 */
#define _GNU_SOURCE 1
#include "stall.h"

#include <stdio.h>
#include <string.h>

#include "fabric/actors.h"
#include "procfs.h"

#define LOOK_EACH_NS 1000000000u
#define LONG_NS      10000000000u

static uint32_t find_state(const struct shca_clock *c, enum shca_actor_state state)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&c->actors[i].state) == state)
			return i;
	return SHCA_NO_ACTOR;
}

/* Returns the thread that the others wait for, or SHCA_NO_ACTOR. Others may get the turn meanwhile,
 * to look, but no time passes then. */
static uint32_t find_culprit(const struct shca_clock *c, bool same_turn)
{
	uint32_t holder = atomic_load(&c->holder), actor = find_state(c, SHCA_ACTOR_COMPUTES);

	if (actor != SHCA_NO_ACTOR)
		return actor;
	/* While the clock is paced, its holder only waits on behalf of all. */
	if (holder && same_turn && !atomic_load(&c->idle))
		return holder - 1;
	return find_state(c, SHCA_ACTOR_OUT);
}

static bool any_thread(const struct shca_clock *c)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load(&c->actors[i].state) != SHCA_ACTOR_FREE)
			return true;
	return false;
}

static void read_line(char *text, size_t len, const char *file, pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	shca_procfs_read(path, text, len);
	text[strcspn(text, "\n")] = '\0';
}

/* Stores what a thread does, as the kernel shows it. */
static void describe(char *text, size_t len, pid_t pid, pid_t tid)
{
	char stat[512], wchan[64], *state;

	read_line(stat, sizeof(stat), "stat", pid, tid);
	read_line(wchan, sizeof(wchan), "wchan", pid, tid);
	state = strrchr(stat, ')');
	switch (state ? state[2] : 0) {
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
		snprintf(text, len, "waits in the kernel%s%s%s", wchan[0] > '0' ? " (" : "",
			 wchan[0] > '0' ? wchan : "", wchan[0] > '0' ? ")" : "");
		break;
	}
}

static void report(const struct shca_fabric *f, const struct shca_stall *s)
{
	const struct shca_clock *c = shca_clock_of(f);
	char what[128], comm[32];
	double at = (double)(s->now - c->zero) / 1e9;
	const struct shca_actor *a;
	pid_t pid, tid;

	if (s->actor == SHCA_NO_ACTOR) {
		dprintf(s->err,
			"softhca: Virtual time stands still at %.9f s: all threads wait, and "
			"nothing is due. Look at them with softhca stat.\n",
			at);
		return;
	}
	a = &c->actors[s->actor];
	pid = atomic_load(&f->hdr->procs[a->proc].pid);
	tid = atomic_load(&a->tid) ? atomic_load(&a->tid) : pid;
	describe(what, sizeof(what), pid, tid);
	read_line(comm, sizeof(comm), "comm", pid, tid);
	dprintf(s->err,
		"softhca: Virtual time is held up at %.9f s: thread %d of process %d (%s) %s; its "
		"last call was of kind %s. Look at all threads with softhca stat.\n",
		at, (int)tid, (int)pid, comm, what,
		shca_call_names[atomic_load(&a->where) % SHCA_CALLS]);
}

void shca_stall_look(const struct shca_fabric *f, struct shca_stall *s)
{
	const struct shca_clock *c = shca_clock_of(f);
	struct shca_stall was = *s;

	s->looked = shca_real_now();
	if (s->looked - was.looked < LOOK_EACH_NS) {
		s->looked = was.looked;
		return;
	}
	s->now = atomic_load(&c->now);
	s->paced = atomic_load(&c->paced);
	s->given = atomic_load(&c->turns);
	s->actor = find_culprit(c, s->given == was.given);
	s->turns = s->actor == SHCA_NO_ACTOR ? 0 : atomic_load(&c->actors[s->actor].turns);
	if ((s->now != was.now && s->paced == was.paced) || s->actor != was.actor ||
	    s->turns != was.turns) {
		s->since = s->looked;
		s->said = false;
	}
	if (s->said || s->looked - s->since < LONG_NS || !any_thread(c))
		return;
	s->said = true;
	report(f, s);
}
