/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.h - communication patterns, which the ranks of a program repeat. A step is one
 * repetition. Its messages have the size that is measured.
 */
#ifndef BENCH_MPI_PATTERN_H
#define BENCH_MPI_PATTERN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most messages that a rank has under way at once, and twice that many buffers. */
#define PATTERN_WINDOW 8
#define PATTERN_SLOTS  (2 * PATTERN_WINDOW)

/* The state of a rank in a pattern. */
struct pattern_state {
	MPI_Comm
		comm; /* a new one for each pattern and size, so that nothing is left of the last */
	int rank, ranks;
	int left, right; /* neighbours in the ring of all ranks; one and the same with two ranks */
	size_t bytes;
	char *send[PATTERN_SLOTS], *recv[PATTERN_SLOTS];
	long step;              /* from 0 */
	int next_tag, last_tag; /* the next unused tag, and the largest that is allowed */
	bool check;             /* whether this step's data are checked */
	uint64_t work;          /* iterations that take about as long as a message of the size */
	double work_ns;         /* time of an iteration */
	uint64_t random;
	MPI_Request request[4 * PATTERN_WINDOW];
};

struct pattern {
	const char *name;
	const char *what;
	int messages; /* messages of a rank in a step, without those that keep step */
	/* Called before the first step, for each step, and after the last one. begin and end may be
	 * NULL. */
	void (*begin)(struct pattern_state *state);
	void (*step)(struct pattern_state *state);
	void (*end)(struct pattern_state *state);
};

extern const struct pattern patterns[];
extern const size_t npatterns;

#endif
