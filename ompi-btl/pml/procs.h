/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's processes as the library's peers. */
#ifndef TUPLEQ_PML_PROCS_H
#define TUPLEQ_PML_PROCS_H

#include <stddef.h>

struct ompi_proc_t;
struct tq_peer;

int mca_pml_tupleq_add_procs(struct ompi_proc_t **procs, size_t nprocs);
int mca_pml_tupleq_del_procs(struct ompi_proc_t **procs, size_t nprocs);

/* Finds the peer of a process, or adds one. Returns 0, or an OMPI error after a line in the log. */
int mca_pml_tupleq_proc_peer(struct ompi_proc_t *proc, struct tq_peer **peer);

/* For jobs with fault tolerance: */
/* Gives up the peer of a process that Open MPI knows to have failed. */
void mca_pml_tupleq_proc_failed(struct ompi_proc_t *proc);
/* Reports to Open MPI, once in many calls, the processes to which the connection has failed.
 * Called when there is nothing else to do. */
void mca_pml_tupleq_procs_look(void);

/* Frees the table. The peers themselves end with the endpoint. */
void mca_pml_tupleq_procs_close(void);

#endif
