/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of the protocol's check uses: a random generator, and how a violation is reported. A
 * violation ends the process; the runner (runner.h) has forked it for that.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "../expect.h"

struct sim_rng {
	uint64_t state;
};

/* The run with this seed is the same everywhere. */
void sim_seed(struct sim_rng *rng, uint64_t seed);
/* 0 to n - 1; n > 0. */
uint32_t sim_below(struct sim_rng *rng, uint32_t n);
/* True in `of_256` of 256 cases. */
bool sim_chance(struct sim_rng *rng, uint32_t of_256);
/* One of the arguments. */
#define SIM_ONE_OF(rng, ...)                         \
	(((const int64_t[]){__VA_ARGS__})[sim_below( \
		(rng), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

/* A violation is a signal: for those who catch those. */
extern bool sim_aborts;
/* Where a failure puts its sentence: a pipe of the runner's, or -1 for the terminal. */
void sim_report_to(int fd);

/* Prints a line of the schedule if the trace is on. */
extern bool sim_tracing;
void sim_trace_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define SIM_TRACE(...)                               \
	do {                                         \
		if (sim_tracing)                     \
			sim_trace_line(__VA_ARGS__); \
	} while (0)

#endif
