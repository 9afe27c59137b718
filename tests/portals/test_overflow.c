/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that come before their entries: overflow lists, searches, and flow control. Process 0
 * puts, process 1 has the entries.
 *
 * test_overflow physical|logical NODES, under "softhca run --nodes NODES"
 */
#include "move.h"

#define ROOM 100000
#define PUTS PTL_ME_OP_PUT
#define ONCE (PUTS | PTL_ME_USE_ONCE)

static uint8_t store[ROOM];

/* Puts bytes [offset, offset + length) of the data, and expects an ACK event with `end`. Returns
 * the event. */
static ptl_event_t put(struct side *side, size_t offset, size_t length, ptl_match_bits_t bits,
		       ptl_ni_fail_t end)
{
	ptl_handle_ct_t sent = side_ct(side);
	ptl_handle_md_t md =
		side_md(side, move_data, ROOM, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SEND_DISABLE,
			side->eq, sent);
	ptl_event_t event;

	t_ptl_ok(PtlPut(md, offset, length, PTL_ACK_REQ, side_id(side, MOVE_TARGET), SIDE_PT, bits,
			0, NULL, offset));
	side_count(sent, 1);
	event = side_failure(side->eq, PTL_EVENT_ACK, end);
	side_release(md);
	t_ptl_ok(PtlCTFree(sent));
	return event;
}

/* Appends an overflow entry for all messages. */
static ptl_handle_me_t overflow(struct side *side, uint8_t *start, size_t length, unsigned opts,
				size_t min_free)
{
	ptl_me_t me = side_me(side, start, length, 0, PUTS | opts);

	me.ignore_bits = ~UINT64_C(0);
	me.min_free = min_free;
	return side_append(side, &me, PTL_OVERFLOW_LIST, start);
}

/* Appends an entry that finds messages, so that no LINK event comes if it is used once. */
static ptl_handle_me_t append(struct side *side, const ptl_me_t *me, void *user_ptr)
{
	ptl_handle_me_t handle;

	t_ptl_ok(PtlMEAppend(side->ni, SIDE_PT, me, PTL_PRIORITY_LIST, user_ptr, &handle));
	return handle;
}

/* ---- found by an entry ---- */

static void found_initiator(struct side *side)
{
	procs_barrier();
	for (size_t i = 0; i < 4; i++)
		t_eq(put(side, i, 1000 + i, i, PTL_NI_OK).ptl_list, PTL_OVERFLOW_LIST);
	put(side, 50, 60000, 9, PTL_NI_OK);
	procs_barrier();
}

