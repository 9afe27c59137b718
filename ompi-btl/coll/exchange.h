/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A nonblocking allgather of a few bytes by messages, for the set-up of a communicator and for
 * communicators without a segment. (J. Bruck, C. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient
 * Algorithms for All-to-All Communications in Multiport Message-Passing Systems", 1997.)
 */
#ifndef TUPLEQ_COLL_EXCHANGE_H
#define TUPLEQ_COLL_EXCHANGE_H

#include "pml/series.h"

/*
 * The head of each message. If a process of a communicator has failed, messages may be left over
 * when the others free the communicator, and be matched in the next one with its context id. The
 * checksum tells them apart, because the next one doesn't contain the failed process.
 */
struct mca_coll_tupleq_exchange_head {
	uint64_t members; /* checksum of the communicator's processes */
	uint64_t refused; /* not 0: the sender takes no part */
};

struct mca_coll_tupleq_exchange {
	ompi_communicator_t *comm;
	int tag;
	int rank, size;
	int have; /* blocks that have arrived: this process's, and those of the next ranks */
	bool posted, sent; /* the receive and the send of the step have been started */
	size_t bytes;
	uint64_t members;
	unsigned char *blocks; /* this process's first; NULL: not under way */
	struct mca_coll_tupleq_exchange_head *in, *out; /* messages, allocated with the blocks */
	ompi_request_t *requests[2];
};

/* Starts an exchange, which needs a tag of its own. Returns 0 or -ENOMEM. */
int mca_coll_tupleq_exchange_start(struct mca_coll_tupleq_exchange *exchange,
				   ompi_communicator_t *comm, int tag, const void *mine,
				   size_t bytes);
/* Advances an exchange. Returns 1 if it has ended, 0 if it hasn't yet, or -EIO if it failed. When
 * this function or the one before fails, it has sent a refusal to the processes that wait for this
 * one. */
int mca_coll_tupleq_exchange_poll(struct mca_coll_tupleq_exchange *exchange);
/* Refuses to take part. The processes that wait for this one fail, and refuse in turn. `have` is as
 * in the struct, so 1 before anything was sent. */
void mca_coll_tupleq_exchange_refuse(ompi_communicator_t *comm, int tag, int have);
/* Returns the bytes of process `rank`. */
const void *mca_coll_tupleq_exchange_of(const struct mca_coll_tupleq_exchange *exchange, int rank);
/* Frees an exchange that has ended or failed. */
void mca_coll_tupleq_exchange_end(struct mca_coll_tupleq_exchange *exchange);

#endif
