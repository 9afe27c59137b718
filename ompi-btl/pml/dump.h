/* SPDX-License-Identifier: BSD-3-Clause */
/* Diagnostics. */
#ifndef TUPLEQ_PML_DUMP_H
#define TUPLEQ_PML_DUMP_H

#include "pml.h"

/* Prints the state of a communicator. */
int mca_pml_tupleq_dump(struct ompi_communicator_t *comm, int verbose);

#endif