static void found_target(struct side *side)
{
	ptl_handle_me_t entry = overflow(side, store, ROOM, PTL_ME_MANAGE_LOCAL, 0);
	ptl_me_t me;
	ptl_event_t event;
	size_t at = 0;

	procs_barrier();
	for (size_t i = 0; i < 5; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_eq(event.ptl_list, PTL_OVERFLOW_LIST);
		t_holds(event.user_ptr == store);
		t_holds(event.start == store + at);
		t_eq(event.rlength, i < 4 ? 1000 + i : 60000);
		at += event.rlength;
	}
	procs_barrier();
	/* Out of order: the third; then the rest of the short ones by one entry that stays. */
	me = side_me(side, move_room, ROOM, 2, ONCE);
	append(side, &me, move_room);
	event = side_event(side->eq, PTL_EVENT_PUT_OVERFLOW);
	t_holds(event.user_ptr == move_room);
	t_holds(event.start == store + 2001);
	t_eq(event.mlength, 1002);
	t_eq(event.rlength, 1002);
	t_eq(event.match_bits, 2);
	t_eq(event.hdr_data, 2);
	t_holds(side_is_from(side, &event, MOVE_INITIATOR));
	side_check(event.start, 1002, MOVE_INITIATOR + 1, 2);
	side_event(side->eq, PTL_EVENT_AUTO_UNLINK);

	me = side_me(side, move_room, ROOM, 0, PUTS | PTL_ME_EVENT_LINK_DISABLE);
	me.ignore_bits = 3;
	t_ptl_ok(PtlMEUnlink(append(side, &me, move_room)));
	for (size_t i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		event = side_event(side->eq, PTL_EVENT_PUT_OVERFLOW);
		t_eq(event.match_bits, i);
		side_check(event.start, 1000 + i, MOVE_INITIATOR + 1, i);
	}
	/* Headers that no entry took keep the overflow entry in use. */
	t_ptl(PtlMEUnlink(entry), PTL_IN_USE);
	me = side_me(side, move_room, ROOM, 9, ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
	append(side, &me, move_room);
	event = side_event(side->eq, PTL_EVENT_PUT_OVERFLOW);
	side_check(event.start, 60000, MOVE_INITIATOR + 1, 50);
	t_ptl_ok(PtlMEUnlink(entry));
}

static void test_found(void **state)
{
	(void)state;
	move_run(found_initiator, found_target);
}

/* ---- overflow entries unlink themselves, and are free when their last header is taken ---- */

static void freed_initiator(struct side *side)
{
	procs_barrier();
	put(side, 0, 500, 1, PTL_NI_OK);
	put(side, 0, 450, 2, PTL_NI_OK);
	put(side, 0, 300, 3, PTL_NI_OK);
}

static void freed_target(struct side *side)
{
	ptl_handle_me_t second;
	ptl_me_t me;

	overflow(side, store, 1000, PTL_ME_MANAGE_LOCAL, 100);
	second = overflow(side, store + 1000, 1000, PTL_ME_MANAGE_LOCAL, 100);
	procs_barrier();
	side_event(side->eq, PTL_EVENT_PUT);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == store);
	t_holds(side_event(side->eq, PTL_EVENT_AUTO_UNLINK).user_ptr == store);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == store + 1000);
	for (ptl_match_bits_t bits = 3; bits > 0; bits--) {
		me = side_me(side, move_room, ROOM, bits, ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
		append(side, &me, move_room);
		side_event(side->eq, PTL_EVENT_PUT_OVERFLOW);
		if (bits == 1)
			t_holds(side_event(side->eq, PTL_EVENT_AUTO_FREE).user_ptr == store);
	}
	t_ptl_ok(PtlMEUnlink(second));
}

static void test_freed(void **state)
{
	(void)state;
	move_run(freed_initiator, freed_target);
}

/* ---- searches ---- */

static void search(struct side *side, ptl_match_bits_t bits, ptl_match_bits_t ignore,
		   ptl_search_op_t op, unsigned opts)
{
	ptl_me_t me = side_me(side, move_room, ROOM, bits, PUTS | opts);

	me.ignore_bits = ignore;
	t_ptl_ok(PtlMESearch(side->ni, SIDE_PT, &me, op, move_room));
}

static void search_initiator(struct side *side)
{
	procs_barrier();
	for (size_t i = 0; i < 3; i++)
		put(side, i, 100, i, PTL_NI_OK);
}

