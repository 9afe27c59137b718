/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - the MPI calls of the solver, with the time that they take.
 */
#ifndef SP_COMM_H
#define SP_COMM_H

#include <mpi.h>
#include <stddef.h>

/* The first of the faces' tags, one for each direction of each axis, and the tag of all sweeps. */
enum { TAG_FACES = 1, TAG_SWEEP = 10 };

/* Call the MPI functions of those names. */
MPI_Request comm_irecv(double *buf, size_t count, int from, int tag);
MPI_Request comm_isend(const double *buf, size_t count, int to, int tag);
void comm_waitall(int n, MPI_Request *request);

/* From now on there are no other ranks: a receive gets what the next send to any rank has, as far
 * as it goes. */
void comm_alone(void);

/* Returns the seconds in these three functions since comm_reset(). */
double comm_seconds(void);
void comm_reset(void);

/* Returns zeroed memory for `count` doubles. Ends the program if there is none. */
double *comm_memory(size_t count);
/* Prints a message and ends the job. */
_Noreturn void comm_die(const char *why);

#endif
