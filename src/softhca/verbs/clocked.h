/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clocked.h - the operations of the data path in virtual time, each a sync point.
 */
#ifndef SHCA_CLOCKED_H
#define SHCA_CLOCKED_H

#include "hca/context.h"

/* Puts these operations into a context's tables in place of the plain ones, if time is virtual. */
void shca_clocked_ops(struct verbs_context *verbs);

#endif