static void search_target(struct side *side)
{
	ptl_handle_me_t entry = overflow(side, store, ROOM, PTL_ME_MANAGE_LOCAL, 0);
	ptl_event_t event;

	search(side, 0, 3, PTL_SEARCH_ONLY, PTL_ME_USE_ONCE);
	event = side_failure(side->eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
	t_holds(event.user_ptr == move_room);
	procs_barrier();
	for (int i = 0; i < 3; i++)
		side_event(side->eq, PTL_EVENT_PUT);
	/* Looking changes nothing: twice the first, then all. */
	for (int i = 0; i < 2; i++) {
		search(side, 0, 3, PTL_SEARCH_ONLY, PTL_ME_USE_ONCE);
		event = side_event(side->eq, PTL_EVENT_SEARCH);
		t_eq(event.match_bits, 0);
		t_eq(event.mlength, 100);
		t_eq(event.hdr_data, 0);
		t_holds(side_is_from(side, &event, MOVE_INITIATOR));
	}
	search(side, 0, 3, PTL_SEARCH_ONLY, 0);
	for (size_t i = 0; i < 3; i++)
		t_eq(side_event(side->eq, PTL_EVENT_SEARCH).match_bits, i);
	search(side, 7, 0, PTL_SEARCH_DELETE, PTL_ME_USE_ONCE);
	side_failure(side->eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
	search(side, 1, 0, PTL_SEARCH_DELETE, PTL_ME_USE_ONCE);
	event = side_event(side->eq, PTL_EVENT_PUT_OVERFLOW);
	t_holds(event.user_ptr == move_room);
	t_eq(event.match_bits, 1);
	side_check(event.start, 100, MOVE_INITIATOR + 1, 1);
	search(side, 0, 3, PTL_SEARCH_DELETE, 0);
	t_eq(side_event(side->eq, PTL_EVENT_PUT_OVERFLOW).match_bits, 0);
	t_eq(side_event(side->eq, PTL_EVENT_PUT_OVERFLOW).match_bits, 2);
	t_ptl_ok(PtlMEUnlink(entry));
}

static void test_search(void **state)
{
	(void)state;
	move_run(search_initiator, search_target);
}

/* ---- entries whose messages leave no header ---- */

static void nameless_initiator(struct side *side)
{
	procs_barrier();
	put(side, 3, 100, 5, PTL_NI_OK);
}

static void nameless_target(struct side *side)
{
	ptl_handle_me_t entry =
		overflow(side, store, ROOM, PTL_ME_MANAGE_LOCAL | PTL_ME_UNEXPECTED_HDR_DISABLE, 0);

	procs_barrier();
	side_check(side_event(side->eq, PTL_EVENT_PUT).start, 100, MOVE_INITIATOR + 1, 3);
	search(side, 5, 0, PTL_SEARCH_ONLY, PTL_ME_USE_ONCE);
	side_failure(side->eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
	t_ptl_ok(PtlMEUnlink(entry));
}

static void test_nameless(void **state)
{
	(void)state;
	move_run(nameless_initiator, nameless_target);
}

/* ---- flow control ---- */

static const ptl_ni_limits_t few_headers = {.max_entries = 64,
					    .max_unexpected_headers = 4,
					    .max_mds = 64,
					    .max_cts = 64,
					    .max_eqs = 64,
					    .max_pt_index = 10,
					    .max_list_size = 64,
					    .max_triggered_ops = 64,
					    .max_msg_size = ROOM};

/* The target has no place for the message: the entry is disabled until the target enables it. */
static void full_initiator(struct side *side)
{
	procs_barrier();
	put(side, 0, 100, 1, PTL_NI_OK);
	put(side, 0, 100, 2, PTL_NI_PT_DISABLED);
	put(side, 0, 100, 1, PTL_NI_PT_DISABLED);
	procs_put(SIDE_KEY_FREE, 1);
	procs_get(MOVE_TARGET, SIDE_KEY_FREE);
	put(side, 0, 100, 2, PTL_NI_OK);
}

static void full_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, ROOM, 1, PUTS);
	ptl_handle_me_t first = side_append(side, &me, PTL_PRIORITY_LIST, NULL), second;

	procs_barrier();
	side_event(side->eq, PTL_EVENT_PUT);
	side_failure(side->eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
	procs_get(MOVE_INITIATOR, SIDE_KEY_FREE);
	side_no_event(side->eq);
	me.match_bits = 2;
	second = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	t_ptl_ok(PtlPTEnable(side->ni, SIDE_PT));
	procs_put(SIDE_KEY_FREE, 1);
	side_event(side->eq, PTL_EVENT_PUT);
	t_ptl_ok(PtlMEUnlink(first));
	t_ptl_ok(PtlMEUnlink(second));
}

static void test_full(void **state)
{
	(void)state;
	move_run_test(&(struct move_test){
		.pt_options = PTL_PT_FLOWCTRL, .initiator = full_initiator, .target = full_target});
}

/* More unexpected headers than the limit. */
static void headers_initiator(struct side *side)
{
	int most = (int)procs_get(MOVE_TARGET, SIDE_KEY_FREE);

	for (int i = 0; i < most; i++)
		put(side, 0, 1, 5, PTL_NI_OK);
	put(side, 0, 1, 5, PTL_NI_PT_DISABLED);
}

static void headers_target(struct side *side)
{
	ptl_handle_me_t entry =
		overflow(side, store, ROOM, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE, 0);

	t_true(side->limits.max_unexpected_headers >= 4 &&
		       side->limits.max_unexpected_headers <= 5000,
	       "max_unexpected_headers is %d", side->limits.max_unexpected_headers);
	procs_put(SIDE_KEY_FREE, (uint64_t)side->limits.max_unexpected_headers);
	side_failure(side->eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
	search(side, 5, 0, PTL_SEARCH_DELETE, PTL_ME_EVENT_OVER_DISABLE);
	t_ptl_ok(PtlMEUnlink(entry));
}

static void test_headers(void **state)
{
	(void)state;
	move_run_test(&(struct move_test){.pt_options = PTL_PT_FLOWCTRL,
					  .limits = &few_headers,
					  .initiator = headers_initiator,
					  .target = headers_target});
}

/* ---- PtlPTDisable(), a missing portal table entry, and one that is allocated disabled ---- */

static void closed_initiator(struct side *side)
{
	procs_barrier();
	put(side, 0, 100, 1, PTL_NI_PT_DISABLED);
	procs_barrier();
	procs_barrier();
	put(side, 0, 100, 1, PTL_NI_OK);
	procs_barrier();
	procs_barrier();
	put(side, 0, 100, 1, PTL_NI_DROPPED);
}

static void closed_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, ROOM, 1, PUTS);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);

	t_ptl_ok(PtlPTDisable(side->ni, SIDE_PT));
	procs_barrier();
	procs_barrier();
	side_no_event(side->eq);
	t_ptl_ok(PtlPTEnable(side->ni, SIDE_PT));
	procs_barrier();
	side_event(side->eq, PTL_EVENT_PUT);
	procs_barrier();
	t_ptl_ok(PtlMEUnlink(handle));
	t_ptl_ok(PtlPTFree(side->ni, SIDE_PT));
	procs_barrier();
}

