/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that hold for each endpoint after each step. */
#ifndef SIM_INVARIANTS_H
#define SIM_INVARIANTS_H

#include "model.h"

void invariants_check(const struct model_ep *ep);

#endif
