/* SPDX-License-Identifier: BSD-3-Clause */
/* What only Open MPI 5.0 has. Included by series.h. */
#ifndef TUPLEQ_PML_SERIES_5_0_H
#define TUPLEQ_PML_SERIES_5_0_H

#include "ompi/mca/bml/base/base.h"
#include "ompi/runtime/params.h"
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"
#include "opal/util/opal_environ.h"

#define SERIES_MODEX_GLOBAL PMIX_GLOBAL

#define SERIES_PML_VERSION MCA_PML_BASE_VERSION_2_1_0

#define SERIES_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
typedef mca_coll_base_component_2_4_0_t series_coll_component_t;

/* Pointers behind the request of a nonblocking collective that are Open MPI's: Fortran's arrays
 * among them. */
#define SERIES_COLL_RETAINED 12

/* Returns why the PML can't be used in this job; NULL: it can. With fault tolerance Open MPI looks
 * into requests as if they were pml/ob1's, and relies on a revoked communicator's operations to
 * end. */
static inline const char *series_obstacle(void)
{
	return ompi_ftmpi_enabled
		       ? "Fault tolerance (mpirun --with-ft) isn't supported: leave it out, or use "
			 "--mca pml ob1."
		       : NULL;
}

/* Says that operations on the communicator go on: Open MPI doesn't look at the result. */
static inline int series_revoke_comm(ompi_communicator_t *comm, bool coll_only)
{
	(void)coll_only;
	opal_output(0,
		    "pml tupleq, %s: MPIX_Comm_revoke doesn't end operations that are under way "
		    "with this PML; a program that recovers from failures needs --mca pml ob1.",
		    comm->c_name);
	return OMPI_ERR_NOT_SUPPORTED;
}

/* Members of the PML's module that other series don't have. There is no pml_get_transports, as
 * Open MPI prints what that returns under UCX's name. */
#define SERIES_PML_MODULE .pml_revoke_comm = series_revoke_comm

/* Initialises the BTLs, which are for the PML to do here: one-sided communication (osc/rdma) needs
 * one. What can't be initialised leaves that without a BTL, and says so when a window is made. */
static inline void series_open_btls(bool mpi_threads)
{
	if (!mca_bml_base_inited())
		mca_bml_base_init(true, mpi_threads);
}

#define SERIES_PML_FLAGS MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID

/*
 * Returns the number of the communicator in messages. One that was made of a group (MPI_Session)
 * has an index of its own in each process, and an id of 128 bits that all have. Its number is a
 * hash of that above all indices. Two such communicators of one number are refused when the second
 * is made, as tq_ctx_add() refuses a number that is in use.
 */
static inline uint32_t series_context_id(const ompi_communicator_t *comm)
{
	const ompi_comm_extended_cid_t *id = &comm->c_contextid;
	uint64_t hash;

	if (OMPI_COMM_IS_GLOBAL_INDEX(comm))
		return comm->c_index;
	hash = (id->cid_base ^ id->cid_sub.u64 * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
	return 1u << 31 | (uint32_t)(hash >> 33);
}

#endif
