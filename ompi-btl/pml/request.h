/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations under way and their completion. */
#ifndef TUPLEQ_PML_REQUEST_H
#define TUPLEQ_PML_REQUEST_H

#include "comm.h"
#include "datatype.h"
#include "log.h"
#include "pml.h"

enum mca_pml_tupleq_op_kind {
	TUPLEQ_OP_BLOCKING, /* on its caller's stack; the caller waits */
	TUPLEQ_OP_SEND,
	TUPLEQ_OP_RECV,
	TUPLEQ_OP_BSEND /* sends a copy; no caller waits */
};

/*
 * An operation: the `user` argument of the library's functions. Open MPI's fault tolerance takes
 * the requests of a PML for mca_pml_base_request_t, and reads req_type, req_peer and req_tag there.
 */
struct mca_pml_tupleq_op {
	union {
		ompi_request_t ompi;
		mca_pml_base_request_t base;
	};
	enum mca_pml_tupleq_op_kind kind;
	struct tq_req *tq; /* receives: NULL if completed, or while a thread cancels it */
	struct mca_pml_tupleq_buf buf;
};

/*
 * A request of the user. `refs` counts the user's handle and each activation, which lasts from the
 * start until the completing thread is done with the request. That thread drops its reference last,
 * so a waiting thread may free the request, or start it again, as soon as it sees it complete.
 */
typedef struct mca_pml_tupleq_request {
	struct mca_pml_tupleq_op op;
	int refs;
	/* The arguments of a persistent request. */
	void *addr;
	size_t count;
	ompi_datatype_t *type;
	mca_pml_base_send_mode_t mode;
	ompi_communicator_t *comm;
	struct mca_pml_comm_t *pml_comm; /* of comm */
	void *bsend_copy;
} mca_pml_tupleq_request_t;

OBJ_CLASS_DECLARATION(mca_pml_tupleq_request_t);

/* Completes an operation. Called by the library. */
void mca_pml_tupleq_complete(void *user, const struct tq_status *status);

/* Ends an operation that the library has completed while starting it. */
void mca_pml_tupleq_ended(struct mca_pml_tupleq_op *op, const struct tq_status *status);

/* Returns a request with one activation, or NULL without memory. Retains the communicator. */
mca_pml_tupleq_request_t *mca_pml_tupleq_request_new(enum mca_pml_tupleq_op_kind kind, int peer,
						     int tag, ompi_communicator_t *comm);

/* Returns a persistent request with its arguments, which hasn't been activated, or NULL. */
mca_pml_tupleq_request_t *mca_pml_tupleq_request_new_persistent(enum mca_pml_tupleq_op_kind kind,
								void *addr, size_t count,
								ompi_datatype_t *type, int peer,
								int tag, ompi_communicator_t *comm);

/* Count the buffered sends under way. A send is under way while its copy occupies the user's
 * attached buffer. */
void mca_pml_tupleq_bsend_began(void);
void mca_pml_tupleq_bsend_ended(void *copy);
bool mca_pml_tupleq_has_pending_bsends(void);

/* Frees a request without references. */
void mca_pml_tupleq_request_free(mca_pml_tupleq_request_t *request);

/* Drops a reference. */
static inline void mca_pml_tupleq_request_put(mca_pml_tupleq_request_t *request)
{
	if (!mca_pml_tupleq_add_refs(&request->refs, -1))
		mca_pml_tupleq_request_free(request);
}

/* Frees a request that hasn't been started and that the user doesn't have. */
void mca_pml_tupleq_request_undo(mca_pml_tupleq_request_t *request);

/* Sets MPI's status of a message that was received into a buffer of `room` bytes. */
void mca_pml_tupleq_status_set(ompi_status_public_t *to, const struct tq_status *from,
			       uint64_t room);

/* Retains a communicator during a blocking call, because another thread may free it. Its context id
 * must not be used again before the end of the call. Returns NULL if there are no other threads. */
static inline ompi_communicator_t *mca_pml_tupleq_hold(ompi_communicator_t *comm)
{
	if (OPAL_LIKELY(!opal_using_threads()))
		return NULL;
	OBJ_RETAIN(comm);
	return comm;
}

/* Releases a communicator that mca_pml_tupleq_hold() returned. */
static inline void mca_pml_tupleq_let_go(ompi_communicator_t *held)
{
	if (OPAL_UNLIKELY(held))
		OBJ_RELEASE(held);
}

/* Waits for the end of a blocking operation that the caller has just started. */
void mca_pml_tupleq_wait(ompi_request_t *request);

static inline void mca_pml_tupleq_op_init_blocking(struct mca_pml_tupleq_op *op)
{
	series_stack_request_init(&op->ompi);
	op->kind = TUPLEQ_OP_BLOCKING;
}

#endif
