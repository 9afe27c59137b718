/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all of the protocol's check uses: a random generator, and how a violation is reported. A
 * violation ends the process; the runner (runner.h) has forked it for that.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

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

/* The protocol, or the use it makes of the network, is wrong. */
void sim_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* A violation is a signal: for those who catch those. */
extern bool sim_aborts;
/* Where sim_fail() puts its sentence: a pipe of the runner's, or -1 for the terminal. */
void sim_report_to(int fd);

/* Asserts of the check itself: the same, but its text tells them apart. */
#define SIM_MUST(cond, ...)                    \
	do {                                   \
		if (!(cond))                   \
			sim_fail(__VA_ARGS__); \
	} while (0)

/* Prints a line of the schedule if the trace is on. */
extern bool sim_tracing;
void sim_trace_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define SIM_TRACE(...)                               \
	do {                                         \
		if (sim_tracing)                     \
			sim_trace_line(__VA_ARGS__); \
	} while (0)

#endif
