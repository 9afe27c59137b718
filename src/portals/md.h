/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors: the initiator's memory, with where its events go. */
#ifndef P4_MD_H
#define P4_MD_H

#include <portals4.h>

#include "region.h"

struct p4_ni;

struct p4_md {
	ptl_handle_md_t handle;
	struct p4_ni *ni;
	struct p4_region region;
	unsigned options;
	ptl_handle_eq_t eq;
	ptl_handle_ct_t ct;
	unsigned nops; /* under way */
};

/* Posts an event, if the descriptor's options want that, and counts it if the option `count` is
 * set. `bytes` is the number that a successful operation counts with PTL_MD_EVENT_CT_BYTES. With
 * the lock, as are the following two. */
void p4_md_event(const struct p4_md *md, const ptl_event_t *event, unsigned count,
		 ptl_size_t bytes);
/* Counts, as above, without an event. */
void p4_md_count(const struct p4_md *md, unsigned count, ptl_size_t bytes, ptl_ni_fail_t fail);
void p4_md_destroy(struct p4_md *md);

#endif
