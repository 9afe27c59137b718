/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's parameters as MCA variables pml_tupleq_<name>. */
#ifndef TUPLEQ_PML_PARAMS_H
#define TUPLEQ_PML_PARAMS_H

#include <stddef.h>
#include <tupleq/tupleq.h>

/* Called from the component's register function. 0 or an OPAL error. */
int mca_pml_tupleq_params_register(void);

/* The values that the user has chosen. NULL: `why` says which isn't understood. */
struct tq_params *mca_pml_tupleq_params(char *why, size_t size);

#endif
