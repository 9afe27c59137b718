/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's counters as MPI_T performance variables pml_tupleq_<name>. */
#ifndef TUPLEQ_PML_PVARS_H
#define TUPLEQ_PML_PVARS_H

/* Counters of the library, at most. */
enum { TUPLEQ_COUNTERS = 256 };

/* Called from the component's register function. 0 or an OPAL error. */
int mca_pml_tupleq_pvars_register(void);
/* The endpoint is about to be closed: they keep their values. */
void mca_pml_tupleq_pvars_keep(void);

#endif
