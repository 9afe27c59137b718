/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong.h - a message to and fro.
 */
#ifndef BENCH_PINGPONG_H
#define BENCH_PINGPONG_H

#include "pair.h"

/* Rank 0 gets half of each round trip in us; half_us has room for n. Both ranks call it. */
void pingpong(const struct pair *p, size_t bytes, long n, double *half_us);

#endif
