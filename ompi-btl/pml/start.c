/* SPDX-License-Identifier: BSD-3-Clause */
#include "start.h"

#include "recv.h"
#include "send.h"

/* Ends a persistent operation that could not be started. */
static void end_unstarted(mca_pml_tupleq_request_t *request, int error)
{
	request->op.ompi.req_status.MPI_ERROR = ompi_errcode_get_mpi_code(error);
	request->op.ompi.req_status._ucount = 0;
	series_handed_over(&request->op.ompi);
	ompi_request_complete(&request->op.ompi, true);
	mca_pml_tupleq_request_put(request);
}

/* Starts persistent requests, and returns the first error. Open MPI's MPI_Startall ignores the
 * result, and MPI_Start calls no error handler for it, so a request that can't be started also
 * completes with its error. The others are started nevertheless. */
int mca_pml_tupleq_start(size_t count, ompi_request_t **requests)
{
	mca_pml_tupleq_request_t *request;
	int first = OMPI_SUCCESS, rc;
	size_t i;

	for (i = 0; i < count; i++) {
		request = (mca_pml_tupleq_request_t *)requests[i];
		mca_pml_tupleq_add_refs(&request->refs, 1);
		series_request_pending(&request->op.ompi);
		rc = request->op.kind == TUPLEQ_OP_RECV ? mca_pml_tupleq_recv_start(request)
							: mca_pml_tupleq_send_start(request);
		if (rc != OMPI_SUCCESS)
			end_unstarted(request, rc);
		if (first == OMPI_SUCCESS)
			first = rc;
	}
	return first;
}
