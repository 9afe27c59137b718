/* SPDX-License-Identifier: BSD-3-Clause */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>

#include "comm.h"

/* Polls of the adapter between calls of opal_progress(), which polls it too, but also all else that
 * has registered with Open MPI. */
enum { SPINS = 64 };

static int bsends;

static int request_free(ompi_request_t **ompi)
{
	mca_pml_tupleq_request_t *request = (mca_pml_tupleq_request_t *)*ompi;

	OMPI_REQUEST_FINI(&request->op.ompi);
	*ompi = MPI_REQUEST_NULL;
	mca_pml_tupleq_request_put(request);
	return OMPI_SUCCESS;
}

/*
 * Cancels a receive. The library frees its request when the completion callback has returned. So
 * the thread that cancels takes the pointer out of the operation while it uses the request, and the
 * thread that completes waits until the pointer is back.
 */
static int request_cancel(ompi_request_t *ompi, int flag)
{
	struct mca_pml_tupleq_op *op = (struct mca_pml_tupleq_op *)ompi;
	struct tq_req *tq;

	(void)flag;
	/* MPI allows a cancelled send to complete normally. */
	if (op->kind != TUPLEQ_OP_RECV)
		return OMPI_SUCCESS;
	tq = __atomic_exchange_n(&op->tq, NULL, __ATOMIC_ACQUIRE);
	if (tq) {
		tq_cancel(tq);
		__atomic_store_n(&op->tq, tq, __ATOMIC_RELEASE);
	}
	return OMPI_SUCCESS;
}

/* Waits until no thread cancels the operation. */
static void await_cancel(struct mca_pml_tupleq_op *op)
{
	if (!opal_using_threads()) {
		op->tq = NULL;
		return;
	}
	/* The thread that cancels may need this core. */
	while (!__atomic_exchange_n(&op->tq, NULL, __ATOMIC_ACQ_REL))
		sched_yield();
}

static void request_construct(mca_pml_tupleq_request_t *request)
{
	ompi_request_t *ompi = &request->op.ompi;

	ompi->req_type = OMPI_REQUEST_PML;
	ompi->req_start = mca_pml_tupleq_module.pml_start;
	ompi->req_free = request_free;
	ompi->req_cancel = request_cancel;
	request->op.buf.tq.ops = NULL;
	request->op.tq = NULL;
	series_handed_over(request);
}

OBJ_CLASS_INSTANCE(mca_pml_tupleq_request_t, ompi_request_t, request_construct, NULL);

static inline __attribute__((always_inline)) mca_pml_tupleq_request_t *
request_get(enum mca_pml_tupleq_op_kind kind, int peer, int tag, ompi_communicator_t *comm,
	    bool persistent)
{
	mca_pml_tupleq_request_t *request =
		(mca_pml_tupleq_request_t *)opal_free_list_get(&mca_pml_tupleq.requests);

	if (!request)
		return NULL;
	series_taken_over(request);
	OMPI_REQUEST_INIT(&request->op.ompi, persistent);
	request->op.ompi.req_mpi_object.comm = comm;
	request->op.base.req_type =
		kind == TUPLEQ_OP_RECV ? MCA_PML_REQUEST_RECV : MCA_PML_REQUEST_SEND;
	request->op.base.req_peer = peer;
	request->op.base.req_tag = tag;
	request->op.kind = kind;
	request->op.tq = NULL;
	request->type = NULL;
	request->comm = comm;
	/* The user may free the communicator before the operation ends. Its context id must not be
	 * used again before that. */
	OBJ_RETAIN(comm);
	request->pml_comm = comm->c_pml_comm;
	mca_pml_tupleq_add_refs(&request->pml_comm->refs, 1);
	return request;
}

mca_pml_tupleq_request_t *mca_pml_tupleq_request_new(enum mca_pml_tupleq_op_kind kind, int peer,
						     int tag, ompi_communicator_t *comm)
{
	mca_pml_tupleq_request_t *request = request_get(kind, peer, tag, comm, false);

	if (request) {
		request->refs = 2;
		series_request_pending(&request->op.ompi);
	}
	return request;
}

mca_pml_tupleq_request_t *mca_pml_tupleq_request_new_persistent(enum mca_pml_tupleq_op_kind kind,
								void *addr, size_t count,
								ompi_datatype_t *type, int peer,
								int tag, ompi_communicator_t *comm)
{
	mca_pml_tupleq_request_t *request = request_get(kind, peer, tag, comm, true);

	if (request) {
		request->refs = 1;
		request->addr = addr;
		request->count = count;
		request->type = type;
		OMPI_DATATYPE_RETAIN(type);
	}
	return request;
}

