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

static int actions(struct world *w, uint16_t acts[ACTS])
{
	int n = world_actions(w, acts);

	qsort(acts, (size_t)n, sizeof(acts[0]), by_number);
	return n;
}

static void add(struct actset *s, int act)
{
	s->w[act / 64] |= 1ull << act % 64;
}

static bool has(const struct actset *s, int act)
{
	return s->w[act / 64] >> act % 64 & 1;
}

unsigned long explore_size(void)
{
	return sizeof(struct explore);
}

/* Collects the actions that sleep after the last choice: those that were tried before and that the
 * choice doesn't affect. */
static void inherit(const struct explore *x, const struct world *w, struct actset *sleep)
{
	const struct choice *c;
	uint32_t touched;

	memset(sleep, 0, sizeof(*sleep));
	if (!x->depth)
		return;
	c = &x->choices[x->depth - 1];
	touched = world_touches(w, c->act);
	for (int word = 0; word < WORDS; word++) {
		uint64_t bits = c->sleep.w[word] | c->done.w[word];

		for (; bits; bits &= bits - 1) {
			int act = word * 64 + __builtin_ctzll(bits);

			if (act != c->act && !(world_touches(w, act) & touched))
				add(sleep, act);
		}
	}
}

/* Takes the first action that is awake and was not tried. Returns false if there is none. */
static bool choose(struct choice *c, const uint16_t *acts, int n)
{
	bool found = false;

	c->more = false;
	for (int i = 0; i < n; i++) {
		if (has(&c->sleep, acts[i]) || has(&c->done, acts[i]))
			continue;
		if (found) {
			c->more = true;
			break;
		}
		c->act = acts[i];
		c->nth = (uint16_t)i;
		found = true;
	}
	return found;
}

bool explore_run(struct explore *x, struct world *w)
{
	uint16_t acts[ACTS];
	int n;

	for (x->depth = 0; x->depth < x->prefix; x->depth++)
		world_act(w, x->choices[x->depth].act, false);
	while ((n = actions(w, acts)) > 0) {
		struct choice *c = &x->choices[x->depth];

		t_true(x->depth < DEPTH, "a schedule of more than %d actions", DEPTH);
		memset(c, 0, sizeof(*c));
		inherit(x, w, &c->sleep);
		for (int i = 0; i < n; i++)
			add(&c->possible, acts[i]);
		if (!choose(c, acts, n))
			return false;
		x->depth++;
		world_act(w, c->act, false);
	}
	return true;
}

bool explore_next(struct explore *x)
{
	uint16_t acts[ACTS];

	while (x->depth > 0) {
		struct choice *c = &x->choices[x->depth - 1];
		int n = 0;

		add(&c->done, c->act);
		if (c->more) {
			for (int act = 0; act < ACTS; act++) {
				if (has(&c->possible, act))
					acts[n++] = (uint16_t)act;
			}
			if (choose(c, acts, n)) {
				x->prefix = x->depth;
				return true;
			}
		}
		x->depth--;
	}
	return false;
}

void explore_text(const struct explore *x, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < x->depth && len + 8 < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%d", i ? "." : "",
					x->choices[i].nth);
}

void explore_replay(struct world *w, const char *choices)
{
	uint16_t acts[ACTS];
	int n;

	while ((n = actions(w, acts)) > 0) {
		char *end;
		long nth = strtol(choices, &end, 10);

		if (end == choices)
			nth = 0;
		choices = *end == '.' ? end + 1 : end;
		t_true(nth >= 0 && nth < n, "these choices are of another case");
		world_act(w, acts[nth], false);
	}
}
