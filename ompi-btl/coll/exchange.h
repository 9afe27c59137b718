/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few bytes from each process to each, by messages, and without waiting: for what comes before
 * there is memory to write to, and where there never is. (J. Bruck, C. Ho, S. Kipnis, E. Upfal,
 * D. Weathersby, "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing
 * Systems", 1997.)
 */
#ifndef TUPLEQ_COLL_EXCHANGE_H
#define TUPLEQ_COLL_EXCHANGE_H

#include "pml/series.h"

/*
 * What each message begins with. Where a process of a communicator is gone, messages may be left
 * over when the others free it, and be taken for those of the next one with its context id. That
 * one has other processes: those that are gone aren't among them.
 */
struct mca_coll_tupleq_exchange_head {
	uint64_t members; /* a sum over the communicator's processes */
	uint64_t refused; /* not 0: the sender doesn't go on */
};

struct mca_coll_tupleq_exchange {
	ompi_communicator_t *comm;
	int tag;
	int rank, size;
	int have; /* processes whose bytes are here: this one, and those behind it in turn */
	bool posted;
	size_t bytes;
	uint64_t members;
	unsigned char *blocks; /* this process's first; NULL: nothing is under way */
	struct mca_coll_tupleq_exchange_head *in, *out; /* messages; in the same memory */
	ompi_request_t *requests[2];
};

/* With a tag of its own. 0, -ENOMEM. */
int mca_coll_tupleq_exchange_start(struct mca_coll_tupleq_exchange *x, ompi_communicator_t *comm,
				   int tag, const void *mine, size_t bytes);
/* 1: all is there; 0: not yet; -EIO: it never will be. Where one of these two fails, those that
 * wait for this process have been told. */
int mca_coll_tupleq_exchange_poll(struct mca_coll_tupleq_exchange *x);
/* Takes no part in it: those that wait for this process learn that it won't come about, and tell
 * those that wait for them. `have` as there: 1 where nothing was sent. */
void mca_coll_tupleq_exchange_refuse(ompi_communicator_t *comm, int tag, int have);
/* What process `rank` gave. */
const void *mca_coll_tupleq_exchange_of(const struct mca_coll_tupleq_exchange *x, int rank);
/* After its end, or a failure. */
void mca_coll_tupleq_exchange_end(struct mca_coll_tupleq_exchange *x);

#endif
