/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which entry takes a message, and in which order: refusals, memory in pieces, and many messages.
 *
 * test_choice physical|logical NODES, under "softhca run --nodes NODES"
 */
#include <unistd.h>

#include "move.h"

/* ---- which entry takes a message ---- */

static void choice_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	move_put(side, md, 0, 1, 0x0fa, 0, 1, 0); /* the second, whose bits are ignored */
	move_put(side, md, 1, 1, 0x1fa, 0, 1, 0); /* the third, which is for this process */
	move_put(side, md, 2, 1, 0x1fa, 0, 1, 0); /* the fourth */
	move_put(side, md, 3, 1, 0x300, 0, 1, 0); /* the last, which takes all */
	side_release(md);
}

static void choice_target(struct side *side)
{
	ptl_handle_me_t handle;
	ptl_event_t event;
	ptl_me_t me;

	me = side_me(side, move_room, 10, 0x0fa, MOVE_ONCE);
	me.match_id = side_id(side, MOVE_TARGET); /* not the one that puts */
	handle = side_append(side, &me, PTL_PRIORITY_LIST, move_room);
	me = side_me(side, move_room + 1, 10, 0x00a, MOVE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
	me.ignore_bits = 0xf0;
	side_append(side, &me, PTL_PRIORITY_LIST, move_room + 1);
	me.match_bits = 0x10a;
	me.match_id = side_id(side, MOVE_INITIATOR);
	me.start = move_room + 2;
	side_append(side, &me, PTL_PRIORITY_LIST, move_room + 2);
	me.match_id = side_any(side);
	me.start = move_room + 3;
	side_append(side, &me, PTL_PRIORITY_LIST, move_room + 3);
	me.match_bits = 0;
	me.ignore_bits = ~UINT64_C(0);
	me.start = move_room + 4;
	side_append(side, &me, PTL_PRIORITY_LIST, move_room + 4);
	procs_barrier();
	for (int i = 1; i <= 4; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(event.user_ptr == move_room + i);
		t_eq(move_room[i], side_byte(1, (size_t)i - 1));
	}
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_choice(void **state)
{
	(void)state;
	move_run(choice_initiator, choice_target);
}

/* ---- refusals ---- */

/* Puts, and expects an ACK event with the failure `why`. */
static void refused(struct side *side, ptl_handle_md_t md, ptl_match_bits_t bits, ptl_ni_fail_t why)
{
	ptl_event_t event;

	t_ptl_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, side_id(side, MOVE_TARGET), SIDE_PT, bits, 0, NULL,
			0));
	side_event(side->eq, PTL_EVENT_SEND);
	event = side_failure(side->eq, PTL_EVENT_ACK, why);
	t_eq(event.mlength, 0);
}

static void refusal_initiator(struct side *side)
{
	ptl_handle_ct_t ct = side_ct(side);
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);
	ptl_handle_md_t counted =
		side_md(side, move_data, MOVE_ROOM, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct);
	ptl_ct_event_t count;
	ptl_size_t one = 1;
	unsigned which;

	procs_barrier();
	refused(side, md, 1, PTL_NI_OP_VIOLATION);
	refused(side, md, 2, PTL_NI_PERM_VIOLATION);
	refused(side, md, 3, PTL_NI_DROPPED);
	t_ptl_ok(PtlGet(md, 0, 10, side_id(side, MOVE_TARGET), SIDE_PT, 4, 0, NULL));
	side_failure(side->eq, PTL_EVENT_REPLY, PTL_NI_OP_VIOLATION);
	t_ptl_ok(PtlPut(counted, 0, 10, PTL_CT_ACK_REQ, side_id(side, MOVE_TARGET), SIDE_PT, 3, 0,
			NULL, 0));
	t_ptl_ok(PtlCTPoll(&ct, &one, 1, SIDE_TIMEOUT, &count, &which));
	t_eq(count.success, 0);
	t_eq(count.failure, 1);
	procs_barrier();
	side_release(md);
	side_release(counted);
}

static void refusal_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_data, 100, 1, PTL_ME_OP_GET);
	ptl_handle_me_t handles[3];
	ptl_sr_value_t value;

	handles[0] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	me = side_me(side, move_room, 100, 2, MOVE_HERE);
	me.uid = geteuid() + 1;
	handles[1] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	me = side_me(side, move_room, 100, 4, PTL_ME_OP_PUT);
	handles[2] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	procs_barrier();
	t_ptl_ok(PtlNIStatus(side->ni, PTL_SR_OPERATION_VIOLATIONS, &value));
	t_eq(value, 2);
	t_ptl_ok(PtlNIStatus(side->ni, PTL_SR_PERMISSION_VIOLATIONS, &value));
	t_eq(value, 1);
	t_ptl_ok(PtlNIStatus(side->ni, PTL_SR_DROP_COUNT, &value));
	t_eq(value, 2);
	for (int i = 0; i < 3; i++)
		t_ptl_ok(PtlMEUnlink(handles[i]));
	t_eq(move_room[0], 0);
}

