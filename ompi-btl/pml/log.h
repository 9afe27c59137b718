/* SPDX-License-Identifier: BSD-3-Clause */
/* What the user is told: the library's sentences, and errors as MPI has them. */
#ifndef TUPLEQ_PML_LOG_H
#define TUPLEQ_PML_LOG_H

#include <tupleq/tupleq.h>

void mca_pml_tupleq_log(void *arg, enum tq_log_level level, const char *text);

/* Shows a user a text of several lines. Open MPI's own way (show_help) would show it once per job,
 * but with some versions of PMIx it loses it. */
void mca_pml_tupleq_explain(const char *text);

/* The error code for a negative errno of the library's (or 0). Each has a text that says what it
 * is: never MPI_ERR_OTHER. */
int mca_pml_tupleq_mpi_error(int err);

#endif
