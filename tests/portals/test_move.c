/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets between two processes, with their events, counting events and options.
 *
 * test_move physical|logical NODES, under "softhca run --nodes NODES"
 */
#include <unistd.h>

#include "move.h"

/* ---- put ---- */

static const size_t sizes[] = {0, 1, 8, 100, 1000, 5000, 70000, 300000, 1 << 20};
#define NSIZES (sizeof(sizes) / sizeof(*sizes))

static void put_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);

	for (unsigned i = 0; i < NSIZES; i++) {
		procs_wait_for(MOVE_TARGET, SIDE_KEY_FREE, i + 1);
		move_put(side, md, i, sizes[i], MOVE_BITS + i, 0, sizes[i], 0);
	}
	side_release(md);
}

static void put_target(struct side *side)
{
	for (unsigned i = 0; i < NSIZES; i++) {
		ptl_me_t me = side_me(side, move_room, MOVE_ROOM, MOVE_BITS + i, MOVE_ONCE);
		ptl_event_t event;

		side_append(side, &me, PTL_PRIORITY_LIST, move_room + i);
		procs_put(SIDE_KEY_FREE, i + 1);
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(side_is_from(side, &event, MOVE_INITIATOR));
		t_holds(event.start == move_room);
		t_holds(event.user_ptr == move_room + i);
		t_eq(event.match_bits, MOVE_BITS + i);
		t_eq(event.hdr_data, MOVE_HDR);
		t_eq(event.rlength, sizes[i]);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, 0);
		t_eq(event.uid, geteuid());
		t_eq(event.pt_index, SIDE_PT);
		t_eq(event.ptl_list, PTL_PRIORITY_LIST);
		side_check(move_room, sizes[i], MOVE_INITIATOR + 1, i);
		t_eq(move_room[sizes[i]], 0);
		event = side_event(side->eq, PTL_EVENT_AUTO_UNLINK);
		t_holds(event.user_ptr == move_room + i);
		memset(move_room, 0, sizeof(move_room));
	}
}

static void test_put(void **state)
{
	(void)state;
	move_run(put_initiator, put_target);
}

/* ---- entries in a row, for one initiator ---- */

static void row_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		move_put(side, md, i, sizes[i], MOVE_BITS, 0, sizes[i], 0);
		procs_wait_for(MOVE_TARGET, SIDE_KEY_FREE, i + 1);
	}
	side_release(md);
}

/* Each entry takes one message, in the order in which they were appended. */
static void row_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, MOVE_ROOM, MOVE_BITS, MOVE_ONCE);

	me.match_id = side_id(side, MOVE_INITIATOR);
	for (unsigned i = 0; i < NSIZES; i++)
		side_append(side, &me, PTL_PRIORITY_LIST, move_data + i);
	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == move_data + i);
		side_check(move_room, sizes[i], MOVE_INITIATOR + 1, i);
		t_holds(side_event(side->eq, PTL_EVENT_AUTO_UNLINK).user_ptr == move_data + i);
		procs_put(SIDE_KEY_FREE, i + 1);
	}
}

static void test_row(void **state)
{
	(void)state;
	move_run(row_initiator, row_target);
}

/* ---- offsets and truncation ---- */

static void offset_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	move_put(side, md, 0, 100, 1, 50, 100, 50);    /* at an offset */
	move_put(side, md, 0, 2000, 1, 900, 100, 900); /* cut */
	move_put(side, md, 0, 10, 1, 1000, 0, 1000);   /* at the end */
	move_put(side, md, 0, 10, 1, 5000, 0, 5000);   /* beyond it */
	/* Too long for the first entry, which must not be cut. */
	move_put(side, md, 0, 20, 2, 0, 20, 0);
	move_put(side, md, 0, 11, 2, 5, 11, 5);
	move_put(side, md, 0, 10, 2, 0, 10, 0);
	side_release(md);
}

