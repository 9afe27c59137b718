/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what the user sees: tables on stdout, and a JSON file.
 */
#ifndef BENCH_VERBS_REPORT_H
#define BENCH_VERBS_REPORT_H

#include "row.h"

/* The run: its programs, its device and its settings. */
void report_head(const struct bench *bench);

/* A table with a line per row. */
void report_group(const struct bench *bench, const struct group *group);

/* A table with a line per group and a column per row; all groups have the same rows. */
void report_sweep(const struct bench *bench, const struct group *group, unsigned n);

/* Writes all there is to know to the file that --output names. */
void report_json(const struct bench *bench, const struct group *group, unsigned n,
		 const struct group *sweep, unsigned nsweep);

#endif
