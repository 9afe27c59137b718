/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface to the internals of Open MPI 5.0, for series.h. */
#ifndef TUPLEQ_PML_SERIES_5_0_H
#define TUPLEQ_PML_SERIES_5_0_H

#include "ompi/errhandler/errhandler.h"
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

/* The characters of an info's keys and values. */
typedef const char series_info_text;

/* Returns true if the job is to go on after the failure of a process (mpirun --with-ft ulfm). */
static inline bool series_has_fault_tolerance(void)
{
	return ompi_ftmpi_enabled;
}

/* Returns the errors of operations with a process that has failed, and in a communicator that was
 * revoked. */
static inline int series_failed_error(void)
{
	return MPI_ERR_PROC_FAILED;
}

static inline int series_revoked_error(void)
{
	return MPI_ERR_REVOKED;
}

/* Returns the error with which Open MPI wants a request to end, or MPI_SUCCESS. Before Open
 * MPI cancels the request, it stores the error there. MPI_ERR_PROC_FAILED_PENDING ends no request:
 * Open MPI stores that for a receive from any source, which waits for the user to acknowledge. */
static inline int series_given_error(const ompi_request_t *request)
{
	int error = request->req_status.MPI_ERROR;

	return ompi_ftmpi_enabled && error != MPI_ERR_PROC_FAILED_PENDING ? error : MPI_SUCCESS;
}

static inline bool series_is_revoked(ompi_communicator_t *comm)
{
	return ompi_comm_is_revoked(comm);
}

/* Records that the communicator was revoked, or that its collectives were. */
static inline void series_mark_revoked(ompi_communicator_t *comm, bool coll_only)
{
	comm->coll_revoked = true;
	if (!coll_only)
		comm->comm_revoked = true;
}

/* Returns the error of an operation that waits for a message from `source`, or OMPI_SUCCESS. */
static inline int series_check(ompi_communicator_t *comm, int source)
{
	int rc = OMPI_SUCCESS;

	if (ompi_ftmpi_enabled)
		ompi_comm_iface_p2p_check_proc(comm, source, &rc);
	return rc;
}

static inline bool series_has_failed(ompi_proc_t *proc)
{
	return !ompi_proc_is_active(proc);
}

/* Reports that a process has failed. Open MPI tells the other processes. */
static inline void series_report_failure(ompi_proc_t *proc)
{
	ompi_errhandler_proc_failed(proc);
}

/* Members of the PML's module that other series don't have. pml_get_transports is left out, because
 * Open MPI prints its result under UCX's name. */
#define SERIES_PML_MODULE(revoke) .pml_revoke_comm = (revoke)

/* Initialises the BTLs, which are for the PML to do here: one-sided communication (osc/rdma) needs
 * one. The result is ignored: osc/rdma says when a window is made that there is no BTL. */
static inline void series_open_btls(bool mpi_threads)
{
	if (!mca_bml_base_inited())
		mca_bml_base_init(true, mpi_threads);
}

/*
 * Adds processes to the BTLs, which is for the PML to do here. Only fault tolerance needs that,
 * whose own messages go by any BTL that has active messages; osc/rdma adds processes itself.
 */
static inline int series_add_to_btls(ompi_proc_t **procs, size_t n)
{
	opal_bitmap_t reachable;
	int rc;

	if (!ompi_ftmpi_enabled || !n)
		return OMPI_SUCCESS;
	OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
	rc = opal_bitmap_init(&reachable, (int)n);
	if (rc == OPAL_SUCCESS)
		rc = mca_bml.bml_add_procs(n, procs, &reachable);
	OBJ_DESTRUCT(&reachable);
	return rc;
}

static inline int series_delete_from_btls(ompi_proc_t **procs, size_t n)
{
	return ompi_ftmpi_enabled ? mca_bml.bml_del_procs(n, procs) : OMPI_SUCCESS;
}

#define SERIES_PML_FLAGS MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID

/* The highest index of a communicator with fault tolerance, where epochs have the other bits. */
#define SERIES_MAX_INDEX 0xffff

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

	/* With fault tolerance, messages to a communicator that was revoked may come after its
	 * index is used again, with another epoch. */
	if (OMPI_COMM_IS_GLOBAL_INDEX(comm))
		return ompi_ftmpi_enabled ? (comm->c_epoch & 0x7fff) << 16 | comm->c_index
					  : comm->c_index;
	hash = (id->cid_base ^ id->cid_sub.u64 * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
	return 1u << 31 | (uint32_t)(hash >> 33);
}

#endif
