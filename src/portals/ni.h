/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces: matching or not, by logical or physical ids; all on one endpoint. */
#ifndef P4_NI_H
#define P4_NI_H

#include <portals4.h>

#include "peer.h"
#include "pt.h"

struct p4_arrival;
struct p4_map;

struct p4_ni {
	ptl_handle_ni_t handle;
	unsigned index;   /* of this kind of interface */
	unsigned options; /* PTL_NI_* */
	unsigned refs;    /* calls of PtlNIInit() without their PtlNIFini() */
	ptl_ni_limits_t limits;
	int nentries, nmds, ncts, neqs, ntriggered;
	ptl_sr_value_t status[PTL_SR_LAST];
	struct p4_pt pts[P4_PTS];
	struct tq_ctx *ctx[P4_PTS + 1]; /* of the portal table entries, and of answers */
	/* Logical ids. */
	struct p4_map *map; /* NULL: PtlSetMap() wasn't called */
	/* List: unexpected messages, until they have been taken and their data are there. */
	struct p4_arrival *headers;
	/* The end. */
	bool closing;       /* takes no message any more */
	unsigned nusers;    /* answers that are being sent, and operations that are being started */
	struct p4_ni *next; /* interfaces that were closed */
};

/* Returns the interface of a handle, or NULL. */
struct p4_ni *p4_ni_of(ptl_handle_ni_t handle);
static inline bool p4_ni_is_logical(const struct p4_ni *ni)
{
	return ni->options & PTL_NI_LOGICAL;
}
static inline bool p4_ni_is_matching(const struct p4_ni *ni)
{
	return ni->options & PTL_NI_MATCHING;
}

#endif
