/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals' atomic operations: which there are, and what they do to an item. */
#ifndef P4_ATOMIC_H
#define P4_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>

#include <portals4.h>

#include "arith/arith.h"

/* Returns the size of a type; 0: there is no such type. */
size_t p4_atomic_type_size(ptl_datatype_t type);
/* Returns true if the operation is defined for the type. */
bool p4_atomic_is_valid(ptl_op_t operation, ptl_datatype_t type);
/* Changes an item as the operation says. `data` and, for swaps, `operand` need no alignment. */
void p4_atomic_item(union arith_item *item, const void *data, const void *operand,
		    ptl_op_t operation, ptl_datatype_t type);

#endif
