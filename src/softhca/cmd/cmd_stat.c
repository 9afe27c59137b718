/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_stat.c - softhca stat: a fabric's processes, objects and counters, once or repeatedly.
 */
#define _GNU_SOURCE 1
#include <argp.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "columns.h"
#include "fabric/counters.h"
#include "fabric/options_parse.h"
#include "fabrics.h"
#include "fail.h"
#include "render.h"
#include "snapshot.h"

enum { KEY_MAN = 256 };

struct stat_args {
	const char *which;
	bool json, objects, counters, man;
	int64_t watch_ns; /* 0 = once */
};

/* Counters of the last time, for rates. */
struct stat_before {
	uint64_t when; /* 0 = there was no last time */
	uint64_t counters[SHCA_MAX_HCAS][SHCA_C_COUNT];
};

static int parse_interval(const char *arg, int64_t *ns)
{
	char text[64];

	/* A bare number is in seconds here. */
	snprintf(text, sizeof(text), "%s%s", arg, arg[strspn(arg, "0123456789.")] ? "" : "s");
	return shca_parse_time(text, ns) || *ns < 1000000 ? -EINVAL : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct stat_args *args = state->input;

	switch (key) {
	case 'j':
		args->json = true;
		return 0;
	case 'o':
		args->objects = true;
		return 0;
	case 'c':
		args->counters = true;
		return 0;
	case 'w':
		if (parse_interval(arg ? arg : "1", &args->watch_ns))
			argp_error(state, "\"%s\" is not a number of seconds", arg);
		return 0;
	case KEY_MAN:
		args->man = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->which)
			argp_error(state, "more than one fabric");
		args->which = arg;
		return 0;
	case ARGP_KEY_END:
		if (!args->objects && !args->counters)
			args->objects = args->counters = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Puts counters into hca["counters"], and their growth per second into hca["rates"]. */
static void add_counters(json_t *hca, const struct shca_fabric *fabric,
			 const struct shca_hca *adapter, uint64_t *before, double seconds)
{
	json_t *counters = json_object(), *rates = json_object();
	uint64_t now[SHCA_C_COUNT];

	shca_counters_read(fabric, adapter, now);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++) {
		uint64_t value = now[i];
		/* After a reset the counter starts from zero. */
		uint64_t grown = value >= before[i] ? value - before[i] : value;

		json_object_set_new(counters, shca_counter_names[i],
				    json_integer((json_int_t)value));
		if (seconds > 0)
			json_object_set_new(rates, shca_counter_names[i],
					    json_real((double)grown / seconds));
		before[i] = value;
	}
	json_object_set_new(hca, "counters", counters);
	if (seconds > 0)
		json_object_set(hca, "rates", rates);
	json_decref(rates);
}

static void add_processes(json_t *doc, const struct shca_fabric *fabric)
{
	json_object_set_new(doc, "procs", shca_snapshot_procs(fabric));
	json_object_set_new(doc, "connections", shca_snapshot_connections(fabric));
	json_object_set_new(doc, "connection_cells", shca_snapshot_cells(fabric));
	if (!shca_fabric_clock(fabric))
		return;
	json_object_set_new(doc, "clock", json_pack("[o]", shca_snapshot_clock(fabric)));
	json_object_set_new(doc, "actors", shca_snapshot_actors(fabric));
}

static json_t *snapshot(const struct shca_fabric *fabric, const struct stat_args *args,
			struct stat_before *before)
{
	uint64_t now = shca_real_now();
	double seconds = before->when ? (double)(now - before->when) / 1e9 : 0;
	json_t *doc = shca_snapshot_fabric(fabric), *hcas = json_array();

	if (args->objects)
		add_processes(doc, fabric);
	for (unsigned h = 0; h < fabric->hdr->nhcas; h++) {
		json_t *o = shca_snapshot_hca(&fabric->hdr->hcas[h]);

		if (args->counters)
			add_counters(o, fabric, &fabric->hdr->hcas[h], before->counters[h],
				     seconds);
		for (int k = 0; args->objects && k < SHCA_KINDS; k++)
			json_object_set_new(
				o, shca_snapshot_keys[k],
				shca_snapshot_objects(fabric, &fabric->hdr->hcas[h], k));
		json_array_append_new(hcas, o);
	}
	json_object_set_new(doc, "hcas", hcas);
	before->when = now;
	return doc;
}

