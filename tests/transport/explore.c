/* SPDX-License-Identifier: BSD-3-Clause */
#include "explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 4096
#define WORDS ((ACTS + 63) / 64)

struct actset {
	uint64_t w[WORDS];
};

/* A point in the schedule where an action was chosen. */
struct choice {
	uint16_t act;
	uint16_t nth; /* its place among the possible actions, for explore_text() */
	bool more;    /* other actions have to be tried here */
	struct actset possible, sleep, done;
};

struct explore {
	int depth;  /* choices of this schedule */
	int prefix; /* of these, the choices made before the schedule began */
	struct choice choices[DEPTH];
};

static int by_number(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static int actions(struct world *world, uint16_t acts[ACTS])
{
	int n = world_actions(world, acts);

	qsort(acts, (size_t)n, sizeof(acts[0]), by_number);
	return n;
}

static void add(struct actset *actset, int act)
{
	actset->w[act / 64] |= 1ull << act % 64;
}

static bool has(const struct actset *actset, int act)
{
	return actset->w[act / 64] >> act % 64 & 1;
}

unsigned long explore_size(void)
{
	return sizeof(struct explore);
}

/* Collects the actions that sleep after the last choice: those that were tried before and that the
 * choice doesn't affect. */
static void inherit(const struct explore *explore, const struct world *world, struct actset *sleep)
{
	const struct choice *choice;
	uint32_t touched;

	memset(sleep, 0, sizeof(*sleep));
	if (!explore->depth)
		return;
	choice = &explore->choices[explore->depth - 1];
	touched = world_touches(world, choice->act);
	for (int word = 0; word < WORDS; word++) {
		uint64_t bits = choice->sleep.w[word] | choice->done.w[word];

		for (; bits; bits &= bits - 1) {
			int act = word * 64 + __builtin_ctzll(bits);

			if (act != choice->act && !(world_touches(world, act) & touched))
				add(sleep, act);
		}
	}
}

/* Takes the first action that is awake and was not tried. Returns false if there is none. */
static bool choose(struct choice *choice, const uint16_t *acts, int n)
{
	bool found = false;

	choice->more = false;
	for (int i = 0; i < n; i++) {
		if (has(&choice->sleep, acts[i]) || has(&choice->done, acts[i]))
			continue;
		if (found) {
			choice->more = true;
			break;
		}
		choice->act = acts[i];
		choice->nth = (uint16_t)i;
		found = true;
	}
	return found;
}

bool explore_run(struct explore *explore, struct world *world)
{
	uint16_t acts[ACTS];
	int n;

	for (explore->depth = 0; explore->depth < explore->prefix; explore->depth++)
		world_act(world, explore->choices[explore->depth].act, false);
	while ((n = actions(world, acts)) > 0) {
		struct choice *choice = &explore->choices[explore->depth];

		t_true(explore->depth < DEPTH, "a schedule of more than %d actions", DEPTH);
		memset(choice, 0, sizeof(*choice));
		inherit(explore, world, &choice->sleep);
		for (int i = 0; i < n; i++)
			add(&choice->possible, acts[i]);
		if (!choose(choice, acts, n))
			return false;
		explore->depth++;
		world_act(world, choice->act, false);
	}
	return true;
}

bool explore_next(struct explore *explore)
{
	uint16_t acts[ACTS];

	while (explore->depth > 0) {
		struct choice *choice = &explore->choices[explore->depth - 1];
		int n = 0;

		add(&choice->done, choice->act);
		if (choice->more) {
			for (int act = 0; act < ACTS; act++) {
				if (has(&choice->possible, act))
					acts[n++] = (uint16_t)act;
			}
			if (choose(choice, acts, n)) {
				explore->prefix = explore->depth;
				return true;
			}
		}
		explore->depth--;
	}
	return false;
}

void explore_text(const struct explore *explore, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < explore->depth && len + 8 < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%d", i ? "." : "",
					explore->choices[i].nth);
}

void explore_replay(struct world *world, const char *choices)
{
	uint16_t acts[ACTS];
	int n;

	while ((n = actions(world, acts)) > 0) {
		char *end;
		long nth = strtol(choices, &end, 10);

		if (end == choices)
			nth = 0;
		choices = *end == '.' ? end + 1 : end;
		t_true(nth >= 0 && nth < n, "these choices are of another case");
		world_act(world, acts[nth], false);
	}
}
