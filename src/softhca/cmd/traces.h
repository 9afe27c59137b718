/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traces.h - the trace of a run: the processes' records (fabric/trace.h) become one file in the
 * trace event format, as JSON, which Perfetto and chrome://tracing open.
 */
#ifndef SHCA_TRACES_H
#define SHCA_TRACES_H

#include <limits.h>
#include <stdio.h>

struct shca_traces {
	char parts[PATH_MAX]; /* the folder of the records; "" = nothing is traced */
	FILE *out;
};

/* Makes the user's file and, beside it, the folder of the records. Returns 0, or -errno with a
 * sentence in err. */
int shca_traces_begin(struct shca_traces *traces, const char *file, char *err, size_t errlen);
/* Links to the folder from a fabric's directory. Returns 0 or -errno. */
int shca_traces_link(const struct shca_traces *traces, const char *dir);
/* Removes the folder of a run that doesn't take place. */
void shca_traces_drop(struct shca_traces *traces);
/* Writes the user's file, and removes the folder. Returns 0, or -errno with a sentence in err. */
int shca_traces_end(struct shca_traces *traces, char *err, size_t errlen);

#endif
