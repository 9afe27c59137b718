/* SPDX-License-Identifier: BSD-3-Clause */
/* played.h - functions of libtupleq that are alike in stub.c and contract.c. */
#ifndef PORTALS_PLAYED_H
#define PORTALS_PLAYED_H

#include <tupleq/look_up.h>

/* Returns the locator of a process. */
struct tq_locator played_locator(int process);

#endif