static void offset_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, 1000, 1, MOVE_HERE);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL), exact, rest;
	ptl_event_t event;

	me = side_me(side, move_room + 2000, 15, 2, MOVE_HERE | PTL_ME_NO_TRUNCATE);
	exact = side_append(side, &me, PTL_PRIORITY_LIST, move_room);
	me = side_me(side, move_room + 3000, 100, 2, MOVE_HERE);
	rest = side_append(side, &me, PTL_PRIORITY_LIST, move_data);
	procs_barrier();
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == move_room + 50);
	t_eq(event.remote_offset, 50);
	side_check(move_room + 50, 100, 1, 0);
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == move_room + 900);
	t_eq(event.rlength, 2000);
	t_eq(event.mlength, 100);
	side_check(move_room + 900, 100, 1, 0);
	t_eq(move_room[1000], 0);
	for (int i = 0; i < 2; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_eq(event.rlength, 10);
		t_eq(event.mlength, 0);
	}
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == move_data);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == move_data);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == move_room);
	side_check(move_room + 3005, 11, 1, 0);
	side_check(move_room + 2000, 10, 1, 0);
	t_ptl_ok(PtlMEUnlink(handle));
	t_ptl_ok(PtlMEUnlink(exact));
	t_ptl_ok(PtlMEUnlink(rest));
}

static void test_offset(void **state)
{
	(void)state;
	move_run(offset_initiator, offset_target);
}

/* ---- offsets that the target manages ---- */

static void managed_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_data, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	move_put(side, md, 0, 400, 1, 77, 400, 0);
	move_put(side, md, 400, 400, 1, 77, 400, 400);
	move_put(side, md, 800, 101, 1, 0, 101, 800);
	move_put(side, md, 0, 50, 1, 0, 50, 0);
	side_release(md);
}

static void managed_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, 1000, 1, MOVE_HERE | PTL_ME_MANAGE_LOCAL);
	ptl_handle_me_t last;
	ptl_event_t event;

	me.min_free = 100;
	side_append(side, &me, PTL_PRIORITY_LIST, move_room);
	me.start = move_room + 1000;
	last = side_append(side, &me, PTL_PRIORITY_LIST, move_data);
	procs_barrier();
	for (unsigned i = 0; i < 3; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(event.start == move_room + i * 400);
		t_holds(event.user_ptr == move_room);
	}
	side_check(move_room, 901, 1, 0);
	/* 99 bytes were left. */
	t_holds(side_event(side->eq, PTL_EVENT_AUTO_UNLINK).user_ptr == move_room);
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == move_room + 1000);
	t_ptl_ok(PtlMEUnlink(last));
}

static void test_managed(void **state)
{
	(void)state;
	move_run(managed_initiator, managed_target);
}

/* ---- a block whose last message ends first ---- */

#define BLOCK_LONG  500000
#define BLOCK_SHORT 10

static void block_initiator(struct side *side)
{
	ptl_handle_ct_t acked = side_ct(side);
	ptl_handle_md_t md =
		side_md(side, move_data, MOVE_ROOM, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
	const ptl_process_t to = side_id(side, MOVE_TARGET);

	procs_barrier();
	t_ptl_ok(PtlPut(md, 0, BLOCK_LONG, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	t_ptl_ok(PtlPut(md, 0, BLOCK_SHORT, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(acked, 2);
	side_release(md);
}

/* The block is the user's again from PTL_EVENT_AUTO_UNLINK on, so all of its messages have ended
 * then. */
static void block_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, BLOCK_LONG + BLOCK_SHORT, 1,
			      MOVE_HERE | PTL_ME_MANAGE_LOCAL);

	me.min_free = 1;
	side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	side_event(side->eq, PTL_EVENT_PUT);
	side_event(side->eq, PTL_EVENT_PUT);
	side_check(move_room, BLOCK_LONG, MOVE_INITIATOR + 1, 0);
	side_check(move_room + BLOCK_LONG, BLOCK_SHORT, MOVE_INITIATOR + 1, 0);
	side_event(side->eq, PTL_EVENT_AUTO_UNLINK);
}

static void test_block(void **state)
{
	(void)state;
	move_run(block_initiator, block_target);
}

/* ---- get ---- */

static void get_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, move_room, MOVE_ROOM, 0, side->eq, PTL_CT_NONE);
	ptl_event_t event;

	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		memset(move_room, 0, sizeof(move_room));
		t_ptl_ok(PtlGet(md, 7, sizes[i], side_id(side, MOVE_TARGET), SIDE_PT, MOVE_BITS, i,
				&md));
		event = side_event(side->eq, PTL_EVENT_REPLY);
		t_holds(event.user_ptr == &md);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, i);
		side_check(move_room + 7, sizes[i], MOVE_TARGET + 1, i);
		t_eq(move_room[7 + sizes[i]], 0);
	}
	/* Cut at the end of the entry. */
	t_ptl_ok(PtlGet(md, 0, 1000, side_id(side, MOVE_TARGET), SIDE_PT, MOVE_BITS, MOVE_ROOM - 10,
			&md));
	event = side_event(side->eq, PTL_EVENT_REPLY);
	t_eq(event.mlength, 10);
	side_check(move_room, 10, MOVE_TARGET + 1, MOVE_ROOM - 10);
	side_release(md);
}

