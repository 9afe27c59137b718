/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers, and the report of a violation, for all programs that run the protocol's model. A
 * violation ends the process, which the runner (runner.h) has forked for that.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "../expect.h"

struct sim_rng {
	uint64_t state;
};

/* Starts a sequence of numbers, which depends on the seed alone. */
void sim_seed(struct sim_rng *rng, uint64_t seed);
/* Returns a number from 0 to n - 1, where n > 0. */
uint32_t sim_below(struct sim_rng *rng, uint32_t n);
/* Returns true in `of_256` of 256 cases. */
bool sim_chance(struct sim_rng *rng, uint32_t of_256);
/* Returns one of the arguments, chosen at random. */
#define SIM_ONE_OF(rng, ...)                         \
	(((const int64_t[]){__VA_ARGS__})[sim_below( \
		(rng), sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

/* If true, a violation raises SIGABRT, for programs that catch signals. */
extern bool sim_aborts;
/* Sets where a failure writes its sentence: a pipe of the runner, or -1 for the terminal. */
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
