/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libtupleq that are alike in all that tests play: stub.c and contract.c. */
#ifndef PORTALS_PLAYED_H
#define PORTALS_PLAYED_H

#include <tupleq/look_up.h>

/* Returns the process's name in the fabric. */
struct tq_locator played_locator(int process);

#endif
