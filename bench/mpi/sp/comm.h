/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - MPI as the solver uses it, with the time that it takes.
 */
#ifndef SP_COMM_H
#define SP_COMM_H

#include <mpi.h>
#include <stddef.h>

/* Each direction of each axis has a tag of its own when faces are exchanged; all sweeps share one.
 */
enum { TAG_FACES = 1, TAG_SWEEP = 10 };

MPI_Request comm_irecv(double *buf, size_t count, int from, int tag);
MPI_Request comm_isend(const double *buf, size_t count, int to, int tag);
void comm_waitall(int n, MPI_Request *request);

/* Seconds in these three since the last reset. */
double comm_seconds(void);
void comm_reset(void);

/* Zeroed memory, or the end of the program. */
double *comm_memory(size_t count);
_Noreturn void comm_die(const char *why);

#endif
