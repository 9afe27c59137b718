/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets between two processes, with their events, counting events and options. Process 0
 * starts them, process 1 has the list entries.
 *
 * test_move physical|logical NODES, under "softhca run --nodes NODES"
 */
#include <unistd.h>

#include "side.h"

#define BITS UINT64_C(0x123456789abcdef0)
#define HDR  UINT64_C(0xfedcba9876543210)
#define ROOM 400000
#define HERE (PTL_ME_OP_PUT | PTL_ME_OP_GET)
#define ONCE (HERE | PTL_ME_USE_ONCE)

enum { INITIATOR, TARGET };

static unsigned options;
static unsigned nodes[2];
static uint8_t data[ROOM], room[ROOM];

/* The parts of a test: what each process does. */
struct parts {
	void (*initiator)(struct side *side);
	void (*target)(struct side *side);
};

static void part(unsigned me, void *arg)
{
	const struct parts *parts = arg;
	struct side side;

	side_open(&side, me, 2, options);
	side_table(&side, 0);
	side_fill(data, sizeof(data), me + 1);
	memset(room, 0, sizeof(room));
	(me == TARGET ? parts->target : parts->initiator)(&side);
	procs_barrier();
	side_no_event(side.eq);
	side_close(&side);
}

static void run(void (*initiator)(struct side *side), void (*target)(struct side *side))
{
	struct parts parts = {initiator, target};

	procs_run(2, nodes, part, &parts);
}

/* Puts with an ACK event, and expects this part of it to have been taken. */
static void put(struct side *side, ptl_handle_md_t md, size_t offset, size_t length,
		ptl_match_bits_t bits, size_t remote_offset, size_t taken, size_t at)
{
	ptl_event_t event;
	int sent = 0, acked = 0;

	p_ok(PtlPut(md, offset, length, PTL_ACK_REQ, side_id(side, TARGET), SIDE_PT, bits,
		    remote_offset, &md, HDR));
	while (!sent || !acked) {
		unsigned which;

		p_ok(PtlEQPoll(&side->eq, 1, SIDE_TIMEOUT, &event, &which));
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

/* ---- put ---- */

static const size_t sizes[] = {0, 1, 8, 100, 1000, 5000, 70000, 300000};
#define NSIZES (sizeof(sizes) / sizeof(*sizes))

static void put_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, data, ROOM, 0, side->eq, PTL_CT_NONE);

	for (unsigned i = 0; i < NSIZES; i++) {
		procs_wait_for(TARGET, SIDE_KEY_FREE, i + 1);
		put(side, md, i, sizes[i], BITS + i, 0, sizes[i], 0);
	}
	side_release(md);
}

static void put_target(struct side *side)
{
	for (unsigned i = 0; i < NSIZES; i++) {
		ptl_me_t me = side_me(side, room, ROOM, BITS + i, ONCE);
		ptl_event_t event;

		side_append(side, &me, PTL_PRIORITY_LIST, room + i);
		procs_put(SIDE_KEY_FREE, i + 1);
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(side_is_from(side, &event, INITIATOR));
		t_holds(event.start == room);
		t_holds(event.user_ptr == room + i);
		t_eq(event.match_bits, BITS + i);
		t_eq(event.hdr_data, HDR);
		t_eq(event.rlength, sizes[i]);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, 0);
		t_eq(event.uid, geteuid());
		t_eq(event.pt_index, SIDE_PT);
		t_eq(event.ptl_list, PTL_PRIORITY_LIST);
		side_check(room, sizes[i], INITIATOR + 1, i);
		t_eq(room[sizes[i]], 0);
		event = side_event(side->eq, PTL_EVENT_AUTO_UNLINK);
		t_holds(event.user_ptr == room + i);
		memset(room, 0, sizeof(room));
	}
}

static void test_put(void **state)
{
	(void)state;
	run(put_initiator, put_target);
}

/* ---- offsets and truncation ---- */

