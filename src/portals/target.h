/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target of operations: which entry takes a message, what is done there, and which events
 * follow. A message is an *arrival* from the moment match() or unexpected() has decided on it, or
 * the HCA has matched it. So an arrival may have no entry, but a failure that is answered.
 */
#ifndef P4_TARGET_H
#define P4_TARGET_H

#include <stdbool.h>

#include <portals4.h>

#include "endpoint.h"
#include "region.h"
#include "wire.h"

struct p4_entry;
struct p4_pt;

/* The functions of the contexts of portal table entries. */
extern const struct tq_match_ops p4_target_ops;

/* An entry that was appended, or a search, that has found an unexpected message whose data are not
 * there yet. */
struct p4_hit {
	enum p4_tag tag;
	struct p4_entry *entry; /* NULL: none */
};

struct p4_arrival {
	enum p4_tag tag;
	struct p4_hit hit;
	struct p4_pt *pt;
	struct p4_entry *entry;     /* NULL: none took it */
	struct p4_wire_request req; /* in the host's byte order */
	ptl_match_bits_t bits;
	ptl_list_t list;
	ptl_ni_fail_t fail;
	ptl_size_t offset, mlength;
	unsigned reserved; /* events, in p4_eq.reserved */
	bool header;       /* was put in the unexpected list */
	bool stored;       /* the operation is done */
	bool left_list;    /* an entry or a search has taken it out of the unexpected list */
	void *data;        /* of an atomic operation: of the message, then of the reply */
	void *start;       /* where the data are in the entry */
	struct p4_window window;
	struct p4_arrival *next, *prev; /* p4_ni.headers */
};

/* Returns true if a message fits the entry: its bits, its initiator, and its length. */
bool p4_target_fits(const struct p4_entry *entry, const struct p4_wire_request *req,
		    ptl_match_bits_t bits);

#endif
