/* SPDX-License-Identifier: BSD-3-Clause */
/* Portal table entries. All with the lock. */
#ifndef P4_PT_H
#define P4_PT_H

#include <stdbool.h>

#include <portals4.h>

#include "lib.h"

struct p4_entry;
struct p4_ni;

struct p4_pt {
	struct p4_ni *ni;
	ptl_pt_index_t index;
	bool allocated, enabled;
	unsigned options;
	ptl_handle_eq_t eq;
	struct p4_entry *overflow; /* list */
	int nentries[2];           /* by list */
	int nheaders;              /* unexpected */
	unsigned nbusy;            /* messages that have come and have not ended */
	unsigned ntaken;           /* those of them that an entry has taken */
	bool disabled_event;       /* PTL_EVENT_PT_DISABLED is due when nbusy is 0 */
	bool closing;              /* libtupleq is to be told that the entry is disabled */
	struct p4_work work;       /* of `closing` */
};

/* Returns the allocated entry of that index, or NULL. */
struct p4_pt *p4_pt_of(ptl_handle_ni_t ni_handle, ptl_pt_index_t index);
/* Disables the entry because something is exhausted; PTL_EVENT_PT_DISABLED follows what is under
 * way. Messages whose entries are in queues of the HCA may still come. */
void p4_pt_disable_exhausted(struct p4_pt *pt);
/* Ends a message; `taken` says if an entry has taken the message. */
void p4_pt_release(struct p4_pt *pt, bool taken);
/* Posts an event to the entry's queue, if it has one. */
void p4_pt_event(const struct p4_pt *pt, const ptl_event_t *event);

#endif
