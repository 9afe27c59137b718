/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations under way, and how they end. */
#ifndef TUPLEQ_PML_REQUEST_H
#define TUPLEQ_PML_REQUEST_H

#include "datatype.h"
#include "log.h"
#include "pml.h"

enum mca_pml_tupleq_op_kind {
	TUPLEQ_OP_BLOCKING, /* on the stack of its caller, who waits */
	TUPLEQ_OP_SEND,
	TUPLEQ_OP_RECV,
	TUPLEQ_OP_BSEND /* sends a copy; nobody waits for it */
};

/* What the library's `user` is. */
struct mca_pml_tupleq_op {
	ompi_request_t ompi;
	enum mca_pml_tupleq_op_kind kind;
	struct tq_req *tq; /* receives: NULL if it has completed, or is being cancelled */
	struct mca_pml_tupleq_buf buf;
};

/*
 * refs counts the user's handle and each activation (a start whose end isn't through yet). The
 * thread that completes an activation drops its reference last, so a thread that waits may free
 * the request, or start it again, as soon as it sees it complete.
 */
typedef struct mca_pml_tupleq_request {
	struct mca_pml_tupleq_op op;
	int refs;
	/* The arguments, of persistent requests. */
	void *addr;
	size_t count;
	ompi_datatype_t *type;
	int peer, tag;
	mca_pml_base_send_mode_t mode;
	ompi_communicator_t *comm;
	void *bsend_copy;
} mca_pml_tupleq_request_t;

OBJ_CLASS_DECLARATION(mca_pml_tupleq_request_t);

/* The callback of the library's. */
void mca_pml_tupleq_complete(void *user, const struct tq_status *status);

/* Ends an operation that the library said had ended when it was started. */
void mca_pml_tupleq_ended(struct mca_pml_tupleq_op *op, const struct tq_status *status);

/* A request of the user's with one activation; NULL without memory. Keeps the communicator. */
mca_pml_tupleq_request_t *mca_pml_tupleq_request_new(enum mca_pml_tupleq_op_kind kind,
						     ompi_communicator_t *comm);

/* The same without an activation, with its arguments. */
mca_pml_tupleq_request_t *mca_pml_tupleq_request_new_persistent(enum mca_pml_tupleq_op_kind kind,
								void *addr, size_t count,
								ompi_datatype_t *type, int peer,
								int tag, ompi_communicator_t *comm);

/* A buffered send is under way from when its copy is in the user's buffer to when that is given
 * back. */
void mca_pml_tupleq_bsend_began(void);
void mca_pml_tupleq_bsend_ended(void *copy);
bool mca_pml_tupleq_bsends_pending(void);

/* Drops a reference. */
void mca_pml_tupleq_request_put(mca_pml_tupleq_request_t *request);

/* Gives up a request that hasn't been started and that the user hasn't seen. */
void mca_pml_tupleq_request_undo(mca_pml_tupleq_request_t *request);

/* Starts persistent requests. 0 or an error. */
int mca_pml_tupleq_send_start(mca_pml_tupleq_request_t *request);
int mca_pml_tupleq_recv_start(mca_pml_tupleq_request_t *request);

void mca_pml_tupleq_status_set(ompi_status_public_t *to, const struct tq_status *from,
			       uint64_t room);

/* Waits for the end of a blocking operation that the caller has just started. */
void mca_pml_tupleq_wait(ompi_request_t *request);

static inline void mca_pml_tupleq_op_init_blocking(struct mca_pml_tupleq_op *op)
{
	series_stack_request_init(&op->ompi);
	op->kind = TUPLEQ_OP_BLOCKING;
}

#endif
