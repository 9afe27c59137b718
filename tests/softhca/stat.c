/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.c - see stat.h. Searches the whole tree of the document, so that tests don't depend on a
 * row's place in it.
 */
#define _GNU_SOURCE 1
#include "stat.h"

#include <poll.h>

#include "util.h"

json_t *stat_json(void)
{
	const char *bin = getenv("SOFTHCA_BIN");
	char cmd[4200];
	json_error_t err;
	json_t *doc;
	FILE *f;

	/* The command needs no interposed verbs, because it only reads. */
	snprintf(cmd, sizeof(cmd), "LD_PRELOAD= exec '%s' stat --json", bin ? bin : "softhca");
	f = popen(cmd, "r");
	t_true(f, "popen: %s", strerror(errno));
	doc = json_loadf(f, 0, &err);
	t_eq(pclose(f), 0);
	t_true(doc, "stat --json, line %d: %s", err.line, err.text);
	return doc;
}

static bool names_pid(const json_t *row, pid_t pid)
{
	static const char *const keys[] = {"pid", "owner_pid", "owner"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *v = json_object_get(row, keys[i]);

		if (json_is_integer(v) && json_integer_value(v) == pid)
			return true;
	}
	return false;
}

static unsigned count_pid(json_t *node, pid_t pid)
{
	unsigned n = 0;
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_object(node)) {
		n = names_pid(node, pid);
		json_object_foreach(node, key, v) n += count_pid(v, pid);
	} else if (json_is_array(node)) {
		json_array_foreach(node, i, v) n += count_pid(v, pid);
	}
	return n;
}

static uint64_t sum_counter(json_t *node, const char *name, unsigned *found)
{
	uint64_t sum = 0;
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_object(node)) {
		json_object_foreach(node, key, v)
		{
			if (json_is_integer(v) && !strcmp(key, name)) {
				sum += (uint64_t)json_integer_value(v);
				++*found;
			} else {
				sum += sum_counter(v, name, found);
			}
		}
	} else if (json_is_array(node)) {
		json_array_foreach(node, i, v) sum += sum_counter(v, name, found);
	}
	return sum;
}

unsigned stat_objects_of(pid_t pid)
{
	json_t *doc = stat_json();
	unsigned n = count_pid(doc, pid);

	json_decref(doc);
	return n;
}

void stat_await_reaped(pid_t pid)
{
	uint64_t t0 = t_now();
	unsigned n;

	while ((n = stat_objects_of(pid)) != 0) {
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "%u rows of dead process %d are left", n,
		       (int)pid);
		poll(NULL, 0, 5); /* nothing announces the reaping */
	}
}

uint64_t stat_counter(const char *name)
{
	json_t *doc = stat_json();
	unsigned found = 0;
	uint64_t sum = sum_counter(doc, name, &found);

	json_decref(doc);
	t_true(found, "stat --json has no counter %s", name);
	return sum;
}
