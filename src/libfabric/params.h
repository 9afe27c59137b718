/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters, FI_TUPLEQ_* in the environment: libtupleq's, a key and a size. */
#ifndef TF_PARAMS_H
#define TF_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include <tupleq/tupleq.h>

/* Tells libfabric which parameters there are, for fi_info -e. */
void tf_params_define(void);
/* Returns libtupleq's parameters as the environment sets them, or NULL after a sentence. The caller
 * frees them with tq_params_free(). */
struct tq_params *tf_params(void);
/* Returns the number that processes have in common that talk with each other: one for each user,
 * and for each value of FI_TUPLEQ_KEY. */
uint64_t tf_params_key(void);
/* Returns how many operations an endpoint may have under way, if its user doesn't say. */
size_t tf_params_tx_size(void);

#endif
