/* SPDX-License-Identifier: BSD-3-Clause */
/* The report at the end of a job (pml_tupleq_stats). */
#ifndef TUPLEQ_PML_REPORT_H
#define TUPLEQ_PML_REPORT_H

struct tq_tuple_info;

/* Returns all tuples that this process receives, the busiest first, and their number, for the
 * caller to free; NULL: no memory. */
struct tq_tuple_info *mca_pml_tupleq_report_tuples(int *count);
/* Installs the hook that prints the report in MPI_Finalize. Returns 0 or an Open MPI error. */
int mca_pml_tupleq_report_open(void);
/* Removes the hook. Prints the report of this process if the job used sessions alone, and this is
 * its first process. */
void mca_pml_tupleq_report_close(void);

#endif
