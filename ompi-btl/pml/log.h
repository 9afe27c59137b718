/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the user, and MPI's errors. */
#ifndef TUPLEQ_PML_LOG_H
#define TUPLEQ_PML_LOG_H

#include <tupleq/tupleq.h>

/* Writes a line of the library's log; `arg` isn't used. */
void mca_pml_tupleq_log(void *arg, enum tq_log_level level, const char *text);

/* Writes a text of several lines. (Open MPI's show_help would print it once per job, but loses it
 * with some versions of PMIx.) */
void mca_pml_tupleq_explain(const char *text);

/* Returns MPI's error code for a negative errno of the library. */
int mca_pml_tupleq_mpi_error_of(int err);

/* Returns MPI's error code for 0 or a negative errno of the library. Each code has a text that says
 * what happened, so none is MPI_ERR_OTHER. */
static inline int mca_pml_tupleq_mpi_error(int err)
{
	return err ? mca_pml_tupleq_mpi_error_of(err) : 0; /* MPI_SUCCESS */
}

#endif
