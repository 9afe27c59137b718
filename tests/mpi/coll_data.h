/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_data.h - the data of tests of collectives, and calls that may be nonblocking.
 *
 * Element i of rank r's contribution is coll_value(r, i), so a wrong result shows which element it
 * is.
 */
#ifndef T_COLL_DATA_H
#define T_COLL_DATA_H

#include <stdbool.h>

#include <mpi.h>

struct coll {
	MPI_Comm comm;
	int rank, size;
	bool nonblocking;
	int n; /* elements per rank */
	int salt;
};

int coll_value(const struct coll *coll, int rank, int i);
/* Fills p[0..n) with the elements from, from + 1, ... of rank's contribution. */
void coll_fill(const struct coll *coll, int *p, int n, int rank, int from);
/* Checks that p[0..n) are elements from, from + 1, ... of rank's contribution. */
void coll_expect(const struct coll *coll, const int *p, int n, int rank, int from,
		 const char *what);
/* Waits for a nonblocking collective, sometimes by testing. */
void coll_wait(MPI_Request *req);

/* Makes the call or its nonblocking twin. */
#define COLL(c, call, icall, ...)                      \
	do {                                           \
		if ((c)->nonblocking) {                \
			MPI_Request coll_req;          \
                                                       \
			icall(__VA_ARGS__, &coll_req); \
			coll_wait(&coll_req);          \
		} else {                               \
			call(__VA_ARGS__);             \
		}                                      \
	} while (0)

#endif
