/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - tables and JSON.
 */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* Returns how many CPUs other programs use, if bench/run.sh found the machine busy, or NULL. */
static const char *busy(void)
{
	const char *text = getenv("BENCH_BUSY");

	return text && *text ? text : NULL;
}

static void cpu_name(char *name, size_t room)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, room, "unknown CPU");
	while (f && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		snprintf(name, room, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		break;
	}
	if (f)
		fclose(f);
}

void report_head(const struct bench *bench)
{
	char cpu[128];
	double load;

	cpu_name(cpu, sizeof cpu);
	printf("Verbs on %s. %d CPU%s (%s).\n", ibv_get_device_name(bench->end.ctx->device),
	       pair_cpus(), pair_cpus() == 1 ? "" : "s", cpu);
	printf("%u rounds of %u ms (sweep: %u ms), rows in turn; medians [quartiles]; ratios are "
	       "formed within a round.\n",
	       bench->rounds, bench->round_ms, bench->sweep_ms);
	printf("%s\n",
	       bench->pin ? "Latency and rate with the two processes pinned to a CPU each, all "
			    "else not pinned."
			  : "Processes are not pinned to CPUs.");
	if (getloadavg(&load, 1) == 1)
		printf("Load average of the last minute: %.1f.\n", load);
	if (pair_cpus() < 2)
		printf("With one CPU no core is free for the other process: the targets don't "
		       "apply.\n");
	else if (busy())
		printf("This machine is busy, with %s CPUs in use by other programs: figures are "
		       "worthless, and targets aren't judged.\n",
		       busy());
}

/* Formats a number with 3 significant digits. */
static const char *number(char buf[16], double v)
{
	int decimals = v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3;

	snprintf(buf, 16, "%.*f", decimals, v);
	return buf;
}

static void print_target(const struct row *row, const struct row_summary *value,
			 const struct row_summary *ratio, bool has_ratio)
{
	static const char *const sense[] = {"", "<=", ">=", ">="};
	char limit[16];

	if (row->target == TARGET_NONE || pair_cpus() < 2 || busy())
		return;
	printf("  %s %s%s: ", sense[row->target], number(limit, row->limit),
	       row->target == TARGET_VALUE_MIN ? "" : " x");
	if (row->target != TARGET_VALUE_MIN && !has_ratio)
		printf("unknown");
	else
		printf("%s", row_met(row, value, ratio) ? "met" : "NOT MET");
}

void report_group(const struct bench *bench, const struct group *group)
{
	printf("\n%-50s %8s %19s  %6s %15s  %s\n", group->title, group->row[0].unit, "", "ratio",
	       "", "target");
	for (unsigned i = 0; i < group->nrows; i++) {
		const struct row *row = &group->row[i];
		struct row_summary v, r;
		char n[3][16], range[48];
		bool has_ratio;

		if (!row_summary(group, row, bench->rounds, false, &v)) {
			printf("  %-48s %s\n", row->label, row->skipped);
			continue;
		}
		has_ratio = row_summary(group, row, bench->rounds, true, &r);
		snprintf(range, sizeof range, "[%s .. %s]", number(n[0], v.q1), number(n[1], v.q3));
		printf("  %-48s %8s %19s", row->label, number(n[2], v.median), range);
		if (has_ratio) {
			snprintf(range, sizeof range, "[%s .. %s]", number(n[0], r.q1),
				 number(n[1], r.q3));
			printf("  %6s %15s", number(n[2], r.median), range);
		} else {
			printf("  %6s %15s", "-", "");
		}
		print_target(row, &v, &r, has_ratio);
		putchar('\n');
	}
	fflush(stdout);
}

static void print_size(uint32_t len)
{
	if (len >= 1u << 20)
		printf("%4u MiB", len >> 20);
	else if (len >= 1u << 10)
		printf("%4u KiB", len >> 10);
	else
		printf("%4u B  ", len);
}

void report_sweep(const struct bench *bench, const struct group *group, unsigned n)
{
	if (!n)
		return;
	printf("\nBy size: medians; latency as half a round trip in us, bandwidth one way in GB/s "
	       "(10^9 bytes)\n%8s",
	       "");
	for (unsigned i = 0; i < group->nrows; i++)
		printf(" %12s", group->row[i].label);
	printf("\n%8s", "");
	for (unsigned i = 0; i < group->nrows; i++)
		printf(" %12s", group->row[i].unit);
	putchar('\n');
	for (unsigned k = 0; k < n; k++) {
		print_size(group[k].row[0].len);
		for (unsigned i = 0; i < group[k].nrows; i++) {
			struct row_summary v;
			char text[16];

			printf(" %12s",
			       row_summary(&group[k], &group[k].row[i], bench->rounds, false, &v)
				       ? number(text, v.median)
				       : "-");
		}
		putchar('\n');
	}
	fflush(stdout);
}

