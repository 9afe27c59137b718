/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * side.h - shared by tests of libportals: a process with a network interface, a portal table entry
 * and an event queue, and the events that a test expects. Processes are forked by procs.h, so a
 * test of a single process is a child, too.
 */
#ifndef SIDE_H
#define SIDE_H

#include <portals4.h>

#include "procs.h"
#include "ptl.h"

#define SIDE_PT       4
#define SIDE_EVENTS   1024
#define SIDE_TIMEOUT  30000 /* ms: a wait that takes longer has failed */
#define SIDE_MATCHING (PTL_NI_MATCHING | PTL_NI_PHYSICAL)
#define SIDE_LOGICAL  (PTL_NI_MATCHING | PTL_NI_LOGICAL)
#define SIDE_LISTS    (PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL)
#define SIDE_KEY_FREE 16 /* keys of procs.h from here on are the test's */

struct side {
	unsigned me, n;
	unsigned options; /* of the interface */
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_pt_index_t pt;
	ptl_ni_limits_t limits;
	ptl_process_t ids[PROCS_MAX]; /* physical */
};

/* Runs a test of one process. */
void side_alone(procs_fn fn);
/* Reads the arguments of a test, "physical", "logical" or "lists" and the number of nodes, 1 or 2:
 * the kind of its interfaces, and the node of each process. Ends the test if they are wrong. */
void side_arguments(int argc, char **argv, unsigned *options, unsigned nodes[], unsigned n);
/* Opens an interface, with the limits `desired` unless that is NULL. All processes of the test are
 * then known, and have come here. */
void side_open_limits(struct side *side, unsigned me, unsigned n, unsigned options,
		      const ptl_ni_limits_t *desired);
void side_open(struct side *side, unsigned me, unsigned n, unsigned options);
/* Allocates the portal table entry SIDE_PT, with the event queue. */
void side_table(struct side *side, unsigned pt_options);
/* Closes the interface. */
void side_leave(struct side *side);
/* Closes the interface when all processes have come here. */
void side_close(struct side *side);
/* Returns how the interface names a process. */
ptl_process_t side_id(const struct side *side, unsigned who);
/* Returns the wildcard that stands for any process. */
ptl_process_t side_any(const struct side *side);
/* Returns true if the event's initiator is that process. */
bool side_is_from(const struct side *side, const ptl_event_t *event, unsigned who);

/* Binds memory with an event queue and a counting event, which may be none. */
ptl_handle_md_t side_md(struct side *side, void *start, size_t length, unsigned options,
			ptl_handle_eq_t eq, ptl_handle_ct_t ct);
/* Releases a memory descriptor as soon as no operation uses it. */
void side_release(ptl_handle_md_t md);
ptl_handle_ct_t side_ct(struct side *side);

/* Returns an entry for puts and gets of any process. */
ptl_me_t side_me(struct side *side, void *start, size_t length, ptl_match_bits_t bits,
		 unsigned options);
/* Appends an entry, and takes its LINK event unless that is disabled. */
ptl_handle_me_t side_append(struct side *side, const ptl_me_t *me, ptl_list_t list, void *user_ptr);

/* Waits for an event, which has to be of this type, and may have failed. */
ptl_event_t side_any_event(ptl_handle_eq_t eq, ptl_event_kind_t type);
/* Waits for an event, which has to be of this type, and to have succeeded. */
ptl_event_t side_event(ptl_handle_eq_t eq, ptl_event_kind_t type);
/* Waits for an event, which has to be of this type, and to have failed in this way. */
ptl_event_t side_failure(ptl_handle_eq_t eq, ptl_event_kind_t type, ptl_ni_fail_t fail);
/* Expects that there is no event. */
void side_no_event(ptl_handle_eq_t eq);
/* Waits until the counting event has `successes` and no failure. */
void side_count(ptl_handle_ct_t ct, ptl_size_t successes);

/* Returns the byte of data `seed` at an offset; side_fill() writes such data, side_check() expects
 * them. */
uint8_t side_byte(unsigned seed, size_t offset);
void side_fill(void *data, size_t length, unsigned seed);
void side_check(const void *data, size_t length, unsigned seed, size_t offset);

#endif
