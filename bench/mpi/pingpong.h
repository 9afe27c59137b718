/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong.h - round trips of a message.
 */
#ifndef BENCH_MPI_PINGPONG_H
#define BENCH_MPI_PINGPONG_H

#include "pair.h"

/* Measures n round trips between two ranks, which both call this function. Rank 0 gets half of each
 * round trip in us. */
void pingpong(const struct job_pair *pair, size_t bytes, long n, double *half_us);

#endif
