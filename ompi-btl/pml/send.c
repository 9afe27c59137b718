/* SPDX-License-Identifier: BSD-3-Clause */
#include "send.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "comm.h"

/* How long a buffered send waits for room while others are under way. On a busy host a send may end
 * milliseconds after its receive, because the adapter's engine has no core. */
enum { BSEND_WAIT_MS = 100 };

static unsigned send_flags(int tag, mca_pml_base_send_mode_t mode)
{
	unsigned flags = 0;

	/* Ready mode needs no flag: the library finds a posted receive as quickly. */
	if (mode == MCA_PML_BASE_SEND_SYNCHRONOUS)
		flags |= TQ_SEND_SYNC;
	if (OPAL_UNLIKELY(series_tag_takes_no_queue(tag)))
		flags |= TQ_SEND_NO_QUEUE;
	return flags;
}

/* Sets the status of a send as pml/ob1 does. MPI leaves it undefined, but osc/pt2pt reads it. */
static void set_status(mca_pml_tupleq_request_t *request, int tag)
{
	ompi_status_public_t *status = &request->op.ompi.req_status;

	status->MPI_SOURCE = ompi_comm_rank(request->comm);
	status->MPI_TAG = tag;
	status->_ucount = request->op.buf.tq.len;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * Returns room in the user's attached buffer, or NULL. If the buffer is full, Open MPI calls
 * opal_progress() once and gives up. But that call may have handled other events, and the
 * completion of a copy that has been received may arrive a moment later. So this function tries for
 * a while.
 */
static void *bsend_room(size_t len)
{
	void *room = mca_pml_base_bsend_request_alloc_buf(len);
	bool pending = true;
	uint64_t until;

	if (OPAL_LIKELY(room))
		return room;
	until = now_ms() + BSEND_WAIT_MS;
	while (!room && pending && now_ms() < until) {
		pending = mca_pml_tupleq_has_pending_bsends();
		room = mca_pml_base_bsend_request_alloc_buf(len);
		if (!room)
			sched_yield(); /* the receiver may need this core */
	}
	return room;
}

/* Returns a copy of the message in the attached buffer, or NULL if there is no room. */
static void *bsend_copy(const struct tq_buf *buf)
{
	void *copy = bsend_room(buf->len ? buf->len : 1);

	if (!copy)
		return NULL;
	if (buf->ops)
		buf->ops->pack(buf->arg, 0, copy, buf->len);
	else if (buf->len)
		memcpy(copy, buf->addr, buf->len);
	return copy;
}

/* Starts a buffered send: a request of its own sends a copy, and the user's operation has ended. */
static int bsend(const void *addr, size_t count, ompi_datatype_t *type, int dst, int tag,
		 ompi_communicator_t *comm)
{
	mca_pml_tupleq_request_t *request =
		mca_pml_tupleq_request_new(TUPLEQ_OP_BSEND, dst, tag, comm);
	struct mca_pml_tupleq_buf *buf;
	void *copy;
	int rc;

	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	buf = &request->op.buf;
	rc = mca_pml_tupleq_buf_init(buf, addr, count, type, true);
	if (rc != OMPI_SUCCESS)
		goto undo;
	copy = bsend_copy(&buf->tq);
	if (!copy) {
		rc = OMPI_ERR_BUFFER;
		goto undo;
	}
	mca_pml_tupleq_buf_fini(buf);
	buf->tq = (struct tq_buf){.addr = copy, .len = buf->tq.len};
	request->bsend_copy = copy;
	request->refs = 1; /* the user has no handle */
	mca_pml_tupleq_bsend_began();
	rc = tq_send(mca_pml_tupleq_ctx(comm), dst, tag, &buf->tq,
		     send_flags(tag, MCA_PML_BASE_SEND_BUFFERED) | TQ_SEND_BUFFERED, request,
		     &request->op.tq);
	if (!rc)
		return OMPI_SUCCESS;
	mca_pml_tupleq_bsend_ended(copy);
	rc = rc < 0 ? mca_pml_tupleq_mpi_error(rc) : OMPI_SUCCESS;
undo:
	mca_pml_tupleq_request_undo(request);
	return rc;
}

static int blocking(const void *addr, size_t count, ompi_datatype_t *type, int dst, int tag,
		    mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
	struct mca_pml_tupleq_op op;
	struct tq_req *tq;
	int rc;

	rc = mca_pml_tupleq_buf_init(&op.buf, addr, count, type, true);
	if (rc != OMPI_SUCCESS)
		return rc;
	mca_pml_tupleq_op_init_blocking(&op);
	rc = tq_send(mca_pml_tupleq_ctx(comm), dst, tag, &op.buf.tq,
		     send_flags(tag, mode) | TQ_SEND_PATIENT, &op, &tq);
	if (rc) {
		mca_pml_tupleq_buf_fini(&op.buf);
		return rc < 0 ? mca_pml_tupleq_mpi_error(rc) : OMPI_SUCCESS;
	}
	mca_pml_tupleq_wait(&op.ompi);
	/* The receiver may have revoked the communicator, too, and dropped the message. */
	if (op.ompi.req_status.MPI_ERROR == MPI_SUCCESS && OPAL_UNLIKELY(series_is_revoked(comm)))
		return series_revoked_error();
	return op.ompi.req_status.MPI_ERROR;
}

int mca_pml_tupleq_send(const void *addr, size_t count, ompi_datatype_t *type, int dst, int tag,
			mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
	ompi_communicator_t *held;
	int rc;

	if (OPAL_UNLIKELY(dst == MPI_PROC_NULL))
		return OMPI_SUCCESS;
	if (OPAL_UNLIKELY(mode == MCA_PML_BASE_SEND_BUFFERED))
		return bsend(addr, count, type, dst, tag, comm);
	held = mca_pml_tupleq_hold(comm);
	rc = blocking(addr, count, type, dst, tag, mode, comm);
	mca_pml_tupleq_let_go(held);
	return rc;
}

/* An MPI_Isend of memory without gaps that has no request yet. */
struct isend {
	ompi_communicator_t *comm;
	struct tq_buf buf;
	int dst, tag;
	ompi_request_t **out;
	mca_pml_tupleq_request_t *request; /* NULL: none was needed */
};

void *mca_pml_tupleq_isend_pending(void *user)
{
	struct isend *isend = user;
	mca_pml_tupleq_request_t *request =
		mca_pml_tupleq_request_new(TUPLEQ_OP_SEND, isend->dst, isend->tag, isend->comm);

	if (!request)
		return NULL;
	request->op.buf.tq = isend->buf;
	set_status(request, isend->tag);
	/* Before the send is started: after that another thread may complete it. */
	*isend->out = &request->op.ompi;
	return isend->request = request;
}

/* Starts a send of memory without gaps. Most short sends end at once and need no request. */
static int isend_plain(struct isend *isend, unsigned flags)
{
	struct tq_req *tq;
	int rc = tq_send(mca_pml_tupleq_ctx(isend->comm), isend->dst, isend->tag, &isend->buf,
			 flags | TQ_SEND_DEFER_USER, isend, &tq);

	if (OPAL_LIKELY(rc >= 0))
		return OMPI_SUCCESS;
	*isend->out = &ompi_request_empty;
	if (isend->request)
		mca_pml_tupleq_request_undo(isend->request);
	return mca_pml_tupleq_mpi_error(rc);
}

int mca_pml_tupleq_isend(const void *addr, size_t count, ompi_datatype_t *type, int dst, int tag,
			 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
			 ompi_request_t **out)
{
	struct isend isend = {.comm = comm, .dst = dst, .tag = tag, .out = out};
	mca_pml_tupleq_request_t *request;
	int rc;

	*out = &ompi_request_empty;
	if (OPAL_UNLIKELY(dst == MPI_PROC_NULL))
		return OMPI_SUCCESS;
	if (OPAL_UNLIKELY(mode == MCA_PML_BASE_SEND_BUFFERED))
		return bsend(addr, count, type, dst, tag, comm);
	if (OPAL_LIKELY(mca_pml_tupleq_buf_init_plain(&isend.buf, addr, count, type)))
		return isend_plain(&isend, send_flags(tag, mode));
	request = mca_pml_tupleq_request_new(TUPLEQ_OP_SEND, dst, tag, comm);
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_pml_tupleq_buf_init(&request->op.buf, addr, count, type, true);
	if (rc != OMPI_SUCCESS)
		goto undo;
	set_status(request, tag);
	/* Before the send is started: after that another thread may complete it. */
	*out = &request->op.ompi;
	rc = tq_send(mca_pml_tupleq_ctx(comm), dst, tag, &request->op.buf.tq, send_flags(tag, mode),
		     request, &request->op.tq);
	if (!rc)
		return OMPI_SUCCESS;
	*out = &ompi_request_empty;
	rc = rc < 0 ? mca_pml_tupleq_mpi_error(rc) : OMPI_SUCCESS;
undo:
	mca_pml_tupleq_request_undo(request);
	return rc;
}

int mca_pml_tupleq_isend_init(const void *addr, size_t count, ompi_datatype_t *type, int dst,
			      int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
			      ompi_request_t **out)
{
	mca_pml_tupleq_request_t *request = mca_pml_tupleq_request_new_persistent(
		TUPLEQ_OP_SEND, (void *)addr, count, type, dst, tag, comm);

	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	request->mode = mode;
	*out = &request->op.ompi;
	return OMPI_SUCCESS;
}

int mca_pml_tupleq_send_start(mca_pml_tupleq_request_t *request)
{
	static const struct tq_status ended;
	unsigned flags = send_flags(request->op.base.req_tag, request->mode);
	struct mca_pml_tupleq_op *op = &request->op;
	int rc;

	if (request->mode == MCA_PML_BASE_SEND_BUFFERED) {
		rc = bsend(request->addr, request->count, request->type, request->op.base.req_peer,
			   request->op.base.req_tag, request->comm);
		if (rc == OMPI_SUCCESS)
			mca_pml_tupleq_ended(op, &ended);
		return rc;
	}
	/* A send of osc/pt2pt has a callback: its tag is fresh, and later sends may not overtake
	 * it. */
	if (op->ompi.req_complete_cb)
		flags |= TQ_SEND_NO_QUEUE;
	rc = mca_pml_tupleq_buf_init(&op->buf, request->addr, request->count, request->type, true);
	if (rc != OMPI_SUCCESS)
		return rc;
	set_status(request, request->op.base.req_tag);
	rc = tq_send(mca_pml_tupleq_ctx(request->comm), request->op.base.req_peer,
		     request->op.base.req_tag, &op->buf.tq, flags, request, &op->tq);
	if (rc < 0) {
		mca_pml_tupleq_buf_fini(&op->buf);
		return mca_pml_tupleq_mpi_error(rc);
	}
	if (rc)
		mca_pml_tupleq_ended(op, &ended);
	return OMPI_SUCCESS;
}
