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

/* Call MPI_Irecv, MPI_Isend and MPI_Waitall, and take their time. */
MPI_Request comm_irecv(double *buf, size_t count, int from, int tag);
MPI_Request comm_isend(const double *buf, size_t count, int to, int tag);
void comm_waitall(int n, MPI_Request *request);

/* Switches to a single rank: from now on a receive gets the data of the next send to any rank, as
 * far as they go. */
void comm_alone(void);

/* Returns the seconds in these three functions since comm_reset(). */
double comm_seconds(void);
void comm_reset(void);

/* Returns zeroed memory for `count` doubles. Ends the program if there is none. */
double *comm_memory(size_t count);
/* Prints a message and ends the job. */
_Noreturn void comm_die(const char *why);

#endif
