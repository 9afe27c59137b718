/* SPDX-License-Identifier: BSD-3-Clause */
/* portals.h - what the tests of libportals share: interfaces, events, entries. */
#ifndef T_PORTALS_H
#define T_PORTALS_H

#include <portals4.h>

#include "procs.h"
#include "ptl.h"

#define P_BITS UINT64_C(0x1234) /* match bits of most tests */
#define P_WAIT 20000            /* ms until a missing event is a failure */

/* An interface of this process, with a queue and portal table entry 0. */
struct p_ni {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;   /* of the target */
	ptl_handle_eq_t mine; /* of the initiator */
	ptl_process_t id;     /* of this process, physical */
};

struct p_ni p_open(unsigned options, unsigned pt_options, ptl_size_t events);
void p_close(struct p_ni *ni);
/* Publishes this process's id, and returns another child's. */
void p_publish(const struct p_ni *ni);
ptl_process_t p_id_of(unsigned who);

/* Returns the next event of a queue, which must be of that type. */
ptl_event_t p_event(ptl_handle_eq_t eq, ptl_event_kind_t type);
/* Expects an empty queue. */
void p_no_event(ptl_handle_eq_t eq);

/* Returns an entry for any process with P_BITS. */
ptl_me_t p_me(void *start, ptl_size_t length, unsigned options);
ptl_handle_me_t p_append(struct p_ni *ni, const ptl_me_t *me, ptl_list_t list, void *user_ptr);
ptl_handle_md_t p_md(struct p_ni *ni, void *start, ptl_size_t length);
/* Puts `length` bytes from the beginning of the descriptor, with an acknowledgement. */
void p_put(ptl_handle_md_t md, ptl_size_t length, ptl_process_t to, ptl_match_bits_t bits,
	   ptl_size_t remote_offset);
/* Takes the events of such a put, and returns its acknowledgement. */
ptl_event_t p_acked(struct p_ni *ni);

#endif
