/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the component, and the functions of its module. */
#ifndef TUPLEQ_PML_H
#define TUPLEQ_PML_H

#include "series.h"

#include <tupleq/tupleq.h>

#define TUPLEQ_MAJOR   0
#define TUPLEQ_MINOR   1
#define TUPLEQ_RELEASE 0

extern mca_pml_base_component_t mca_pml_tupleq_component;
extern mca_pml_base_module_t mca_pml_tupleq_module;

struct mca_pml_tupleq {
	struct tq_ep *ep;
	opal_free_list_t requests;
	char name[300]; /* "rank 3 on host n1" */
	bool opening;   /* tq_open() runs: its errors go to open_error */
	char open_error[1024];
	int priority;
	bool enabled;    /* Open MPI has selected the module */
	bool finalizing; /* Open MPI frees all communicators, even those that are still referenced
			  */
	bool stats;
};

extern struct mca_pml_tupleq mca_pml_tupleq;

/* The PML's part of a communicator. */
struct mca_pml_comm_t {
	struct tq_ctx *ctx;
	uint32_t assertions; /* those that have been passed to ctx */
	int refs;            /* of the communicator and of its requests */
	bool is_gone;        /* Open MPI has destroyed the communicator */
};

int mca_pml_tupleq_add_comm(struct ompi_communicator_t *comm);
int mca_pml_tupleq_del_comm(struct ompi_communicator_t *comm);
/* Ends the operations of a communicator that was revoked, or of its collectives because a process
 * has failed. */
int mca_pml_tupleq_revoke_comm(struct ompi_communicator_t *comm, bool coll_only);
void mca_pml_tupleq_comm_update_assertions(struct ompi_communicator_t *comm);

static inline struct tq_ctx *mca_pml_tupleq_ctx(struct ompi_communicator_t *comm)
{
	if (OPAL_UNLIKELY(comm->c_pml_comm->assertions != series_assertions(comm)))
		mca_pml_tupleq_comm_update_assertions(comm);
	return comm->c_pml_comm->ctx;
}

static inline int32_t mca_pml_tupleq_tag(int tag)
{
	return tag == OMPI_ANY_TAG ? TQ_ANY_TAG : tag;
}

static inline int mca_pml_tupleq_source(int source)
{
	return source == OMPI_ANY_SOURCE ? TQ_ANY_SOURCE : source;
}

int mca_pml_tupleq_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
			mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);
/* Creates the request of an MPI_Isend that doesn't end at once. Called by the library. */
void *mca_pml_tupleq_isend_pending(void *user);
int mca_pml_tupleq_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
			 mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
			 ompi_request_t **request);
int mca_pml_tupleq_isend_init(const void *buf, size_t count, ompi_datatype_t *type, int dst,
			      int tag, mca_pml_base_send_mode_t mode,
			      struct ompi_communicator_t *comm, ompi_request_t **request);

int mca_pml_tupleq_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
			struct ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_tupleq_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
			 struct ompi_communicator_t *comm, ompi_request_t **request);
int mca_pml_tupleq_irecv_init(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
			      struct ompi_communicator_t *comm, ompi_request_t **request);
int mca_pml_tupleq_mrecv(void *buf, size_t count, ompi_datatype_t *type,
			 struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_tupleq_imrecv(void *buf, size_t count, ompi_datatype_t *type,
			  struct ompi_message_t **message, ompi_request_t **request);

int mca_pml_tupleq_start(size_t count, ompi_request_t **requests);

int mca_pml_tupleq_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			  ompi_status_public_t *status);
int mca_pml_tupleq_probe(int src, int tag, struct ompi_communicator_t *comm,
			 ompi_status_public_t *status);
int mca_pml_tupleq_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			   struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_tupleq_mprobe(int src, int tag, struct ompi_communicator_t *comm,
			  struct ompi_message_t **message, ompi_status_public_t *status);

int mca_pml_tupleq_dump(struct ompi_communicator_t *comm, int verbose);

#endif
