/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators as contexts of matching, and the arguments of calls as the library takes them. */
#ifndef TUPLEQ_PML_COMM_H
#define TUPLEQ_PML_COMM_H

#include "pml.h"

/* The PML's part of a communicator. */
struct mca_pml_comm_t {
	struct tq_ctx *ctx;
	uint32_t assertions; /* those that have been passed to ctx */
	int refs;            /* of the communicator and of its requests */
	bool is_gone;        /* Open MPI has destroyed the communicator */
};

/* Adds n references, of which other threads may drop some meanwhile. Returns their number. */
static inline int mca_pml_tupleq_add_refs(int *refs, int n)
{
	if (!opal_using_threads())
		return *refs += n;
	return __atomic_add_fetch(refs, n, __ATOMIC_ACQ_REL);
}

/* Drops a reference to the PML's part of a communicator. */
void mca_pml_tupleq_comm_put(struct mca_pml_comm_t *pml_comm);

int mca_pml_tupleq_add_comm(struct ompi_communicator_t *comm);
int mca_pml_tupleq_del_comm(struct ompi_communicator_t *comm);
/* Ends the operations of a communicator that was revoked, or with `coll_only` those of its
 * collectives, because a process has failed. */
int mca_pml_tupleq_revoke_comm(struct ompi_communicator_t *comm, bool coll_only);
void mca_pml_tupleq_comm_update_assertions(struct ompi_communicator_t *comm);

/* Returns the communicator's context, whose flags are updated first if the assertions have changed.
 */
static inline struct tq_ctx *mca_pml_tupleq_ctx(struct ompi_communicator_t *comm)
{
	if (OPAL_UNLIKELY(comm->c_pml_comm->assertions != series_assertions(comm)))
		mca_pml_tupleq_comm_update_assertions(comm);
	return comm->c_pml_comm->ctx;
}

static inline int32_t mca_pml_tupleq_tag(int tag)
{
	return tag == OMPI_ANY_TAG ? TQ_ANY_TAG : tag;
}

static inline int mca_pml_tupleq_source(int source)
{
	return source == OMPI_ANY_SOURCE ? TQ_ANY_SOURCE : source;
}

#endif
