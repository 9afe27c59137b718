/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the component. */
#ifndef TUPLEQ_PML_H
#define TUPLEQ_PML_H

#include "series.h"

#include <tupleq/tupleq.h>

extern mca_pml_base_component_t mca_pml_tupleq_component;
extern mca_pml_base_module_t mca_pml_tupleq_module;

enum mca_pml_tupleq_life {
	TUPLEQ_CLOSED,
	TUPLEQ_OPENING,   /* tq_open() runs: its errors go to open_error */
	TUPLEQ_OPEN,      /* there is an endpoint */
	TUPLEQ_ENABLED,   /* Open MPI has selected the module */
	TUPLEQ_FINALIZING /* Open MPI frees all communicators, even those still referenced */
};

struct mca_pml_tupleq {
	struct tq_ep *ep;
	opal_free_list_t requests; /* from ENABLED on */
	char name[300];            /* "rank 3 on host n1" */
	enum mca_pml_tupleq_life life;
	char open_error[1024];
	int priority;
	bool stats;
	bool has_polled; /* a probe has made progress: the next call of the progress function need
			    not */
};

extern struct mca_pml_tupleq mca_pml_tupleq;

#endif
