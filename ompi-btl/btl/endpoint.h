/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI's processes as the library's peers. */
#ifndef TUPLEQ_BTL_ENDPOINT_H
#define TUPLEQ_BTL_ENDPOINT_H

#include "btl.h"

typedef struct mca_btl_base_endpoint_t {
	struct tq_peer *peer;
	ompi_proc_t *proc;
	bool is_reported; /* as failed */
	/* Only if this component owns the library's endpoint: */
	int rank; /* in the context of active messages */
	struct mca_btl_base_endpoint_t *next, *prev;
} mca_btl_base_endpoint_t;

int mca_btl_tupleq_add_procs(mca_btl_base_module_t *module, size_t n, opal_proc_t **procs,
			     mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int mca_btl_tupleq_del_procs(mca_btl_base_module_t *module, size_t n, opal_proc_t **procs,
			     mca_btl_base_endpoint_t **endpoints);

#endif
