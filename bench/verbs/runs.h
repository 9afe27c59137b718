/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.h - the runs of rows: by verbs (runs.c), and of the bare machine (bare.c). */
#ifndef BENCH_VERBS_RUNS_H
#define BENCH_VERBS_RUNS_H

#include "row.h"

/* The quantities that are measured: half round trips in microseconds. */
row_fn run_bare_pingpong, run_send_pingpong, run_write_pingpong;
/* GB/s (10^9 bytes). */
row_fn run_vm_writev, run_bandwidth;
/* Million messages per second. */
row_fn run_bare_ring, run_rate;
/* Three rows, in microseconds: post to completion, the post call, and the time that overlapped
 * computation took longer. */
row_fn run_post;

#endif