static void offset_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, data, ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	put(side, md, 0, 100, 1, 50, 100, 50);    /* at an offset */
	put(side, md, 0, 2000, 1, 900, 100, 900); /* cut */
	put(side, md, 0, 10, 1, 1000, 0, 1000);   /* at the end */
	put(side, md, 0, 10, 1, 5000, 0, 5000);   /* beyond it */
	/* Too long for the first entry, which must not be cut. */
	put(side, md, 0, 20, 2, 0, 20, 0);
	put(side, md, 0, 11, 2, 5, 11, 5);
	put(side, md, 0, 10, 2, 0, 10, 0);
	side_release(md);
}

static void offset_target(struct side *side)
{
	ptl_me_t me = side_me(side, room, 1000, 1, HERE);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL), exact, rest;
	ptl_event_t event;

	me = side_me(side, room + 2000, 15, 2, HERE | PTL_ME_NO_TRUNCATE);
	exact = side_append(side, &me, PTL_PRIORITY_LIST, room);
	me = side_me(side, room + 3000, 100, 2, HERE);
	rest = side_append(side, &me, PTL_PRIORITY_LIST, data);
	procs_barrier();
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == room + 50);
	t_eq(event.remote_offset, 50);
	side_check(room + 50, 100, 1, 0);
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == room + 900);
	t_eq(event.rlength, 2000);
	t_eq(event.mlength, 100);
	side_check(room + 900, 100, 1, 0);
	t_eq(room[1000], 0);
	for (int i = 0; i < 2; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_eq(event.rlength, 10);
		t_eq(event.mlength, 0);
	}
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == data);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == data);
	t_holds(side_event(side->eq, PTL_EVENT_PUT).user_ptr == room);
	side_check(room + 3005, 11, 1, 0);
	side_check(room + 2000, 10, 1, 0);
	p_ok(PtlMEUnlink(handle));
	p_ok(PtlMEUnlink(exact));
	p_ok(PtlMEUnlink(rest));
}

static void test_offset(void **state)
{
	(void)state;
	run(offset_initiator, offset_target);
}

/* ---- offsets that the target manages ---- */

static void managed_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, data, ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	put(side, md, 0, 400, 1, 77, 400, 0);
	put(side, md, 400, 400, 1, 77, 400, 400);
	put(side, md, 800, 101, 1, 0, 101, 800);
	put(side, md, 0, 50, 1, 0, 50, 0);
	side_release(md);
}

static void managed_target(struct side *side)
{
	ptl_me_t me = side_me(side, room, 1000, 1, HERE | PTL_ME_MANAGE_LOCAL);
	ptl_handle_me_t last;
	ptl_event_t event;

	me.min_free = 100;
	side_append(side, &me, PTL_PRIORITY_LIST, room);
	me.start = room + 1000;
	last = side_append(side, &me, PTL_PRIORITY_LIST, data);
	procs_barrier();
	for (unsigned i = 0; i < 3; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(event.start == room + i * 400);
		t_holds(event.user_ptr == room);
	}
	side_check(room, 901, 1, 0);
	/* 99 bytes were left. */
	t_holds(side_event(side->eq, PTL_EVENT_AUTO_UNLINK).user_ptr == room);
	event = side_event(side->eq, PTL_EVENT_PUT);
	t_holds(event.start == room + 1000);
	p_ok(PtlMEUnlink(last));
}

static void test_managed(void **state)
{
	(void)state;
	run(managed_initiator, managed_target);
}

/* ---- get ---- */

static void get_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, room, ROOM, 0, side->eq, PTL_CT_NONE);
	ptl_event_t event;

	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		memset(room, 0, sizeof(room));
		p_ok(PtlGet(md, 7, sizes[i], side_id(side, TARGET), SIDE_PT, BITS, i, &md));
		event = side_event(side->eq, PTL_EVENT_REPLY);
		t_holds(event.user_ptr == &md);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, i);
		side_check(room + 7, sizes[i], TARGET + 1, i);
		t_eq(room[7 + sizes[i]], 0);
	}
	/* Cut at the end of the entry. */
	p_ok(PtlGet(md, 0, 1000, side_id(side, TARGET), SIDE_PT, BITS, ROOM - 10, &md));
	event = side_event(side->eq, PTL_EVENT_REPLY);
	t_eq(event.mlength, 10);
	side_check(room, 10, TARGET + 1, ROOM - 10);
	side_release(md);
}

