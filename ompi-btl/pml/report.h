/* SPDX-License-Identifier: BSD-3-Clause */
/* The report at the end of a job (pml_tupleq_stats). */
#ifndef TUPLEQ_PML_REPORT_H
#define TUPLEQ_PML_REPORT_H

int mca_pml_tupleq_report_open(void);
void mca_pml_tupleq_report_close(void);

#endif
