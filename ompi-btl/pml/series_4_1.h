/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface to the internals of Open MPI 4.1, for series.h. */
#ifndef TUPLEQ_PML_SERIES_4_1_H
#define TUPLEQ_PML_SERIES_4_1_H

#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"
#include "opal/threads/thread_usage.h"

#define SERIES_MODEX_GLOBAL OPAL_PMIX_GLOBAL

#define SERIES_PML_VERSION MCA_PML_BASE_VERSION_2_0_0

#define SERIES_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
typedef mca_coll_base_component_2_0_0_t series_coll_component_t;

/* The number of pointers that Open MPI stores behind the request of a nonblocking collective. */
#define SERIES_COLL_RETAINED 4

/* The characters of an info's keys and values. */
typedef char series_info_text;

/* Fault tolerance: this series has none. */
static inline bool series_has_fault_tolerance(void)
{
	return false;
}

static inline int series_failed_error(void)
{
	return MPI_ERR_INTERN;
}

static inline int series_revoked_error(void)
{
	return MPI_ERR_INTERN;
}

static inline int series_given_error(const ompi_request_t *request)
{
	(void)request;
	return MPI_SUCCESS;
}

static inline bool series_is_revoked(const ompi_communicator_t *comm)
{
	(void)comm;
	return false;
}

static inline void series_mark_revoked(ompi_communicator_t *comm, bool coll_only)
{
	(void)comm;
	(void)coll_only;
}

static inline int series_check(ompi_communicator_t *comm, int source)
{
	(void)comm;
	(void)source;
	return OMPI_SUCCESS;
}

static inline bool series_has_failed(const ompi_proc_t *proc)
{
	(void)proc;
	return false;
}

static inline void series_report_failure(ompi_proc_t *proc)
{
	(void)proc;
}

/* Refuses to take a checkpoint. */
static inline int series_ft_event(int state)
{
	(void)state;
	return OMPI_ERR_NOT_SUPPORTED;
}

/* Members of the PML's module that other series don't have. */
#define SERIES_PML_MODULE(revoke) .pml_ft_event = series_ft_event

#define SERIES_PML_FLAGS 0

/* The highest index of a communicator with fault tolerance. */
#define SERIES_MAX_INDEX INT32_MAX

/* Does nothing: MPI_Init has initialised the BTLs, for one-sided communication. */
static inline void series_open_btls(bool mpi_threads)
{
	(void)mpi_threads;
}

/* Does nothing: MPI_Init has added the processes. */
static inline int series_add_to_btls(ompi_proc_t **procs, size_t n)
{
	(void)procs;
	(void)n;
	return OMPI_SUCCESS;
}

static inline int series_delete_from_btls(ompi_proc_t **procs, size_t n)
{
	(void)procs;
	(void)n;
	return OMPI_SUCCESS;
}

/* Returns the number that messages carry for the communicator. */
static inline uint32_t series_context_id(const ompi_communicator_t *comm)
{
	return comm->c_contextid;
}

#endif