static void test_closed(void **state)
{
	(void)state;
	move_run(closed_initiator, closed_target);
}

/* ---- a full event queue without flow control loses events, and says so ---- */

static void lost_initiator(struct side *side)
{
	procs_barrier();
	for (int i = 0; i < 12; i++)
		put(side, (size_t)i, 1, 1, PTL_NI_OK);
	procs_put(SIDE_KEY_FREE, 1);
	procs_get(MOVE_TARGET, SIDE_KEY_FREE);
	put(side, 12, 1, 1, PTL_NI_OK);
}

static void lost_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, ROOM, 1, PUTS | PTL_ME_EVENT_LINK_DISABLE);
	ptl_handle_me_t handle;
	ptl_handle_eq_t eq;
	ptl_event_t event;
	unsigned next = 0, n = 0, lost = 0;
	int rc;

	t_ptl_ok(PtlPTFree(side->ni, SIDE_PT));
	t_ptl_ok(PtlEQAlloc(side->ni, 4, &eq));
	t_ptl_ok(PtlPTAlloc(side->ni, 0, eq, SIDE_PT, &side->pt));
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	procs_get(MOVE_INITIATOR, SIDE_KEY_FREE);
	procs_put(SIDE_KEY_FREE, 1);
	do {
		rc = PtlEQWait(eq, &event);
		t_true(rc == PTL_OK || rc == PTL_EQ_DROPPED, "PtlEQWait() returned %d", rc);
		t_true(event.hdr_data >= next, "event %u again", (unsigned)event.hdr_data);
		t_eq(rc == PTL_EQ_DROPPED, event.hdr_data > next);
		lost += rc == PTL_EQ_DROPPED;
		next = (unsigned)event.hdr_data + 1;
		n++;
	} while (event.hdr_data != 12);
	t_eq(lost, 1);
	t_true(n >= 4, "%u events came", n);
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_lost(void **state)
{
	(void)state;
	move_run(lost_initiator, lost_target);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),  cmocka_unit_test(test_freed),
		cmocka_unit_test(test_search), cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_full),   cmocka_unit_test(test_headers),
		cmocka_unit_test(test_closed), cmocka_unit_test(test_lost),
	};

	side_arguments(argc, argv, &move_options, move_nodes, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
