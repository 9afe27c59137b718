/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts of persistent requests of all kinds. */
#ifndef TUPLEQ_PML_START_H
#define TUPLEQ_PML_START_H

#include "request.h"

/* Starts persistent requests. Returns an MPI error or one of Open MPI. */
int mca_pml_tupleq_start(size_t count, ompi_request_t **requests);

#endif
