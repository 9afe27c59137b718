/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traces.h - the trace of a run (softhca run --trace): the processes' records (fabric/trace.h)
 * become one file in the trace event format, as JSON, which Perfetto and chrome://tracing open.
 */
#ifndef SHCA_TRACES_H
#define SHCA_TRACES_H

#include "parts.h"

/* Writes the file. Returns 0 or -errno. */
int shca_traces_write(struct shca_parts *parts);

#endif