static void test_refusal(void **state)
{
	(void)state;
	move_run(refusal_initiator, refusal_target);
}

/* ---- memory in pieces ---- */

static void pieces_initiator(struct side *side)
{
	ptl_iovec_t from[] = {
		{move_data, 10}, {NULL, 0}, {move_data + 100, 20}, {move_data + 1000, 5000}};
	ptl_handle_md_t md = side_md(side, from, 4, PTL_IOVEC, side->eq, PTL_CT_NONE);

	procs_barrier();
	move_put(side, md, 0, 5030, 1, 0, 5030, 0);
	procs_barrier();
	move_put(side, md, 5, 20, 1, 3, 20, 3);
	procs_barrier();
	move_put(side, md, 0, 5030, 1, 4007, 2000, 4007);
	procs_barrier();
	side_release(md);
}

static void pieces_target(struct side *side)
{
	ptl_iovec_t to[] = {{move_room, 7}, {NULL, 0}, {move_room + 100, 6000}};
	ptl_me_t me = side_me(side, to, 3, 1, MOVE_HERE | PTL_IOVEC);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);

	procs_barrier();
	t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, 5030);
	side_check(move_room, 7, 1, 0);
	t_eq(move_room[7], 0);
	side_check(move_room + 100, 3, 1, 7);
	side_check(move_room + 103, 20, 1, 100);
	side_check(move_room + 123, 5000, 1, 1000);
	procs_barrier();
	t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, 20);
	side_check(move_room + 3, 4, 1, 5);
	side_check(move_room + 100, 1, 1, 9);
	side_check(move_room + 101, 15, 1, 100);
	procs_barrier();
	/* Cut at the end of the last piece. */
	t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, 2000);
	side_check(move_room + 4100, 10, 1, 0);
	side_check(move_room + 4110, 20, 1, 100);
	side_check(move_room + 4130, 1970, 1, 1000);
	procs_barrier();
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_pieces(void **state)
{
	(void)state;
	move_run(pieces_initiator, pieces_target);
}

/* ---- many messages keep their order ---- */

#define MANY 2000
#define LONG 20000

static void many_initiator(struct side *side)
{
	ptl_handle_ct_t acked = side_ct(side);
	ptl_handle_md_t md =
		side_md(side, move_data, MOVE_ROOM, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);

	procs_barrier();
	for (unsigned i = 0; i < MANY; i++)
		t_ptl_ok(PtlPut(md, 0, i % 7 ? i % 64 : LONG, PTL_CT_ACK_REQ,
				side_id(side, MOVE_TARGET), SIDE_PT, i % 3, 0, NULL, i));
	side_count(acked, MANY);
	side_release(md);
}

static void many_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, MOVE_ROOM, 0, MOVE_HERE);
	bool came[MANY] = {false};
	unsigned next = 0;
	ptl_handle_me_t handle;
	ptl_handle_eq_t eq;

	t_ptl_ok(PtlPTFree(side->ni, SIDE_PT));
	t_ptl_ok(PtlEQAlloc(side->ni, 2 * MANY, &eq));
	t_ptl_ok(PtlPTAlloc(side->ni, 0, eq, SIDE_PT, &side->pt));
	me.ignore_bits = 3;
	me.options |= PTL_ME_EVENT_LINK_DISABLE;
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	/* The messages are matched in order. Long ones end later than their
	 * successors. */
	for (unsigned i = 0; i < MANY; i++) {
		ptl_event_t event = side_event(eq, PTL_EVENT_PUT);
		unsigned number = (unsigned)event.hdr_data;
		bool is_long = event.rlength == LONG;

		t_true(number < MANY && !came[number], "message %u again", number);
		came[number] = true;
		t_eq(event.match_bits, number % 3);
		t_eq(is_long, number % 7 == 0);
		t_true(is_long || number >= next, "message %u after %u", number, next - 1);
		next = is_long ? next : number + 1;
	}
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_many(void **state)
{
	(void)state;
	move_run(many_initiator, many_target);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_many),
	};

	side_arguments(argc, argv, &move_options, move_nodes, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
