/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of operations: which entry takes a message. A message is an *arrival* from the moment
 * match() or unexpected() has decided on it, or the HCA has matched it.
 */
#ifndef P4_TARGET_H
#define P4_TARGET_H

#include <tupleq/match.h>

/* The functions of the contexts of portal table entries. */
extern const struct tq_match_ops p4_target_ops;

#endif
