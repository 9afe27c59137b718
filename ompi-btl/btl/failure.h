/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles the failure of a process that this one communicates with. */
#ifndef TUPLEQ_BTL_FAILURE_H
#define TUPLEQ_BTL_FAILURE_H

#include "endpoint.h"

int mca_btl_tupleq_register_error(mca_btl_base_module_t *module,
				  mca_btl_base_module_error_cb_fn_t function);

/*
 * Reports, once for each process, that communication with it has failed. If the PML has registered
 * an error function, this function calls that: pml/ob1 ends the job, or with Open MPI's fault
 * tolerance the operations that need the process. Otherwise this function ends the job, with an
 * error of MPI that names the process, because osc/rdma ignores the errors of operations that it
 * has started.
 */
void mca_btl_tupleq_failed(mca_btl_base_endpoint_t *endpoint);

/* Ends the job with an error of MPI (MPI_ERR_*) in the activity that `during` names. */
void mca_btl_tupleq_end_job(int code, const char *during);

/* Checks the next process, one in each call, and reports it if it has failed. For pml/ob1, whose
 * receives don't say from whom they wait for a message. */
void mca_btl_tupleq_look_for_failures(void);

#endif