void mca_pml_tupleq_request_free(mca_pml_tupleq_request_t *request)
{
	ompi_communicator_t *comm = request->comm;
	struct mca_pml_comm_t *pml_comm = request->pml_comm;

	assert(!request->op.buf.tq.ops);
	if (request->type)
		OMPI_DATATYPE_RELEASE(request->type);
	series_handed_over(request);
	opal_free_list_return(&mca_pml_tupleq.requests, &request->op.ompi.super);
	/* At the end of MPI Open MPI destroys all communicators, even those that the user has freed
	 * and that operations under way still reference. */
	if (OPAL_LIKELY(!pml_comm->is_gone))
		OBJ_RELEASE(comm);
	mca_pml_tupleq_comm_put(pml_comm);
}

void mca_pml_tupleq_request_undo(mca_pml_tupleq_request_t *request)
{
	mca_pml_tupleq_buf_fini(&request->op.buf);
	OMPI_REQUEST_FINI(&request->op.ompi);
	request->refs = 1;
	mca_pml_tupleq_request_put(request);
}

void mca_pml_tupleq_status_set(ompi_status_public_t *to, const struct tq_status *from,
			       uint64_t room)
{
	to->MPI_SOURCE = from->source;
	to->MPI_TAG = from->tag;
	to->_ucount = from->length < room ? from->length : room;
	to->_cancelled = from->error == -ECANCELED;
	if (OPAL_UNLIKELY(to->_cancelled)) {
		to->MPI_SOURCE = OMPI_ANY_SOURCE;
		to->MPI_TAG = OMPI_ANY_TAG;
		to->_ucount = 0;
	}
}

void mca_pml_tupleq_bsend_began(void)
{
	__atomic_add_fetch(&bsends, 1, __ATOMIC_RELAXED);
}

void mca_pml_tupleq_bsend_ended(void *copy)
{
	mca_pml_base_bsend_request_free(copy);
	__atomic_sub_fetch(&bsends, 1, __ATOMIC_RELEASE);
}

bool mca_pml_tupleq_has_pending_bsends(void)
{
	return __atomic_load_n(&bsends, __ATOMIC_ACQUIRE) != 0;
}

static void end_request(mca_pml_tupleq_request_t *request, const struct tq_status *status)
{
	struct mca_pml_tupleq_op *op = &request->op;
	int error = series_given_error(&op->ompi);

	if (op->kind == TUPLEQ_OP_RECV)
		mca_pml_tupleq_status_set(&op->ompi.req_status, status, op->buf.tq.len);
	/* Open MPI's fault tolerance has cancelled the request, which is to end with this error. A
	 * send isn't cancelled and has ended normally. */
	if (error != MPI_SUCCESS &&
	    (op->kind == TUPLEQ_OP_RECV ? status->error == -ECANCELED : !status->error))
		op->ompi.req_status._cancelled = 0;
	else
		error = mca_pml_tupleq_mpi_error(status->error);
	op->ompi.req_status.MPI_ERROR = error;
	mca_pml_tupleq_buf_fini(&op->buf);
	if (op->kind == TUPLEQ_OP_BSEND) {
		mca_pml_tupleq_bsend_ended(request->bsend_copy);
	} else {
		series_handed_over(&op->ompi);
		ompi_request_complete(&op->ompi, true);
	}
	mca_pml_tupleq_request_put(request);
}

/* Ends a blocking operation. Its caller may return at once, so the operation must not be touched
 * after this. */
static void end_blocking(struct mca_pml_tupleq_op *op, const struct tq_status *status)
{
	op->ompi.req_status.MPI_ERROR = mca_pml_tupleq_mpi_error(status->error);
	/* Nobody reads the status of a send. */
	mca_pml_tupleq_status_set(&op->ompi.req_status, status, op->buf.tq.len);
	mca_pml_tupleq_buf_fini(&op->buf);
	series_stack_request_end(&op->ompi);
}

void mca_pml_tupleq_complete(void *user, const struct tq_status *status)
{
	struct mca_pml_tupleq_op *op = user;

	if (op->kind == TUPLEQ_OP_BLOCKING) {
		end_blocking(op, status);
		return;
	}
	if (op->kind == TUPLEQ_OP_RECV)
		await_cancel(op);
	end_request(user, status);
}

void mca_pml_tupleq_ended(struct mca_pml_tupleq_op *op, const struct tq_status *status)
{
	if (op->kind == TUPLEQ_OP_BLOCKING)
		end_blocking(op, status);
	else
		end_request((mca_pml_tupleq_request_t *)op, status);
}

void mca_pml_tupleq_wait(ompi_request_t *request)
{
	int i;

	while (!series_stack_request_has_ended(request)) {
		for (i = 0; i < SPINS; i++) {
			tq_progress(mca_pml_tupleq.ep);
			if (series_stack_request_has_ended(request))
				return;
		}
		/* The operation may wait for another thread, which may need this core. */
		if (opal_using_threads())
			sched_yield();
		opal_progress();
	}
}
