/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends in all modes: blocking, nonblocking and persistent. */
#ifndef TUPLEQ_PML_SEND_H
#define TUPLEQ_PML_SEND_H

#include "request.h"

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
/* Starts a persistent send. Returns 0 or an error. */
int mca_pml_tupleq_send_start(mca_pml_tupleq_request_t *request);

#endif