static void get_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_data, MOVE_ROOM, MOVE_BITS, PTL_ME_OP_GET);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, move_data);
	ptl_event_t event;

	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		event = side_event(side->eq, PTL_EVENT_GET);
		t_holds(event.start == move_data + i);
		t_holds(event.user_ptr == move_data);
		t_holds(side_is_from(side, &event, MOVE_INITIATOR));
		t_eq(event.match_bits, MOVE_BITS);
		t_eq(event.rlength, sizes[i]);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, i);
	}
	event = side_event(side->eq, PTL_EVENT_GET);
	t_eq(event.rlength, 1000);
	t_eq(event.mlength, 10);
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_get(void **state)
{
	(void)state;
	move_run(get_initiator, get_target);
}

/* ---- counting events ---- */

static void count_initiator(struct side *side)
{
	ptl_handle_ct_t sent = side_ct(side), acked = side_ct(side), bytes = side_ct(side),
			got = side_ct(side);
	ptl_handle_md_t by_sent =
		side_md(side, move_data, 1000, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
	ptl_handle_md_t by_acked =
		side_md(side, move_data, 1000, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
	ptl_handle_md_t by_bytes =
		side_md(side, move_data, 1000, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES,
			PTL_EQ_NONE, bytes);
	ptl_handle_md_t by_got =
		side_md(side, move_room, 1000, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, got);
	ptl_handle_md_t quiet =
		side_md(side, move_data, 1000, PTL_MD_EVENT_SUCCESS_DISABLE, side->eq, PTL_CT_NONE);
	const ptl_process_t to = side_id(side, MOVE_TARGET);

	procs_barrier();
	t_ptl_ok(PtlPut(by_sent, 0, 100, PTL_NO_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(sent, 1);
	t_ptl_ok(PtlPut(by_acked, 0, 100, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(acked, 1);
	t_ptl_ok(PtlPut(by_acked, 0, 100, PTL_OC_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(acked, 2);
	t_ptl_ok(PtlPut(by_bytes, 0, 300, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(bytes, 200); /* the entry's length */
	t_ptl_ok(PtlGet(by_got, 0, 50, to, SIDE_PT, 1, 0, NULL));
	side_count(got, 1);
	t_ptl_ok(PtlPut(quiet, 0, 100, PTL_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	procs_barrier();
	side_release(by_sent);
	side_release(by_acked);
	side_release(by_bytes);
	side_release(by_got);
	side_release(quiet);
}

static void count_target(struct side *side)
{
	ptl_handle_ct_t count = side_ct(side);
	ptl_me_t me = side_me(side, move_room, 200, 1,
			      MOVE_HERE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
	ptl_handle_me_t handle;

	me.ct_handle = count;
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	side_count(count, 6);
	procs_barrier();
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_count(void **state)
{
	(void)state;
	move_run(count_initiator, count_target);
}

/* ---- a process puts to itself ---- */

static void self(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, MOVE_ROOM, 9, MOVE_ONCE);
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	t_ptl_ok(PtlEQAlloc(side->ni, 8, &eq));
	md = side_md(side, move_data, MOVE_ROOM, 0, eq, PTL_CT_NONE);
	for (unsigned i = 0; i < NSIZES; i++) {
		side_append(side, &me, PTL_PRIORITY_LIST, NULL);
		t_ptl_ok(PtlPut(md, 0, sizes[i], PTL_ACK_REQ, side_id(side, side->me), SIDE_PT, 9,
				0, NULL, 0));
		t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, sizes[i]);
		side_event(side->eq, PTL_EVENT_AUTO_UNLINK);
		side_event(eq, PTL_EVENT_SEND);
		side_event(eq, PTL_EVENT_ACK);
		side_check(move_room, sizes[i], side->me + 1, 0);
	}
	side_release(md);
}

static void test_self(void **state)
{
	(void)state;
	move_run(self, self);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),    cmocka_unit_test(test_row),
		cmocka_unit_test(test_offset), cmocka_unit_test(test_managed),
		cmocka_unit_test(test_block),  cmocka_unit_test(test_get),
		cmocka_unit_test(test_count),  cmocka_unit_test(test_self),
	};

	side_arguments(argc, argv, &move_options, move_nodes, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
