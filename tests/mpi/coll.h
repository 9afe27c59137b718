/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - every collective of MPI as a function that checks its result, blocking or not.
 *
 * Element i of rank r's contribution is coll_value(r, i), so a wrong result shows which element it
 * is.
 */
#ifndef T_COLL_H
#define T_COLL_H

#include <stdbool.h>

#include <mpi.h>

struct coll {
	MPI_Comm comm;
	int rank, size;
	bool nonblocking;
	int n; /* elements per rank */
	int salt;
};

struct coll_test {
	const char *name;
	void (*run)(const struct coll *c);
};

extern const struct coll_test
	coll_moving[]; /* data from one place to another; ends with a NULL name */
extern const struct coll_test coll_reducing[];
extern const struct coll_test coll_neighbours[]; /* on a periodic cartesian communicator */

int coll_value(const struct coll *coll, int rank, int i);
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
