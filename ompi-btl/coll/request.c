/* SPDX-License-Identifier: BSD-3-Clause */
/* The request of a nonblocking collective. */
#include "coll.h"

/* Refuses an active request, because progress uses that until its end. */
static int request_free(ompi_request_t **request)
{
	if (!series_request_has_ended(*request))
		return MPI_ERR_REQUEST;
	OBJ_RELEASE(*request);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

/* Refuses, because MPI has no cancelling of collectives. */
static int request_cancel(ompi_request_t *request, int complete)
{
	(void)request;
	(void)complete;
	return MPI_ERR_REQUEST;
}

void mca_coll_tupleq_request_construct(ompi_request_t *request)
{
	request->req_type = OMPI_REQUEST_COLL;
	request->req_free = request_free;
	request->req_cancel = request_cancel;
}
