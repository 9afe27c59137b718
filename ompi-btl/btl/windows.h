/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows that osc/rdma must leave to other modules. */
#ifndef TUPLEQ_BTL_WINDOWS_H
#define TUPLEQ_BTL_WINDOWS_H

/* Returns 0, or an OPAL error. Called in MPI_Init, before the modules for windows are loaded. */
int mca_btl_tupleq_windows_open(void);
void mca_btl_tupleq_windows_close(void);

#endif
