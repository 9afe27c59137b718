/* SPDX-License-Identifier: BSD-3-Clause */
/* What only Open MPI 5.0 has. Included by series.h. */
#ifndef TUPLEQ_PML_SERIES_5_0_H
#define TUPLEQ_PML_SERIES_5_0_H

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

/* Members of the PML's module that other series don't have. */
#define SERIES_PML_MODULE .pml_revoke_comm = series_revoke_comm

/* Returns the number of the communicator in messages. */
static inline uint32_t series_context_id(const ompi_communicator_t *comm)
{
	return comm->c_index;
}

#endif
