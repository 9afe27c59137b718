/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * row.h - a line of the tables: its run, its results in each round, and the row that it is compared
 * with. Rows of a group take turns (all of them once per round), so that other programs disturb
 * them all alike, and a ratio is formed within a round.
 */
#ifndef BENCH_VERBS_ROW_H
#define BENCH_VERBS_ROW_H

#include "endpoint.h"

/* Operations of one run_post(). Their receives must fit the receive queue. */
#define POST_MOST 100

struct row;

struct bench {
	struct process_pair pair;
	struct endpoint end;
	unsigned rounds;
	unsigned round_ms;
	unsigned sweep_ms;
	unsigned window; /* sends outstanding in a bandwidth test of large messages */
	uint32_t max_size;
	bool pin;
	bool sweep;
	const char *device;
	const char *output;
};

/*
 * One timed run of `count` operations. Both processes call it at the same moment; rank 0 stores the
 * value of this row in out[0], and those of the rows behind it that have no function of their own
 * in out[1], ...
 */
typedef void row_fn(struct bench *bench, const struct row *row, unsigned count, double *out);

enum target_kind { TARGET_NONE, TARGET_RATIO_MAX, TARGET_RATIO_MIN, TARGET_VALUE_MIN };

struct row {
	const char *key;   /* in the JSON file */
	const char *label; /* in the table */
	row_fn *fn;        /* NULL: filled in by the row before */
	enum lane_kind kind;
	enum ibv_wr_opcode op;
	uint32_t len;
	bool uses_lane, uses_vm; /* skipped where there is no such lane, or process_vm_writev is
				    forbidden */
	bool events;             /* wait for completion events instead of polling */
	unsigned max_count;      /* 0: as many as fit the time */
	int base;                /* row of the group that it is compared with; -1: none */
	enum target_kind target;
	double limit;
	const char *unit;

	const char *skipped; /* why it wasn't run, or NULL */
	unsigned count;      /* operations per round */
	double *value;       /* one per round */
};

struct group {
	const char *key;
	const char *title;
	struct row *row;
	unsigned nrows;
	bool pinned;   /* with --pin */
	bool unwanted; /* left out by --only */
};

struct row_summary {
	double median, q1, q3, min, max;
};

/* Runs all rounds of a group; only rank 0 has the values afterwards. */
void group_run(struct bench *bench, struct group *group, unsigned round_ms);
void group_free(struct group *group);

/* Sorts the n (> 0) values and returns their median. */
double row_median(double *value, unsigned n);
/* Summarises the values of a row, or with `ratio` their ratios to the row it is compared with.
 * Returns false if there are none. */
bool row_summary(const struct group *group, const struct row *row, unsigned rounds, bool ratio,
		 struct row_summary *summary);

/* Returns true if the target is met. Only for a row that has one and was run. */
bool row_met(const struct row *row, const struct row_summary *value,
	     const struct row_summary *ratio);

#endif
