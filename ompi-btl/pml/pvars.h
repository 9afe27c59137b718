/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's counters as MPI_T performance variables pml_tupleq_<name>. */
#ifndef TUPLEQ_PML_PVARS_H
#define TUPLEQ_PML_PVARS_H

/* The most counters that the library may have. Further ones would not be shown. */
enum { TUPLEQ_COUNTERS = 256 };

/* Registers the variables. Returns 0 or an OPAL error. */
int mca_pml_tupleq_pvars_register(void);
/* Keeps the values for tools that read them after MPI_Finalize. Called before the endpoint is
 * closed. */
void mca_pml_tupleq_pvars_keep(void);

#endif
