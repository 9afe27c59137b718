/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * row.c - runs the rows of a group in turn and summarises the results.
 */
#include "row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_COUNT (1u << 24)

/*
 * A software HCA's threads may stay awake for a while after their last work (softhca: 1 ms unless
 * set) and would take a core from the next run. Nothing in the verbs API says when they sleep, so
 * this waits longer than that.
 */
#define SETTLE_NS 3000000

static void settle(void)
{
	struct timespec pause = {.tv_nsec = SETTLE_NS};

	nanosleep(&pause, NULL);
}

static void run_once(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	pair_gate(&bench->pair);
	row->fn(bench, row, count, out);
	pair_barrier(&bench->pair);
}

/* Returns the time of the fastest of three runs, because a run that another program interrupted
 * says nothing about the row. */
static uint64_t trial(struct bench *bench, const struct row *row)
{
	uint64_t best = UINT64_MAX;
	double out[4];

	for (int i = 0; i < 3; i++) {
		uint64_t start = now_ns(), took;

		run_once(bench, row, row->count, out);
		took = now_ns() - start;
		best = took < best ? took : best;
	}
	return best;
}

/* Finds how many operations fill the time of a round. */
static void calibrate(struct bench *bench, struct row *row, uint64_t round_ns)
{
	struct pair_shared *sh = bench->pair.sh;
	unsigned most = row->max_count ? row->max_count : MAX_COUNT;

	row->count = 4;
	do {
		uint64_t took = trial(bench, row);

		if (!bench->pair.rank) {
			double full = ceil((double)row->count * (double)round_ns / (double)took);

			sh->again = took < round_ns / 4 && row->count < most;
			sh->count = sh->again ? row->count * 4 : (unsigned)fmin(full, most);
		}
		pair_barrier(&bench->pair);
		row->count = sh->count < most ? sh->count : most;
	} while (sh->again);
}

static const char *why_skipped(const struct bench *bench, const struct row *row)
{
	if (row->uses_lane && !bench->end.lane[row->kind].qp)
		return "not offered by the device";
	if (row->uses_vm && !bench->pair.sh->vm_allowed)
		return "process_vm_writev is forbidden here";
	return NULL;
}

static void progress(const struct bench *bench, const struct group *group, unsigned round)
{
	if (bench->pair.rank || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s: round %u of %u", group->title, round, bench->rounds);
	if (round == bench->rounds)
		fputs("\r\033[K", stderr);
}

static void one_round(struct bench *bench, struct group *group, unsigned round)
{
	double out[4] = {0};

	for (unsigned i = 0, n; i < group->nrows; i += n) {
		for (n = 1; i + n < group->nrows && !group->row[i + n].fn; n++)
			;
		if (group->row[i].skipped)
			continue;
		settle();
		run_once(bench, &group->row[i], group->row[i].count / 8 + 1, out);
		run_once(bench, &group->row[i], group->row[i].count, out);
		for (unsigned k = 0; k < n; k++)
			group->row[i + k].value[round] = out[k];
	}
}

void group_run(struct bench *bench, struct group *group, unsigned round_ms)
{
	progress(bench, group, 0);
	pair_pin(&bench->pair, bench->pin && group->pinned);
	for (unsigned i = 0; i < group->nrows; i++) {
		struct row *row = &group->row[i];

		row->value = calloc(bench->rounds, sizeof *row->value);
		if (!row->value)
			die("out of memory");
		row->skipped = why_skipped(bench, row);
		if (row->fn && !row->skipped)
			calibrate(bench, row, (uint64_t)round_ms * 1000000);
		else if (!row->fn)
			row->count = group->row[i - 1].count;
	}
	for (unsigned round = 0; round < bench->rounds; round++) {
		one_round(bench, group, round);
		progress(bench, group, round + 1);
	}
}

void group_free(struct group *group)
{
	for (unsigned i = 0; i < group->nrows; i++)
		free(group->row[i].value);
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double quantile(const double *sorted, unsigned n, double q)
{
	double at = q * (n - 1);
	unsigned below = (unsigned)at;

	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static void sort(double *value, unsigned n)
{
	qsort(value, n, sizeof *value, ascending);
}

double row_median(double *value, unsigned n)
{
	sort(value, n);
	return quantile(value, n, 0.5);
}

bool row_summary(const struct group *group, const struct row *row, unsigned rounds, bool ratio,
		 struct row_summary *summary)
{
	const struct row *base = ratio && row->base >= 0 ? &group->row[row->base] : NULL;
	double *sorted;

	if (row->skipped || (ratio && (!base || base->skipped)))
		return false;
	sorted = calloc(rounds, sizeof *sorted);
	if (!sorted)
		die("out of memory");
	for (unsigned i = 0; i < rounds; i++)
		sorted[i] = row->value[i] / (base ? base->value[i] : 1);
	sort(sorted, rounds);
	summary->median = quantile(sorted, rounds, 0.5);
	summary->q1 = quantile(sorted, rounds, 0.25);
	summary->q3 = quantile(sorted, rounds, 0.75);
	summary->min = sorted[0];
	summary->max = sorted[rounds - 1];
	free(sorted);
	return true;
}

bool row_met(const struct row *row, const struct row_summary *value,
	     const struct row_summary *ratio)
{
	switch (row->target) {
	case TARGET_RATIO_MAX:
		return ratio->median <= row->limit;
	case TARGET_RATIO_MIN:
		return ratio->median >= row->limit;
	case TARGET_VALUE_MIN:
		return value->median >= row->limit;
	case TARGET_NONE:
		break;
	}
	return false;
}
