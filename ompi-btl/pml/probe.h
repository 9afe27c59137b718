/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes and matched probes. */
#ifndef TUPLEQ_PML_PROBE_H
#define TUPLEQ_PML_PROBE_H

#include "pml.h"

int mca_pml_tupleq_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			  ompi_status_public_t *status);
int mca_pml_tupleq_probe(int src, int tag, struct ompi_communicator_t *comm,
			 ompi_status_public_t *status);
int mca_pml_tupleq_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
			   struct ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_tupleq_mprobe(int src, int tag, struct ompi_communicator_t *comm,
			  struct ompi_message_t **message, ompi_status_public_t *status);

#endif
