/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv.h"

#include <errno.h>

#include "comm.h"

/* The source of a receive: a rank and a tag, or the message that a matched probe has taken. */
struct from {
	ompi_communicator_t *comm;
	int source, tag;
	struct tq_msg *msg; /* NULL once its receive has started */
};

static inline int start(struct from *from, const struct tq_buf *buf, void *user,
			struct tq_req **req, struct tq_status *status)
{
	int rc;

	if (!from->msg)
		return tq_recv(mca_pml_tupleq_ctx(from->comm), mca_pml_tupleq_source(from->source),
			       mca_pml_tupleq_tag(from->tag), buf, user, req, status);
	rc = tq_mrecv(from->msg, buf, user, req, status);
	if (rc >= 0)
		from->msg = NULL;
	return rc;
}

static int blocking(struct from *from, void *addr, size_t count, ompi_datatype_t *type,
		    ompi_status_public_t *status)
{
	struct tq_status ended;
	struct mca_pml_tupleq_op op;
	struct tq_req *tq;
	int rc;

	rc = mca_pml_tupleq_buf_init(&op.buf, addr, count, type, false);
	if (rc != OMPI_SUCCESS)
		return rc;
	mca_pml_tupleq_op_init_blocking(&op);
	rc = start(from, &op.buf.tq, &op, &tq, &ended);
	if (rc < 0) {
		mca_pml_tupleq_buf_fini(&op.buf);
		return mca_pml_tupleq_mpi_error(rc);
	}
	if (rc)
		mca_pml_tupleq_ended(&op, &ended);
	else
		mca_pml_tupleq_wait(&op.ompi);
	if (status != MPI_STATUS_IGNORE)
		OMPI_COPY_STATUS(status, op.ompi.req_status, false);
	return op.ompi.req_status.MPI_ERROR;
}

static inline int nonblocking(struct from *from, void *addr, size_t count, ompi_datatype_t *type,
			      ompi_request_t **out)
{
	mca_pml_tupleq_request_t *request =
		mca_pml_tupleq_request_new(TUPLEQ_OP_RECV, from->source, from->tag, from->comm);
	struct tq_status ended;
	int rc;

	*out = MPI_REQUEST_NULL;
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_pml_tupleq_buf_init(&request->op.buf, addr, count, type, false);
	if (rc != OMPI_SUCCESS)
		goto undo;
	/* Before the receive is started: after that another thread may complete it. */
	*out = &request->op.ompi;
	rc = start(from, &request->op.buf.tq, request, &request->op.tq, &ended);
	if (rc < 0) {
		*out = MPI_REQUEST_NULL;
		rc = mca_pml_tupleq_mpi_error(rc);
		goto undo;
	}
	if (rc)
		mca_pml_tupleq_ended(&request->op, &ended);
	return OMPI_SUCCESS;
undo:
	mca_pml_tupleq_request_undo(request);
	return rc;
}

/*
 * Receives from any source with fault tolerance: the receive is given up if a process of the
 * communicator has failed, which Open MPI finds out while it waits for a request.
 */
static int blocking_from_any(struct from *from, void *addr, size_t count, ompi_datatype_t *type,
			     ompi_status_public_t *status)
{
	ompi_request_t *request;
	int rc = nonblocking(from, addr, count, type, &request);

	if (rc != OMPI_SUCCESS)
		return rc;
	rc = ompi_request_wait(&request, status);
	if (rc == OMPI_SUCCESS)
		return rc;
	if (!REQUEST_COMPLETE(request))
		ompi_request_cancel(request);
	while (!REQUEST_COMPLETE(request))
		opal_progress();
	/* A message that was matched before is received. */
	if (request->req_status._cancelled) {
		rc = series_peer_error();
	} else {
		if (status != MPI_STATUS_IGNORE)
			OMPI_COPY_STATUS(status, request->req_status, false);
		rc = request->req_status.MPI_ERROR;
	}
	ompi_request_free(&request);
	return rc;
}

int mca_pml_tupleq_recv(void *addr, size_t count, ompi_datatype_t *type, int src, int tag,
			ompi_communicator_t *comm, ompi_status_public_t *status)
{
	struct from from = {.comm = comm, .source = src, .tag = tag};
	ompi_communicator_t *held;
	int rc;

	if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
		if (status != MPI_STATUS_IGNORE)
			OMPI_COPY_STATUS(status, ompi_request_empty.req_status, false);
		return OMPI_SUCCESS;
	}
	if (OPAL_UNLIKELY(series_has_fault_tolerance() && src == OMPI_ANY_SOURCE))
		return blocking_from_any(&from, addr, count, type, status);
	held = mca_pml_tupleq_hold(comm);
	rc = blocking(&from, addr, count, type, status);
	mca_pml_tupleq_let_go(held);
	return rc;
}

int mca_pml_tupleq_irecv(void *addr, size_t count, ompi_datatype_t *type, int src, int tag,
			 ompi_communicator_t *comm, ompi_request_t **request)
{
	struct from from = {.comm = comm, .source = src, .tag = tag};

	if (OPAL_UNLIKELY(src == MPI_PROC_NULL)) {
		*request = &ompi_request_empty;
		return OMPI_SUCCESS;
	}
	return nonblocking(&from, addr, count, type, request);
}

static struct from from_message(const ompi_message_t *message)
{
	return (struct from){
		.comm = message->comm, .source = message->peer, .msg = message->req_ptr};
}

/* Frees the user's handle of a message, unless its receive couldn't be started. */
static void return_handle(ompi_message_t **message, struct from *from)
{
	if (from->msg)
		return;
	OBJ_RELEASE(from->comm);
	ompi_message_return(*message);
	*message = MPI_MESSAGE_NULL;
}

int mca_pml_tupleq_mrecv(void *addr, size_t count, ompi_datatype_t *type, ompi_message_t **message,
			 ompi_status_public_t *status)
{
	struct from from = from_message(*message);
	int rc = blocking(&from, addr, count, type, status);

	return_handle(message, &from);
	return rc;
}

int mca_pml_tupleq_imrecv(void *addr, size_t count, ompi_datatype_t *type, ompi_message_t **message,
			  ompi_request_t **request)
{
	struct from from = from_message(*message);
	int rc = nonblocking(&from, addr, count, type, request);

	return_handle(message, &from);
	return rc;
}

int mca_pml_tupleq_irecv_init(void *addr, size_t count, ompi_datatype_t *type, int src, int tag,
			      ompi_communicator_t *comm, ompi_request_t **out)
{
	mca_pml_tupleq_request_t *request = mca_pml_tupleq_request_new_persistent(
		TUPLEQ_OP_RECV, addr, count, type, src, tag, comm);

	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	*out = &request->op.ompi;
	return OMPI_SUCCESS;
}

int mca_pml_tupleq_recv_start(mca_pml_tupleq_request_t *request)
{
	struct from from = {.comm = request->comm,
			    .source = request->op.base.req_peer,
			    .tag = request->op.base.req_tag};
	struct tq_status ended;
	int rc;

	rc = mca_pml_tupleq_buf_init(&request->op.buf, request->addr, request->count, request->type,
				     false);
	if (rc != OMPI_SUCCESS)
		return rc;
	rc = start(&from, &request->op.buf.tq, request, &request->op.tq, &ended);
	if (rc < 0) {
		mca_pml_tupleq_buf_fini(&request->op.buf);
		return mca_pml_tupleq_mpi_error(rc);
	}
	if (rc)
		mca_pml_tupleq_ended(&request->op, &ended);
	return OMPI_SUCCESS;
}
