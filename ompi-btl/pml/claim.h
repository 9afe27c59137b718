/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of the job gives a host's warning. */
#ifndef TUPLEQ_PML_CLAIM_H
#define TUPLEQ_PML_CLAIM_H

#include <stdbool.h>

/* Claims the warning of that kind for this process. Returns true if it is the first of the job on
 * its host to do so; `arg` isn't used. */
bool mca_pml_tupleq_claim_warning(void *arg, const char *kind);

#endif