static void get_target(struct side *side)
{
	ptl_me_t me = side_me(side, data, ROOM, BITS, PTL_ME_OP_GET);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, data);
	ptl_event_t event;

	procs_barrier();
	for (unsigned i = 0; i < NSIZES; i++) {
		event = side_event(side->eq, PTL_EVENT_GET);
		t_holds(event.start == data + i);
		t_holds(event.user_ptr == data);
		t_holds(side_is_from(side, &event, INITIATOR));
		t_eq(event.match_bits, BITS);
		t_eq(event.rlength, sizes[i]);
		t_eq(event.mlength, sizes[i]);
		t_eq(event.remote_offset, i);
	}
	event = side_event(side->eq, PTL_EVENT_GET);
	t_eq(event.rlength, 1000);
	t_eq(event.mlength, 10);
	p_ok(PtlMEUnlink(handle));
}

static void test_get(void **state)
{
	(void)state;
	run(get_initiator, get_target);
}

/* ---- counting events ---- */

static void count_initiator(struct side *side)
{
	ptl_handle_ct_t sent = side_ct(side), acked = side_ct(side), bytes = side_ct(side),
			got = side_ct(side);
	ptl_handle_md_t by_sent =
		side_md(side, data, 1000, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
	ptl_handle_md_t by_acked =
		side_md(side, data, 1000, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
	ptl_handle_md_t by_bytes = side_md(
		side, data, 1000, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE, bytes);
	ptl_handle_md_t by_got = side_md(side, room, 1000, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, got);
	ptl_handle_md_t quiet =
		side_md(side, data, 1000, PTL_MD_EVENT_SUCCESS_DISABLE, side->eq, PTL_CT_NONE);
	const ptl_process_t to = side_id(side, TARGET);

	procs_barrier();
	p_ok(PtlPut(by_sent, 0, 100, PTL_NO_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(sent, 1);
	p_ok(PtlPut(by_acked, 0, 100, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(acked, 1);
	p_ok(PtlPut(by_acked, 0, 100, PTL_OC_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(acked, 2);
	p_ok(PtlPut(by_bytes, 0, 300, PTL_CT_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
	side_count(bytes, 200); /* the entry's length */
	p_ok(PtlGet(by_got, 0, 50, to, SIDE_PT, 1, 0, NULL));
	side_count(got, 1);
	p_ok(PtlPut(quiet, 0, 100, PTL_ACK_REQ, to, SIDE_PT, 1, 0, NULL, 0));
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
	ptl_me_t me = side_me(side, room, 200, 1,
			      HERE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
	ptl_handle_me_t handle;

	me.ct_handle = count;
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	side_count(count, 6);
	procs_barrier();
	p_ok(PtlMEUnlink(handle));
}

static void test_count(void **state)
{
	(void)state;
	run(count_initiator, count_target);
}

/* ---- which entry takes a message ---- */

static void choice_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, data, ROOM, 0, side->eq, PTL_CT_NONE);

	procs_barrier();
	put(side, md, 0, 1, 0x0fa, 0, 1, 0); /* the second, whose bits are ignored */
	put(side, md, 1, 1, 0x1fa, 0, 1, 0); /* the third, which is for this process */
	put(side, md, 2, 1, 0x1fa, 0, 1, 0); /* the fourth */
	put(side, md, 3, 1, 0x300, 0, 1, 0); /* the last, which takes all */
	side_release(md);
}

static void choice_target(struct side *side)
{
	ptl_handle_me_t handle;
	ptl_event_t event;
	ptl_me_t me;

	me = side_me(side, room, 10, 0x0fa, ONCE);
	me.match_id = side_id(side, TARGET); /* not the one that puts */
	handle = side_append(side, &me, PTL_PRIORITY_LIST, room);
	me = side_me(side, room + 1, 10, 0x00a, ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
	me.ignore_bits = 0xf0;
	side_append(side, &me, PTL_PRIORITY_LIST, room + 1);
	me.match_bits = 0x10a;
	me.match_id = side_id(side, INITIATOR);
	me.start = room + 2;
	side_append(side, &me, PTL_PRIORITY_LIST, room + 2);
	me.match_id = side_any(side);
	me.start = room + 3;
	side_append(side, &me, PTL_PRIORITY_LIST, room + 3);
	me.match_bits = 0;
	me.ignore_bits = ~UINT64_C(0);
	me.start = room + 4;
	side_append(side, &me, PTL_PRIORITY_LIST, room + 4);
	procs_barrier();
	for (int i = 1; i <= 4; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(event.user_ptr == room + i);
		t_eq(room[i], side_byte(1, (size_t)i - 1));
	}
	p_ok(PtlMEUnlink(handle));
}

static void test_choice(void **state)
{
	(void)state;
	run(choice_initiator, choice_target);
}

/* ---- refusals ---- */

/* Puts, and expects the ACK event to say why it failed. */
static void refused(struct side *side, ptl_handle_md_t md, ptl_match_bits_t bits, ptl_ni_fail_t why)
{
	ptl_event_t event;

	p_ok(PtlPut(md, 0, 10, PTL_ACK_REQ, side_id(side, TARGET), SIDE_PT, bits, 0, NULL, 0));
	side_event(side->eq, PTL_EVENT_SEND);
	event = side_failure(side->eq, PTL_EVENT_ACK, why);
	t_eq(event.mlength, 0);
}

static void refusal_initiator(struct side *side)
{
	ptl_handle_ct_t ct = side_ct(side);
	ptl_handle_md_t md = side_md(side, data, ROOM, 0, side->eq, PTL_CT_NONE);
	ptl_handle_md_t counted = side_md(side, data, ROOM, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, ct);
	ptl_ct_event_t count;
	ptl_size_t one = 1;
	unsigned which;

	procs_barrier();
	refused(side, md, 1, PTL_NI_OP_VIOLATION);
	refused(side, md, 2, PTL_NI_PERM_VIOLATION);
	refused(side, md, 3, PTL_NI_DROPPED);
	p_ok(PtlGet(md, 0, 10, side_id(side, TARGET), SIDE_PT, 4, 0, NULL));
	side_failure(side->eq, PTL_EVENT_REPLY, PTL_NI_OP_VIOLATION);
	p_ok(PtlPut(counted, 0, 10, PTL_CT_ACK_REQ, side_id(side, TARGET), SIDE_PT, 3, 0, NULL, 0));
	p_ok(PtlCTPoll(&ct, &one, 1, SIDE_TIMEOUT, &count, &which));
	t_eq(count.success, 0);
	t_eq(count.failure, 1);
	procs_barrier();
	side_release(md);
	side_release(counted);
}

static void refusal_target(struct side *side)
{
	ptl_me_t me = side_me(side, data, 100, 1, PTL_ME_OP_GET);
	ptl_handle_me_t handles[3];
	ptl_sr_value_t value;

	handles[0] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	me = side_me(side, room, 100, 2, HERE);
	me.uid = geteuid() + 1;
	handles[1] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	me = side_me(side, room, 100, 4, PTL_ME_OP_PUT);
	handles[2] = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	procs_barrier();
	p_ok(PtlNIStatus(side->ni, PTL_SR_OPERATION_VIOLATIONS, &value));
	t_eq(value, 2);
	p_ok(PtlNIStatus(side->ni, PTL_SR_PERMISSION_VIOLATIONS, &value));
	t_eq(value, 1);
	p_ok(PtlNIStatus(side->ni, PTL_SR_DROP_COUNT, &value));
	t_eq(value, 2);
	for (int i = 0; i < 3; i++)
		p_ok(PtlMEUnlink(handles[i]));
	t_eq(room[0], 0);
}

static void test_refusal(void **state)
{
	(void)state;
	run(refusal_initiator, refusal_target);
}

/* ---- memory in pieces ---- */

static void pieces_initiator(struct side *side)
{
	ptl_iovec_t from[3] = {{data, 10}, {data + 100, 20}, {data + 1000, 5000}};
	ptl_handle_md_t md = side_md(side, from, 3, PTL_IOVEC, side->eq, PTL_CT_NONE);

	procs_barrier();
	put(side, md, 0, 5030, 1, 0, 5030, 0);
	procs_barrier();
	put(side, md, 5, 20, 1, 3, 20, 3);
	procs_barrier();
	side_release(md);
}

static void pieces_target(struct side *side)
{
	ptl_iovec_t to[2] = {{room, 7}, {room + 100, 6000}};
	ptl_me_t me = side_me(side, to, 2, 1, HERE | PTL_IOVEC);
	ptl_handle_me_t handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);

	procs_barrier();
	t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, 5030);
	side_check(room, 7, 1, 0);
	side_check(room + 100, 3, 1, 7);
	side_check(room + 103, 20, 1, 100);
	side_check(room + 123, 5000, 1, 1000);
	procs_barrier();
	t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, 20);
	side_check(room + 3, 4, 1, 5);
	side_check(room + 100, 1, 1, 9);
	side_check(room + 101, 15, 1, 100);
	procs_barrier();
	p_ok(PtlMEUnlink(handle));
}

static void test_pieces(void **state)
{
	(void)state;
	run(pieces_initiator, pieces_target);
}

/* ---- many messages keep their order, and a process puts to itself ---- */

#define MANY 2000
#define LONG 20000

static void many_initiator(struct side *side)
{
	ptl_handle_ct_t acked = side_ct(side);
	ptl_handle_md_t md = side_md(side, data, ROOM, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);

	procs_barrier();
	for (unsigned i = 0; i < MANY; i++)
		p_ok(PtlPut(md, 0, i % 7 ? i % 64 : LONG, PTL_CT_ACK_REQ, side_id(side, TARGET),
			    SIDE_PT, i % 3, 0, NULL, i));
	side_count(acked, MANY);
	side_release(md);
}

static void many_target(struct side *side)
{
	ptl_me_t me = side_me(side, room, ROOM, 0, HERE);
	bool came[MANY] = {false};
	unsigned next = 0;
	ptl_handle_me_t handle;
	ptl_handle_eq_t eq;

	p_ok(PtlPTFree(side->ni, SIDE_PT));
	p_ok(PtlEQAlloc(side->ni, 2 * MANY, &eq));
	p_ok(PtlPTAlloc(side->ni, 0, eq, SIDE_PT, &side->pt));
	me.ignore_bits = 3;
	me.options |= PTL_ME_EVENT_LINK_DISABLE;
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	/* The messages are matched in order. Long ones end later than what follows them. */
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
	p_ok(PtlMEUnlink(handle));
}

static void test_many(void **state)
{
	(void)state;
	run(many_initiator, many_target);
}

static void self(struct side *side)
{
	ptl_me_t me = side_me(side, room, ROOM, 9, ONCE);
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;

	p_ok(PtlEQAlloc(side->ni, 8, &eq));
	md = side_md(side, data, ROOM, 0, eq, PTL_CT_NONE);
	for (unsigned i = 0; i < NSIZES; i++) {
		side_append(side, &me, PTL_PRIORITY_LIST, NULL);
		p_ok(PtlPut(md, 0, sizes[i], PTL_ACK_REQ, side_id(side, side->me), SIDE_PT, 9, 0,
			    NULL, 0));
		t_eq(side_event(side->eq, PTL_EVENT_PUT).mlength, sizes[i]);
		side_event(side->eq, PTL_EVENT_AUTO_UNLINK);
		side_event(eq, PTL_EVENT_SEND);
		side_event(eq, PTL_EVENT_ACK);
		side_check(room, sizes[i], side->me + 1, 0);
	}
	side_release(md);
}

static void test_self(void **state)
{
	(void)state;
	run(self, self);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),     cmocka_unit_test(test_offset),
		cmocka_unit_test(test_managed), cmocka_unit_test(test_get),
		cmocka_unit_test(test_count),   cmocka_unit_test(test_choice),
		cmocka_unit_test(test_refusal), cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_many),    cmocka_unit_test(test_self),
	};

	side_arguments(argc, argv, &options, nodes, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
