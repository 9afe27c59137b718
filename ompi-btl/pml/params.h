/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's parameters as MCA variables pml_tupleq_<name>. */
#ifndef TUPLEQ_PML_PARAMS_H
#define TUPLEQ_PML_PARAMS_H

#include <stddef.h>
#include <tupleq/tupleq.h>

/* Registers the variables. Returns 0 or an OPAL error. */
int mca_pml_tupleq_params_register(void);

/* Returns the values that the user has set, or NULL with a sentence in `why` if one isn't valid. */
struct tq_params *mca_pml_tupleq_params(char *why, size_t size);

#endif
