/* SPDX-License-Identifier: BSD-3-Clause */
/* move.h - two processes with an interface each: process 0 starts operations, process 1 has the
 * entries. */
#ifndef MOVE_H
#define MOVE_H

#include "side.h"

#define MOVE_BITS UINT64_C(0x123456789abcdef0)
#define MOVE_HDR  UINT64_C(0xfedcba9876543210)
#define MOVE_ROOM ((1 << 20) + 1000)
#define MOVE_HERE (PTL_ME_OP_PUT | PTL_ME_OP_GET)
#define MOVE_ONCE (MOVE_HERE | PTL_ME_USE_ONCE)

enum { MOVE_INITIATOR, MOVE_TARGET };

/* The kind of the interfaces, and the nodes of the processes. */
extern unsigned move_options;
extern unsigned move_nodes[2];
/* Each process's data, and room for the other one's. */
extern uint8_t move_data[MOVE_ROOM], move_room[MOVE_ROOM];

/* A test: what each process does, the options of the portal table entry, and the limits of the
 * interfaces (NULL: the defaults). */
struct move_test {
	void (*initiator)(struct side *side);
	void (*target)(struct side *side);
	unsigned pt_options;
	const ptl_ni_limits_t *limits;
};

/* Runs a test. Process i has the data i + 1 of side_fill(), and at the end no event. */
void move_run_test(const struct move_test *test);
/* Runs a test with default options and limits. */
void move_run(void (*initiator)(struct side *side), void (*target)(struct side *side));
/* Puts with an ACK event, and expects that `taken` bytes were stored at `at`. */
void move_put(struct side *side, ptl_handle_md_t md, size_t offset, size_t length,
	      ptl_match_bits_t bits, size_t remote_offset, size_t taken, size_t at);

#endif
