/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - shared by the MPI programs: named checks with a line of result each, contents that tell
 * which message they belong to, statuses, random numbers.
 *
 * A check begins and ends on all ranks. Rank 0 prints "ok NAME" when all of them reached its end. A
 * rank that finds a fault prints "not ok NAME - rank R: WHY" and aborts the job. A rank whose check
 * takes longer than T_DEADLINE_S seconds, because it hangs, prints what it was doing. On a
 * busy machine a check with thousands of messages takes that long, too, unless it calls t_enough().
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
#if MPI_VERSION < 4
#include <mpi-ext.h>
#endif

#include "../expect.h"

/* The call that initializes a persistent collective. Open MPI 5.0 has MPI 4's names, although its
 * MPI_VERSION is 3. */
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define T_PERSISTENT(name) MPIX_##name##_init
#else
#define T_PERSISTENT(name) MPI_##name##_init
#endif

#define T_DEADLINE_S 50 /* unless TEST_DEADLINE in the environment is another number */
#define T_ENOUGH_S   10

extern int t_rank, t_size;  /* in MPI_COMM_WORLD */
extern int t_left, t_right; /* the neighbours in the ring of all ranks */

/* Calls MPI_Init and checks that there are at least `ranks` ranks. */
void t_init(int *argc, char ***argv, int ranks);
/* As t_init(), with a level of thread support; returns the level that is provided. */
int t_init_thread(int *argc, char ***argv, int ranks, int level);
/* As t_init(), for a program whose index-th argument is the number of threads that it uses. Returns
 * this number, at most `most`, or 0 if the library provides no MPI_THREAD_MULTIPLE. */
int t_init_threads(int *argc, char ***argv, int ranks, int index, int most);
/* Calls MPI_Finalize; returns the value for main() to return. */
int t_finish(void);

/* Begins and ends a check, on all ranks. */
void t_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void t_end(void);
/* Reports, instead of a check, that it can't run and why. On all ranks. */
void t_skip(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Notes this rank's current activity, for the report of a hang. The string must stay valid. */
void t_doing(const char *activity);

/* A message: its sender's rank in MPI_COMM_WORLD, its tag, and a number. */
struct t_msg {
	int src;
	int tag;
	unsigned int seq;
};

void t_fill(void *buf, size_t bytes, struct t_msg m);
/* Checks that buf holds what t_fill() writes for m. */
void t_verify(const void *buf, size_t bytes, struct t_msg m);
/* Checks that buf holds only bytes of this value: memory that a receive must not touch. */
void t_untouched(const void *buf, size_t bytes, unsigned char value);
/* Checks the status of a completed receive. */
void t_status(const MPI_Status *st, int src, int tag, size_t bytes);

void *t_alloc(size_t bytes); /* never NULL, never of zero bytes */

struct t_rng {
	uint64_t state;
};

/* Returns a random stream of its own for each (seed, a, b). */
struct t_rng t_rng(uint64_t seed, uint64_t a, uint64_t b);
uint64_t t_rand(struct t_rng *rng);
int t_below(struct t_rng *rng, int n);
bool t_chance(struct t_rng *rng, int percent);
void t_shuffle(struct t_rng *rng, int *v, int n);

/* t_count() starts to count by a performance variable (MPI_T) of pml/tupleq or coll/tupleq.
 * t_is_counting() returns true if that component is in use. t_counted() returns the count, or -1 if
 * the component isn't in use. Only one variable counts at a time. The string must stay valid. */
void t_count(const char *variable);
bool t_is_counting(void);
long long t_counted(void);

/* Returns true on all ranks if a repeated check has run long enough by rank 0's clock. All ranks
 * call this now and then, which also begins a new deadline. On a busy machine a check comes less
 * far. */
bool t_enough(double since);

/* Returns the index-th argument as a number, or def if there is none. */
long t_arg(int argc, char **argv, int index, long def);
/* Waits until all ranks but the victim, which is dead, call this function. The exit of a rank would
 * be noticed as a death, too, so no rank returns before all have called. Uses tag 3 of
 * MPI_COMM_WORLD. */
void t_survivors_meet(int victim);
/* Stores a library's function of this name in a pointer to a function, for the program's own
 * function of that name, which stands in front of the library's: the program's symbols come first.
 */
void t_library_function(const char *function, void *pointer);
/* Sleeps without an MPI call. */
void t_away(long ms);
/* Runs `body` in n threads, each with one of the n arguments of `size` bytes, and waits for them.
 */
void t_threads(int n, void *(*body)(void *arg), void *args, size_t size);
/* Returns how much memory (bytes) this process has in use. */
long long t_resident(void);
/* Returns a performance variable (MPI_T) of pml/tupleq or coll/tupleq: a counter since the first
 * call for it, or a level. Returns -1 if the component isn't in use. The string must stay valid. */
long long t_counter(const char *variable);

#endif
