/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what the MPI programs share: named checks with one line of result each, message
 * contents that tell whose they are, statuses, random numbers.
 *
 * A check begins and ends on all ranks. Rank 0 prints "ok NAME" when all of them reached its end;
 * whoever finds a fault prints "not ok NAME - rank R: WHY" and aborts the job. A rank that comes no
 * further for T_DEADLINE_S seconds says what it was doing, which is what a hang looks like.
 */
#ifndef T_CHECK_H
#define T_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "../expect.h"

#define T_DEADLINE_S 50 /* TEST_DEADLINE in the environment is another number */
#define T_ENOUGH_S   10

extern int t_rank, t_size; /* in MPI_COMM_WORLD */

/* MPI_Init; ranks: the fewest that the program can run on. */
void t_init(int *argc, char ***argv, int ranks);
/* The same with a level of thread support; returns what is provided. */
int t_init_thread(int *argc, char ***argv, int ranks, int level);
/* MPI_Finalize; returns what main() returns. */
int t_finish(void);

/* A check, on all ranks. */
void t_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void t_end(void);
/* Instead of a check: it can't run, for this reason. On all ranks. */
void t_skip(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What this rank does now, for the report of a hang; the string must stay. */
void t_doing(const char *what);

/* Whose contents they are: the sender's rank in MPI_COMM_WORLD, the tag, a number of the message.
 */
struct t_msg {
	int src;
	int tag;
	unsigned int seq;
};

void t_fill(void *buf, size_t bytes, struct t_msg m);
/* buf holds what t_fill() writes for m. */
void t_verify(const void *buf, size_t bytes, struct t_msg m);
/* buf holds value and nothing else: what a receive must not touch. */
void t_untouched(const void *buf, size_t bytes, unsigned char value);
/* A completed receive's status. */
void t_status(const MPI_Status *st, int src, int tag, size_t bytes);

void *t_alloc(size_t bytes); /* never NULL, never of zero bytes */

struct t_rng {
	uint64_t state;
};

/* A stream of its own for each (seed, a, b). */
struct t_rng t_rng(uint64_t seed, uint64_t a, uint64_t b);
uint64_t t_rand(struct t_rng *rng);
int t_below(struct t_rng *rng, int n);
bool t_chance(struct t_rng *rng, int percent);
void t_shuffle(struct t_rng *rng, int *v, int n);

/* What a performance variable (MPI_T) has counted from t_count() to t_counted(), which ends that;
 * -1: the MPI library has none of this name. One at a time. */
void t_count(const char *name);
long long t_counted(void);

/* On all ranks, now and then: a check that does things many times has done them for so long, by
 * rank 0's clock, that it should end. On a busy machine it comes less far. */
bool t_enough(double since);

/* The index-th argument as a number, or def. */
long t_arg(int argc, char **argv, int index, long def);
/* Time in which this rank makes no MPI call: a computation. */
void t_away(long ms);
/* A counter of pml/tupleq since this was first called for it, or a level; -1 with another MPI. The
 * string must stay. */
long long t_counter(const char *name);

#endif
