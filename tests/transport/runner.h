/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs many schedules in forked processes, so that a violation, a failed assertion or a crash ends
 * only that process, and the report says how to repeat the run.
 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#define RUNNER_TEXT 512

/* Does run `i`. Returns only if nothing failed. */
typedef void runner_fn(void *arg, uint64_t i);

struct runner_result {
	uint64_t runs, failed;
	uint64_t first; /* the number of the first run that failed */
	char why[RUNNER_TEXT];
};

/*
 * Does the runs `from` to `to` - 1, but stops after `max_failed` failures. A run that takes longer
 * than `seconds` has failed.
 */
struct runner_result runner_go(runner_fn *fn, void *arg, uint64_t from, uint64_t to,
			       uint64_t max_failed, unsigned seconds);

/* Returns zeroed memory that forked runs share with their parent until the program ends. */
void *runner_shared(unsigned long size);

#endif
