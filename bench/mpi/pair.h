/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - two ranks that measure: start and end, buffers, message sizes, how often a thing is
 * done.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#define PAIR_MAX_SIZES 64

/* Empty messages with which the ranks keep step have a tag of their own. */
enum { TAG_DATA = 1, TAG_STEP, TAG_OTHER };

struct pair {
	int rank, peer;
	int ranks; /* that the program is for; 0: any number */
	size_t size[PAIR_MAX_SIZES];
	unsigned nsizes;
	char *send_buf, *recv_buf;
};

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

/* Parses "1,8K,4M"; "A-B" stands for the powers of two from A to B. */
void pair_sizes(struct pair *p, const char *text);

/* Room for n timings; free() takes it back. */
double *pair_samples(long n);

/* Starts MPI, for a program of two ranks. */
void pair_start(struct pair *p, int *argc, char ***argv);
/* Buffers for the largest size, touched; ends the program if it is for another number of ranks.
 * After the options are known, so that --help needs no two. */
void pair_allocate(struct pair *p);
/* Before a size is measured, and after: what was received is what the peer sends, or the program
 * ends. */
void pair_clear(const struct pair *p, size_t bytes);
void pair_check(const struct pair *p, size_t bytes);
/* Ends MPI. */
void pair_end(struct pair *p);

/* The peer is, or we are, ready for the next step. */
void pair_tell(const struct pair *p);
void pair_hear(const struct pair *p);

/* Starts a message of each to the other. */
void pair_exchange(const struct pair *p, size_t bytes, MPI_Request request[2]);

/* Both ranks get what rank 0 has. */
long pair_agree(long value);

/* How often something of that length fits into a time, within limits; lengths in us, time in ms. */
long pair_repeats(double each_us, long ms, long least, long most);

#endif
