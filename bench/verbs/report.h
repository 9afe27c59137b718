/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the output: tables on stdout, and a JSON file.
 */
#ifndef BENCH_VERBS_REPORT_H
#define BENCH_VERBS_REPORT_H

#include "row.h"

/* Prints the run: its programs, its device and its settings. */
void report_head(const struct bench *bench);

/* Prints a table with a line per row. */
void report_group(const struct bench *bench, const struct group *group);

/* Prints a table with a line per group and a column per row. All groups have the same rows. */
void report_sweep(const struct bench *bench, const struct group *group, unsigned n);

/* Writes all results to the file that --output names, if any. */
void report_json(const struct bench *bench, const struct group *group, unsigned n,
		 const struct group *sweep, unsigned nsweep);

#endif
