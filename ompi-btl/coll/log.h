/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines about a communicator. */
#ifndef TUPLEQ_COLL_LOG_H
#define TUPLEQ_COLL_LOG_H

#include "pml/series.h"

/* Writes a line that coll_base_verbose of 10 shows. */
void mca_coll_tupleq_verbose(ompi_communicator_t *comm, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Warns, for the first communicator of this process alone, that collectives are slower from here
 * on. */
void mca_coll_tupleq_warn_unserved(ompi_communicator_t *comm, const char *problem);

#endif
