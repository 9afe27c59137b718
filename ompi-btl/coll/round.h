/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking operations of one round: everything that a process receives and sends is known when
 * the operation is called, and nothing depends on a message that has yet to come. All receives are
 * posted and all sends started at once, so the adapter does the rest.
 *
 * Each communicator has a ring of tags. The n-th operation takes entry n modulo the length of the
 * ring on every rank, so the same tuples (communicator, rank, tag) serve again and get queues. An
 * operation whose entry is still in use waits in the entry's list; progress starts it.
 */
#ifndef TUPLEQ_COLL_ROUND_H
#define TUPLEQ_COLL_ROUND_H

#include <stdbool.h>
#include <stddef.h>

#include "pml/series.h"

struct mca_coll_tupleq_module;

/* A message of an operation. */
struct mca_coll_tupleq_transfer {
	void *addr;
	size_t count;
	ompi_datatype_t *type;
	int peer;
};

/* The messages of one direction; `requests[i]` belongs to `transfers[i]` once it is started. */
struct mca_coll_tupleq_transfers {
	struct mca_coll_tupleq_transfer *transfers;
	ompi_request_t **requests;
	int count;
};

struct mca_coll_tupleq_round {
	struct series_coll_request super;
	struct mca_coll_tupleq_module *module;
	ompi_communicator_t *comm;
	struct mca_coll_tupleq_transfers receives, sends;
	void *memory;        /* of both arrays */
	unsigned char *pack; /* packed copies of what MPI_IN_PLACE overwrites, or NULL */
	int entry;           /* in the ring */
	int completed;       /* transfers known to be complete: receives first */
	int rc;              /* the first error */
	struct mca_coll_tupleq_round *entry_next, *entry_prev;
	struct mca_coll_tupleq_round *active_next, *active_prev;
};
typedef struct mca_coll_tupleq_round mca_coll_tupleq_round_t;
OBJ_CLASS_DECLARATION(mca_coll_tupleq_round_t);

/* Returns an operation with room for so many messages of each direction, which has the next entry
 * of the ring, or NULL without memory. */
struct mca_coll_tupleq_round *mca_coll_tupleq_round_new(struct mca_coll_tupleq_module *module,
							int max_receives, int max_sends);

/* Adds a message. One without bytes, or with MPI_PROC_NULL, is left out on both sides. */
void mca_coll_tupleq_round_receive(struct mca_coll_tupleq_round *round,
				   struct mca_coll_tupleq_transfer message);
void mca_coll_tupleq_round_send(struct mca_coll_tupleq_round *round,
				struct mca_coll_tupleq_transfer message);

/* Starts the operation, now or later, if `rc` is OMPI_SUCCESS, and sets *request. Otherwise frees
 * the operation and returns `rc`. */
int mca_coll_tupleq_round_start(struct mca_coll_tupleq_round *round, int rc,
				ompi_request_t **request);

/* Ends the polling for operations, when the component closes. */
void mca_coll_tupleq_round_close(void);

/* Registers the counters as MPI_T performance variables. Returns an Open MPI error. */
int mca_coll_tupleq_round_register(const mca_base_component_t *version);

/* ---- round_dense.c, round_neighbor.c: the calls ---- */

/* Installs the calls in a module. */
void mca_coll_tupleq_round_dense(mca_coll_base_module_t *base);
void mca_coll_tupleq_round_neighbor(mca_coll_base_module_t *base);

#endif
