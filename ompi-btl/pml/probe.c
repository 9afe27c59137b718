/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include <errno.h>

#include "comm.h"
#include "request.h"

static void set_status(ompi_status_public_t *to, const struct tq_status *from)
{
	if (to != MPI_STATUS_IGNORE)
		mca_pml_tupleq_status_set(to, from, UINT64_MAX);
}

/* Makes progress of all else than messages, for programs that call nothing but probes. The library
 * has made progress just now. */
static void progress_others(void)
{
	__atomic_store_n(&mca_pml_tupleq.has_polled, true, __ATOMIC_RELAXED);
	opal_progress();
}

int mca_pml_tupleq_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
			  ompi_status_public_t *status)
{
	struct tq_status found;
	int rc = tq_probe(mca_pml_tupleq_ctx(comm), mca_pml_tupleq_source(src),
			  mca_pml_tupleq_tag(tag), &found);

	if (rc < 0)
		return mca_pml_tupleq_mpi_error(rc);
	*matched = rc;
	if (rc)
		set_status(status, &found);
	else
		progress_others();
	return OMPI_SUCCESS;
}

int mca_pml_tupleq_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
	ompi_communicator_t *held = mca_pml_tupleq_hold(comm);
	int matched = 0, rc;

	do {
		rc = series_check(comm, src);
		if (rc == OMPI_SUCCESS)
			rc = mca_pml_tupleq_iprobe(src, tag, comm, &matched, status);
	} while (rc == OMPI_SUCCESS && !matched);
	mca_pml_tupleq_let_go(held);
	return rc;
}

int mca_pml_tupleq_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
			   ompi_message_t **message, ompi_status_public_t *status)
{
	ompi_message_t *handle = ompi_message_alloc();
	struct tq_status found;
	struct tq_msg *msg;
	int rc;

	if (!handle)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*matched = 0;
	rc = tq_mprobe(mca_pml_tupleq_ctx(comm), mca_pml_tupleq_source(src),
		       mca_pml_tupleq_tag(tag), &found, &msg);
	if (rc <= 0) {
		ompi_message_return(handle);
		if (rc < 0)
			return mca_pml_tupleq_mpi_error(rc);
		progress_others();
		return OMPI_SUCCESS;
	}
	/* The user may free the communicator before the message is received. Its context id must
	 * not be used again before that. */
	OBJ_RETAIN(comm);
	handle->comm = comm;
	handle->req_ptr = msg;
	handle->peer = found.source;
	handle->count = found.length;
	set_status(status, &found);
	*message = handle;
	*matched = 1;
	return OMPI_SUCCESS;
}

int mca_pml_tupleq_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
			  ompi_status_public_t *status)
{
	ompi_communicator_t *held = mca_pml_tupleq_hold(comm);
	int matched = 0, rc;

	do {
		rc = series_check(comm, src);
		if (rc == OMPI_SUCCESS)
			rc = mca_pml_tupleq_improbe(src, tag, comm, &matched, message, status);
	} while (rc == OMPI_SUCCESS && !matched);
	mca_pml_tupleq_let_go(held);
	return rc;
}
