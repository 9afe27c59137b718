/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that were decided on: the operation, its events, its answer; and the unexpected list. An
 * arrival may have no entry, but a failure that is answered. All with the lock.
 */
#ifndef P4_ARRIVAL_H
#define P4_ARRIVAL_H

#include <stdbool.h>

#include <portals4.h>

#include "endpoint.h"
#include "region.h"
#include "wire.h"

struct p4_entry;
struct p4_ni;
struct p4_pt;

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

/* Carries the operation out and answers it when the data are there, or answers with the failure of
 * the arrival. If `error` isn't 0 the data were lost. */
void p4_arrival_finish(struct p4_arrival *arrival, int error);
/* Decides on an unexpected message that fits an entry that is being appended, or a search. */
enum tq_verdict p4_arrival_decide_hit(struct p4_arrival *arrival, struct p4_entry *entry,
				      struct tq_take *take);
/* Takes note that the message has left the unexpected list. */
void p4_arrival_leave_list(struct p4_arrival *arrival);
/* Frees the messages that are still in the unexpected list when the interface has ended. */
void p4_arrivals_destroy(struct p4_ni *ni);

#endif
