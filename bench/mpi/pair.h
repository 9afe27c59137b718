/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - two ranks that measure: start and end, buffers, message sizes, number of repeats.
 */
#ifndef BENCH_MPI_PAIR_H
#define BENCH_MPI_PAIR_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#define PAIR_MAX_SIZES 64

/* The tags of data, of the empty messages by which ranks keep step, and the first of further data.
 */
enum { TAG_DATA = 1, TAG_STEP, TAG_OTHER };

struct job_pair {
	int rank, peer;
	int ranks; /* of the job */
	size_t size[PAIR_MAX_SIZES];
	unsigned nsizes;
	char *send_buf, *recv_buf;
};

/* Prints a message and ends the job with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

/* Parses "1,8K,4M"; "A-B" stands for A, 2A, 4A, ... up to B. */
void pair_sizes(struct job_pair *pair, const char *list);

/* Returns memory for n timings; free() takes it back. */
double *pair_samples(long n);

/* Starts MPI. */
void pair_start(struct job_pair *pair, int *argc, char ***argv);
/*
 * Allocates and fills the buffers for the largest size. Ends the program if the job hasn't `ranks`
 * ranks; 0: any number will do. Comes after the options, so that --help runs on one rank too.
 */
void pair_allocate(struct job_pair *pair, int ranks);
/* Clears the receive buffer before a size is measured. */
void pair_clear(const struct job_pair *pair, size_t bytes);
/* Ends the program unless the receive buffer has the data that the peer sends. */
void pair_check(const struct job_pair *pair, size_t bytes);
/* Ends MPI and frees the buffers. */
void pair_end(struct job_pair *pair);

/* Signals the peer that this rank is ready for the next step. */
void pair_signal(const struct job_pair *pair);
/* Waits for that signal from the peer. */
void pair_await(const struct job_pair *pair);

/* Starts a receive from the peer and a send to it. */
void pair_exchange(const struct job_pair *pair, size_t bytes, MPI_Request request[2]);

/* Returns rank 0's value on all ranks. */
long pair_agree(long value);

/* Returns how often something that takes `each_us` fits into `ms`, from `least` to `most`. */
long pair_repeats(double each_us, long ms, long least, long most);

#endif
