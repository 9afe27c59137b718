/* SPDX-License-Identifier: BSD-3-Clause */
/* The component's state, and the functions of its module. */
#ifndef TUPLEQ_PML_H
#define TUPLEQ_PML_H

#include "series.h"

#include <tupleq/tupleq.h>

#define TUPLEQ_MAJOR   0
#define TUPLEQ_MINOR   1
#define TUPLEQ_RELEASE 0

extern mca_pml_base_component_2_0_0_t mca_pml_tupleq_component;
extern mca_pml_base_module_t tupleq_module;

struct tupleq_pml {
	struct tq_ep *ep;
	opal_free_list_t requests;
	char name[300]; /* "rank 3 on host n1" */
	bool opening;   /* until tq_open() has returned, errors go to open_error */
	char open_error[1024];
	int priority;
	bool enabled;    /* chosen: Open MPI uses the module */
	bool finalizing; /* Open MPI drops communicators, whoever may still have them */
	bool stats;
};

extern struct tupleq_pml tupleq_pml;

/* What hangs at a communicator. */
struct mca_pml_comm_t {
	struct tq_ctx *ctx;
	uint32_t assertions; /* those that ctx knows of */
};

int tupleq_add_comm(struct ompi_communicator_t *comm);
int tupleq_del_comm(struct ompi_communicator_t *comm);
void tupleq_comm_update_assertions(struct ompi_communicator_t *comm);

static inline struct tq_ctx *tupleq_ctx(struct ompi_communicator_t *comm)
{
	if (OPAL_UNLIKELY(comm->c_pml_comm->assertions != series_assertions(comm)))
		tupleq_comm_update_assertions(comm);
	return comm->c_pml_comm->ctx;
}

static inline int32_t tupleq_tag(int tag)
{
	return tag == OMPI_ANY_TAG ? TQ_ANY_TAG : tag;
}

static inline int tupleq_source(int source)
{
	return source == OMPI_ANY_SOURCE ? TQ_ANY_SOURCE : source;
}

int tupleq_send(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
		mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);
/* The library's callback: makes the request of an MPI_Isend that doesn't end at once. */
void *tupleq_isend_pending(void *user);
int tupleq_isend(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
		 mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		 ompi_request_t **request);
int tupleq_isend_init(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag,
		      mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		      ompi_request_t **request);

int tupleq_recv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
		struct ompi_communicator_t *comm, ompi_status_public_t *status);
int tupleq_irecv(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
		 struct ompi_communicator_t *comm, ompi_request_t **request);
int tupleq_irecv_init(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
		      struct ompi_communicator_t *comm, ompi_request_t **request);
int tupleq_mrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
		 ompi_status_public_t *status);
int tupleq_imrecv(void *buf, size_t count, ompi_datatype_t *type, struct ompi_message_t **message,
		  ompi_request_t **request);

int tupleq_start(size_t count, ompi_request_t **requests);

int tupleq_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		  ompi_status_public_t *status);
int tupleq_probe(int src, int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status);
int tupleq_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		   struct ompi_message_t **message, ompi_status_public_t *status);
int tupleq_mprobe(int src, int tag, struct ompi_communicator_t *comm,
		  struct ompi_message_t **message, ompi_status_public_t *status);

int tupleq_dump(struct ompi_communicator_t *comm, int verbose);

#endif
