/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives: blocking, nonblocking, persistent, and those of messages from matched probes. */
#ifndef TUPLEQ_PML_RECV_H
#define TUPLEQ_PML_RECV_H

#include "request.h"

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

/* Starts a persistent receive. Returns 0 or an error. */
int mca_pml_tupleq_recv_start(mca_pml_tupleq_request_t *request);

#endif
