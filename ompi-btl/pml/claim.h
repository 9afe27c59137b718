/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of the job gives a host's warning. */
#ifndef TUPLEQ_PML_CLAIM_H
#define TUPLEQ_PML_CLAIM_H

#include <stdbool.h>

/* Returns true if this process is the first of the job on its host to claim the warning of that
 * kind; `arg` isn't used. */
bool mca_pml_tupleq_claim_warning(void *arg, const char *kind);

#endif