static json_t *json_summary(const struct row_summary *summary)
{
	return json_pack("{s:f,s:f,s:f,s:f,s:f}", "median", summary->median, "q1", summary->q1,
			 "q3", summary->q3, "min", summary->min, "max", summary->max);
}

static json_t *json_target(const struct row *row, const struct row_summary *value,
			   const struct row_summary *ratio)
{
	static const char *const what[] = {"", "ratio at most", "ratio at least", "value at least"};

	return json_pack("{s:s,s:f,s:b}", "kind", what[row->target], "limit", row->limit, "met",
			 row_met(row, value, ratio));
}

static json_t *json_row(const struct bench *bench, const struct group *group, const struct row *row)
{
	json_t *o = json_pack("{s:s,s:s,s:s,s:i}", "key", row->key, "label", row->label, "unit",
			      row->unit, "bytes", (int)row->len);
	json_t *values = json_array();
	struct row_summary v, r;
	bool has_ratio;

	if (!row_summary(group, row, bench->rounds, false, &v)) {
		json_object_set_new(o, "skipped", json_string(row->skipped));
		json_decref(values);
		return o;
	}
	for (unsigned i = 0; i < bench->rounds; i++)
		json_array_append_new(values, json_real(row->value[i]));
	json_object_set_new(o, "operations_per_round", json_integer(row->count));
	json_object_set_new(o, "value", json_summary(&v));
	json_object_set_new(o, "values", values);
	has_ratio = row_summary(group, row, bench->rounds, true, &r);
	if (has_ratio) {
		json_object_set_new(o, "ratio_to", json_string(group->row[row->base].key));
		json_object_set_new(o, "ratio", json_summary(&r));
	}
	if (row->target == TARGET_VALUE_MIN || (row->target != TARGET_NONE && has_ratio))
		json_object_set_new(o, "target", json_target(row, &v, &r));
	return o;
}

static json_t *json_groups(const struct bench *bench, const struct group *group, unsigned n)
{
	json_t *list = json_array();

	for (unsigned k = 0; k < n; k++) {
		json_t *rows, *o;

		if (group[k].unwanted)
			continue;
		rows = json_array();
		for (unsigned i = 0; i < group[k].nrows; i++)
			json_array_append_new(rows, json_row(bench, &group[k], &group[k].row[i]));
		o = json_pack("{s:s,s:s,s:b,s:o}", "key", group[k].key, "title", group[k].title,
			      "pinned", bench->pin && group[k].pinned, "rows", rows);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_machine(void)
{
	struct utsname system = {0};
	char cpu[128];

	cpu_name(cpu, sizeof cpu);
	uname(&system);
	return json_pack("{s:s,s:i,s:s}", "cpu", cpu, "cpus", pair_cpus(), "kernel",
			 system.release);
}

void report_json(const struct bench *bench, const struct group *group, unsigned n,
		 const struct group *sweep, unsigned nsweep)
{
	time_t now = time(NULL);
	struct tm utc = {0};
	char stamp[32];
	json_t *o;

	if (!bench->output)
		return;
	gmtime_r(&now, &utc);
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
	o = json_pack("{s:s,s:i,s:s,s:s,s:o,s:{s:i,s:i,s:i,s:i,s:b},s:o,s:o}", "benchmark", "verbs",
		      "format", 1, "time", stamp, "device",
		      ibv_get_device_name(bench->end.ctx->device), "machine", json_machine(),
		      "settings", "rounds", (int)bench->rounds, "round_ms", (int)bench->round_ms,
		      "sweep_ms", (int)bench->sweep_ms, "window", (int)bench->window, "pin",
		      bench->pin, "groups", json_groups(bench, group, n), "sweep",
		      json_groups(bench, sweep, nsweep));
	if (!o || json_dump_file(o, bench->output, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		die("the results can't be written to %s: %s", bench->output, strerror(errno));
	json_decref(o);
	printf("\nResults, all rounds: %s\n", bench->output);
}
