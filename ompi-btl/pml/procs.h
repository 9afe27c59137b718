/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's processes as the library's peers. */
#ifndef TUPLEQ_PML_PROCS_H
#define TUPLEQ_PML_PROCS_H

#include <stddef.h>

struct ompi_proc_t;
struct tq_peer;

int mca_pml_tupleq_add_procs(struct ompi_proc_t **procs, size_t nprocs);
int mca_pml_tupleq_del_procs(struct ompi_proc_t **procs, size_t nprocs);

/* The peer, made if it isn't known yet. 0 or an OMPI error, with a sentence to the log. */
int mca_pml_tupleq_proc_peer(struct ompi_proc_t *proc, struct tq_peer **peer);

/* Forgets all; the peers themselves go with the endpoint. */
void mca_pml_tupleq_procs_close(void);

/* "rank 3 on host n1" */
void mca_pml_tupleq_proc_name(const struct ompi_proc_t *proc, char *name, size_t size);

#endif
