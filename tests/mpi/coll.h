/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.h - every collective of MPI as a function that checks its result, blocking or not. */
#ifndef T_COLL_H
#define T_COLL_H

#include "coll_data.h"

struct coll_test {
	const char *name;
	void (*run)(const struct coll *c);
};

extern const struct coll_test
	coll_moving[]; /* data from one place to another; ends with a NULL name */
extern const struct coll_test coll_reducing[];
extern const struct coll_test coll_neighbours[]; /* on a periodic cartesian communicator */

#endif
