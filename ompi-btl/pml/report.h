/* SPDX-License-Identifier: BSD-3-Clause */
/* The report at the end of a job (pml_tupleq_stats). */
#ifndef TUPLEQ_PML_REPORT_H
#define TUPLEQ_PML_REPORT_H

int tupleq_report_open(void);
void tupleq_report_close(void);

#endif
