/* SPDX-License-Identifier: BSD-3-Clause */
/* move.c - see move.h. */
#include "move.h"

unsigned move_options;
unsigned move_nodes[2];
uint8_t move_data[MOVE_ROOM], move_room[MOVE_ROOM];

static void part(unsigned me, void *arg)
{
	const struct move_test *test = arg;
	struct side side;

	side_open_limits(&side, me, 2, move_options, test->limits);
	side_table(&side, test->pt_options);
	side_fill(move_data, sizeof(move_data), me + 1);
	memset(move_room, 0, sizeof(move_room));
	(me == MOVE_TARGET ? test->target : test->initiator)(&side);
	procs_barrier();
	side_no_event(side.eq);
	side_close(&side);
}

void move_run_test(const struct move_test *test)
{
	struct move_test copy = *test;

	procs_run(2, move_nodes, part, &copy);
}

void move_run(void (*initiator)(struct side *side), void (*target)(struct side *side))
{
	move_run_test(&(struct move_test){.initiator = initiator, .target = target});
}

void move_put(struct side *side, ptl_handle_md_t md, size_t offset, size_t length,
	      ptl_match_bits_t bits, size_t remote_offset, size_t taken, size_t at)
{
	ptl_event_t event;
	int sent = 0, acked = 0;

	t_ptl_ok(PtlPut(md, offset, length, PTL_ACK_REQ, side_id(side, MOVE_TARGET), SIDE_PT, bits,
			remote_offset, &md, MOVE_HDR));
	while (!sent || !acked) {
		unsigned which;

		t_ptl_ok(PtlEQPoll(&side->eq, 1, SIDE_TIMEOUT, &event, &which));
		t_eq(event.ni_fail_type, PTL_NI_OK);
		t_holds(event.user_ptr == &md);
		if (event.type == PTL_EVENT_SEND) {
			sent++;
			t_eq(sent, 1);
			continue;
		}
		t_eq(event.type, PTL_EVENT_ACK);
		acked++;
		t_eq(acked, 1);
		t_eq(event.mlength, taken);
		t_eq(event.remote_offset, at);
	}
}
