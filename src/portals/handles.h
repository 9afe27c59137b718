/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: names of objects that stay valid as numbers after the object has gone, and are then
 * recognised as stale. Looking one up takes no lock, because PtlEQGet() and PtlCTGet() are called
 * in loops.
 */
#ifndef P4_HANDLES_H
#define P4_HANDLES_H

#include <stdint.h>

#include <portals4.h>

enum p4_kind { P4_NI = 1, P4_EQ, P4_CT, P4_MD, P4_ENTRY, P4_OP };

/* Returns a handle of the object, or PTL_INVALID_HANDLE if there are too many or no memory. With
 * the lock. */
ptl_handle_any_t p4_handle_new(enum p4_kind kind, void *object);
/* Returns the object, or NULL if the handle isn't one of that kind, or is stale. */
void *p4_handle_get(ptl_handle_any_t handle, enum p4_kind kind);
/* Returns the kind that the handle says. */
static inline enum p4_kind p4_handle_kind(ptl_handle_any_t handle)
{
	return (enum p4_kind)(handle >> 56);
}
/* Calls fn() for each object of a kind; fn() may free the object's handle. With the lock. */
void p4_handles_each(enum p4_kind kind, void (*fn)(enum p4_kind kind, void *object));
/* Makes the handle stale. With the lock. */
void p4_handle_free(ptl_handle_any_t handle);
/* Frees the tables, when no object is left. */
void p4_handles_destroy(void);

#endif
