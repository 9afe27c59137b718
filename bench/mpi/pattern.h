/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.h - communication patterns: what the ranks of a program do again and again. A step is one
 * repetition; its messages have the size that is measured.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages that a rank has under way at once, at most, and twice that many buffers. */
#define PATTERN_WINDOW 8
#define PATTERN_SLOTS  (2 * PATTERN_WINDOW)

struct world {
	MPI_Comm comm; /* of its own for each pattern and size, so that none inherits a thing */
	int rank, ranks;
	int left, right; /* neighbours in the ring of all ranks; with two ranks, both the other */
	size_t bytes;
	char *send[PATTERN_SLOTS], *recv[PATTERN_SLOTS];
	long step;              /* counts from 0 */
	int next_tag, last_tag; /* the next that was not used yet; the largest there is */
	bool check;             /* this step's data are made and compared */
	uint64_t work;          /* iterations of work(): about what a message of the size takes */
	double work_ns;         /* time of an iteration */
	uint64_t random;
	MPI_Request request[4 * PATTERN_WINDOW];
};

struct pattern {
	const char *name;
	const char *what;
	int messages;                   /* that each rank sends in a step, but for control */
	void (*begin)(struct world *w); /* before the first step; NULL: nothing */
	void (*step)(struct world *w);
	void (*end)(struct world *w); /* after the last */
};

extern const struct pattern patterns[];
extern const size_t npatterns;

#endif
