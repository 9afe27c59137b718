/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface to the internals of Open MPI 5.0, for series.h. */
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

/* The number of pointers that Open MPI stores behind the request of a nonblocking collective, with
 * those for Fortran's arrays. */
#define SERIES_COLL_RETAINED 12

/* Returns why the PML can't be used in this job, or NULL. With fault tolerance, Open MPI reads
 * requests as if they were those of pml/ob1, and expects that the operations of a revoked
 * communicator end. */
static inline const char *series_obstacle(void)
{
	return ompi_ftmpi_enabled
		       ? "Fault tolerance (mpirun --with-ft) isn't supported: leave it out, or use "
			 "--mca pml ob1 --mca btl tupleq,self."
		       : NULL;
}

/* Reports that operations on the communicator go on, because Open MPI ignores the result. */
static inline int series_revoke_comm(ompi_communicator_t *comm, bool coll_only)
{
	(void)coll_only;
	opal_output(
		0,
		"pml tupleq, %s: MPIX_Comm_revoke doesn't end operations that are under way "
		"with this PML; a program that recovers from failures needs --mca pml ob1 --mca "
		"btl tupleq,self.",
		comm->c_name);
	return OMPI_ERR_NOT_SUPPORTED;
}

/* Members of the PML's module that other series don't have. pml_get_transports is left out, because
 * Open MPI prints its result under UCX's name. */
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
 * Returns the number that messages carry for the communicator. A communicator that was created from
 * a group (MPI_Session) has an index that differs between processes and an id of 128 bits that is
 * the same on all. Its number is a hash of that id, above all indices. If two communicators have
 * the same number, the second one is refused, because tq_ctx_add() refuses a number that is in use.
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
