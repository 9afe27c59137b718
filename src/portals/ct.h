/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting events, and the operations that wait for them. All with the lock. */
#ifndef P4_CT_H
#define P4_CT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <portals4.h>

#include "lib.h"

struct p4_ni;

/* A start that a counting event triggers: part of an operation, whose work.run() starts it. */
struct p4_trigger {
	struct p4_work work;
	/* Frees an operation that is no longer to be triggered. */
	void (*drop)(struct p4_trigger *trigger);
	ptl_size_t threshold;
	struct p4_trigger *next, *prev; /* p4_ct.triggered */
};

struct p4_ct {
	ptl_handle_ct_t handle;
	struct p4_ni *ni;
	/* Written under the library's lock. */
	_Atomic ptl_size_t success, failure;
	struct p4_trigger *triggered; /* list, by threshold, then in the order of the calls */
	struct p4_ct *next_free;
};

/* Returns the counting event of a handle; NULL for PTL_CT_NONE. Sets *ok to false if it isn't valid
 * for the interface. */
struct p4_ct *p4_ct_of(const struct p4_ni *ni, ptl_handle_ct_t handle, bool *ok);
/* Counts, and puts off the operations that are triggered by that. NULL: does nothing. */
void p4_ct_add(struct p4_ct *ct, ptl_size_t success, ptl_size_t failure);
void p4_ct_set(struct p4_ct *ct, ptl_size_t success, ptl_size_t failure);
/* Finds the counting event that is to trigger an operation. Returns PTL_OK, or PTL_NO_SPACE if too
 * many operations wait already and this one would too, or PTL_ARG_INVALID. */
int p4_ct_find_trigger(const struct p4_ni *ni, ptl_handle_ct_t handle, ptl_size_t threshold,
		       struct p4_ct **ct);
/* Has the operation started by p4_unlock_run() when the threshold is reached, which may be now. */
void p4_ct_trigger(struct p4_ct *ct, struct p4_trigger *trigger, ptl_size_t threshold);
/* Ends the start of a triggered operation of the interface. Called without the lock. */
void p4_ct_end_start(struct p4_ni *ni);
/* Frees the counting event. Its memory is kept, and used by counting events only, because a thread
 * that waits may still look at it. */
void p4_ct_destroy(struct p4_ct *ct);
/* Frees the memory of counting events that were freed. */
void p4_cts_destroy(void);

#endif