/* Returns the rows of all HCAs under one key, each with its HCA's node and name. */
static json_t *gather(const json_t *hcas, const char *key)
{
	json_t *rows = json_array(), *hca, *row;
	size_t h, i;

	json_array_foreach(hcas, h, hca)
	{
		json_array_foreach(json_object_get(hca, key), i, row)
		{
			json_object_set(row, "hca_node", json_object_get(hca, "node"));
			json_object_set(row, "hca_name", json_object_get(hca, "name"));
			json_array_append(rows, row);
		}
	}
	return rows;
}

/* Returns a row for each counter that isn't zero; JSON has all. */
static json_t *counter_rows(const json_t *hcas)
{
	json_t *rows = json_array(), *hca, *value;
	const char *name;
	size_t h;

	json_array_foreach(hcas, h, hca)
	{
		json_object_foreach(json_object_get(hca, "counters"), name, value)
		{
			json_t *row, *rate = json_object_get(json_object_get(hca, "rates"), name);

			if (json_integer_value(value) == 0)
				continue;
			row = json_object();
			json_object_set(row, "hca_node", json_object_get(hca, "node"));
			json_object_set(row, "hca_name", json_object_get(hca, "name"));
			json_object_set_new(row, "counter", json_string(name));
			json_object_set(row, "value", value);
			if (rate)
				json_object_set(row, "rate", rate);
			json_array_append_new(rows, row);
		}
	}
	return rows;
}

static void section(const char *title, json_t *rows, const struct shca_column *columns, size_t n)
{
	if (json_array_size(rows)) {
		printf("\n%s\n", title);
		shca_render_table(stdout, rows, columns, n);
	}
	json_decref(rows);
}

static void print_tables(const json_t *doc, const struct stat_args *args, bool rates)
{
	const json_t *hcas = json_object_get(doc, "hcas");
	const struct shca_section *table;

	printf("Fabric %s, pid %lld, %lld nodes, %lld processes: %s\n",
	       json_string_value(json_object_get(doc, "name")),
	       (long long)json_integer_value(json_object_get(doc, "pid")),
	       (long long)json_integer_value(json_object_get(doc, "nodes")),
	       (long long)json_integer_value(json_object_get(doc, "processes")),
	       json_string_value(json_object_get(doc, "command")));
	for (table = shca_sections; args->objects && table->title; table++)
		section(table->title,
			table->per_hca ? gather(hcas, table->key)
				       : json_incref(json_object_get(doc, table->key)),
			table->columns, table->n);
	if (args->counters)
		section(shca_counters_section.title, counter_rows(hcas),
			shca_counters_section.columns, shca_counters_section.n - !rates);
	fflush(stdout);
}

static int show(const struct shca_fabric *fabric, const char *dir, const struct stat_args *args)
{
	static struct stat_before before;
	bool clear = args->watch_ns && !args->json && isatty(STDOUT_FILENO);
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		bool rates = before.when != 0;
		json_t *doc = snapshot(fabric, args, &before);

		if (clear)
			fputs("\033[H\033[2J", stdout);
		if (args->json)
			shca_render_json(stdout, doc, args->watch_ns != 0);
		else
			print_tables(doc, args, rates);
		json_decref(doc);
		if (!args->watch_ns || ferror(stdout))
			return 0;
		next.tv_nsec += args->watch_ns % 1000000000;
		next.tv_sec += args->watch_ns / 1000000000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		if (access(dir, F_OK))
			return 0; /* the fabric has ended */
		if (!clear && !args->json)
			putchar('\n');
	}
}

int shca_cmd_stat(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "print JSON; with --watch, one line each time", 0},
		{"watch", 'w', "SECONDS", OPTION_ARG_OPTIONAL,
		 "repeat every SECONDS (1), with rates, until the fabric ends", 0},
		{"objects", 'o', NULL, 0, "show processes and objects only", 0},
		{"counters", 'c', NULL, 0, "show counters only", 0},
		{"man", KEY_MAN, NULL, OPTION_HIDDEN, "", -1},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[FABRIC|PID]",
		.doc = "Shows the objects and counters of a fabric: the one named, or that of "
		       "a process; else the one this command runs in; else the only one."};
	struct stat_args args = {0};
	char dir[SHCA_DIR_LEN], err[1024];
	struct shca_fabric fabric;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &args);
	if (args.man) {
		shca_columns_man();
		return 0;
	}
	if (shca_fabrics_pick(args.which, dir, sizeof(dir), err, sizeof(err)) ||
	    shca_fabric_attach(dir, &fabric, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_FAILURE, "%s", err);
	rc = show(&fabric, dir, &args);
	shca_fabric_detach(&fabric);
	return rc;
}
