/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules between two processes: flow control by the size of the event queue, entries without match
 * bits, which messages the HCA matches, and the end of the other process. Process 0 is the
 * initiator, process 1 the target.
 *
 * test_rules physical|logical NODES, under "softhca run --nodes NODES"
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../caught.h"
#include "move.h"

#define BITS 0x1234
#define ROOM 5000

enum { K_READY = SIDE_KEY_FREE, K_GO };

/* Opens an interface, with the portal table entry and the data of this process. */
static void open_side(struct side *side, unsigned me, unsigned ni_options)
{
	side_open(side, me, 2, ni_options);
	side_table(side, 0);
	side_fill(move_data, sizeof(move_data), me + 1);
}

static ptl_handle_md_t bind_data(struct side *side)
{
	return side_md(side, move_data, sizeof(move_data), 0, side->eq, PTL_CT_NONE);
}

static void put(struct side *side, ptl_handle_md_t md, size_t length, ptl_match_bits_t bits)
{
	t_ptl_ok(PtlPut(md, 0, length, PTL_ACK_REQ, side_id(side, MOVE_TARGET), SIDE_PT, bits, 0,
			NULL, 0));
}

/* Puts. Returns the kind of failure in the ACK event. */
static ptl_ni_fail_t end_of_put(struct side *side, ptl_handle_md_t md)
{
	put(side, md, 8, BITS);
	side_any_event(side->eq, PTL_EVENT_SEND);
	return side_any_event(side->eq, PTL_EVENT_ACK).ni_fail_type;
}

/* ---- flow control ---- */

#define FULL 8  /* events of the target's queue */
#define PUTS 12 /* puts without a pause: more than the queue takes */

/* Returns how many of the puts were refused. */
static int count_refused(struct side *side)
{
	int refused = 0;

	for (int i = 0; i < 2 * PUTS; i++) {
		ptl_event_t event;
		unsigned which;

		t_ptl_ok(PtlEQPoll(&side->eq, 1, SIDE_TIMEOUT, &event, &which));
		refused += event.ni_fail_type == PTL_NI_PT_DISABLED;
	}
	return refused;
}

static void flow_initiator(struct side *side)
{
	ptl_handle_md_t md = bind_data(side);

	procs_barrier();
	for (int i = 0; i < PUTS; i++)
		put(side, md, 8, BITS);
	t_eq(count_refused(side), PUTS - FULL);
	procs_barrier();
	procs_barrier();
	t_eq(end_of_put(side, md), PTL_NI_OK);
	procs_barrier();
	t_eq(end_of_put(side, md), PTL_NI_PT_DISABLED);
	procs_barrier();
	side_release(md);
}

/* The portal table entry is disabled when the queue is full. */
static void flow_target(struct side *side)
{
	ptl_me_t me =
		side_me(side, move_room, ROOM, BITS, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
	ptl_handle_me_t handle;
	ptl_handle_eq_t eq;

	t_ptl_ok(PtlPTFree(side->ni, SIDE_PT));
	t_ptl_ok(PtlEQAlloc(side->ni, FULL, &eq));
	t_ptl_ok(PtlPTAlloc(side->ni, PTL_PT_FLOWCTRL, eq, SIDE_PT, &side->pt));
	handle = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	procs_barrier();
	for (int i = 0; i < FULL; i++)
		side_event(eq, PTL_EVENT_PUT);
	side_failure(eq, PTL_EVENT_PT_DISABLED, PTL_NI_PT_DISABLED);
	side_no_event(eq);
	t_ptl_ok(PtlPTEnable(side->ni, SIDE_PT));
	procs_barrier();
	side_event(eq, PTL_EVENT_PUT);
	t_ptl_ok(PtlPTDisable(side->ni, SIDE_PT));
	procs_barrier();
	procs_barrier();
	side_no_event(eq);
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_flow(void **state)
{
	(void)state;
	move_run(flow_initiator, flow_target);
}

/* ---- interfaces without matching, by rank ---- */

/* Bytes at the target are counted; the first put is cut at the end of the entry. */
static void lists_initiator(struct side *side)
{
	const ptl_ct_event_t one = {.success = 1};
	ptl_process_t to = side_id(side, MOVE_TARGET), nobody = {.rank = 2};
	ptl_handle_ct_t ct = side_ct(side);
	ptl_handle_md_t md = bind_data(side);

	procs_barrier();
	for (ptl_size_t threshold = 1; threshold <= 2; threshold++)
		t_ptl_ok(PtlTriggeredPut(md, 0, 40, PTL_ACK_REQ, to, SIDE_PT, 99, 32, NULL, 0, ct,
					 threshold));
	side_no_event(side->eq);
	t_ptl_ok(PtlCTInc(ct, one));
	side_event(side->eq, PTL_EVENT_SEND);
	t_eq(side_event(side->eq, PTL_EVENT_ACK).mlength, 32);
	t_ptl_ok(PtlCTCancelTriggered(ct));
	t_eq(end_of_put(side, md), PTL_NI_OK);
	t_ptl(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, nobody, SIDE_PT, 0, 0, NULL, 0), PTL_ARG_INVALID);
	procs_barrier();
	side_no_event(side->eq);
	side_release(md);
}

static void lists_target(struct side *side)
{
	const ptl_le_t le = {
		.start = move_room,
		.length = 64,
		.ct_handle = side_ct(side),
		.uid = PTL_UID_ANY,
		.options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_CT_BYTES,
	};
	ptl_handle_le_t handle;
	ptl_event_t event;

	t_ptl_ok(PtlLEAppend(side->ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle));
	side_event(side->eq, PTL_EVENT_LINK);
	procs_barrier();
	side_count(le.ct_handle, 40);
	for (int i = 0; i < 2; i++) {
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_holds(side_is_from(side, &event, MOVE_INITIATOR));
		t_eq(event.rlength, i ? 8 : 40);
	}
	side_check(move_room, 8, MOVE_INITIATOR + 1, 0);
	side_check(move_room + 32, 32, MOVE_INITIATOR + 1, 0);
	procs_barrier();
	t_ptl_ok(PtlLEUnlink(handle));
}

static void lists(unsigned me, void *arg)
{
	struct side side;

	(void)arg;
	open_side(&side, me, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL);
	if (me == MOVE_TARGET)
		lists_target(&side);
	else
		lists_initiator(&side);
	side_close(&side);
}

static void test_lists(void **state)
{
	(void)state;
	procs_run(2, move_nodes, lists, NULL);
}

/* ---- a triggered unlink amid a message ---- */

#define LONG (4 << 20)

static uint8_t far_away[LONG];

/* The short message, which ends first, unlinks the entry of the long one. */
static void unlink_target(struct side *side)
{
	ptl_me_t first = side_me(side, far_away, LONG, BITS, PTL_ME_OP_PUT),
		 second = side_me(side, move_room, ROOM, BITS + 1, PTL_ME_OP_PUT);
	ptl_handle_me_t handle;
	bool seen[2] = {false};

	second.options |= PTL_ME_EVENT_CT_COMM;
	second.ct_handle = side_ct(side);
	handle = side_append(side, &first, PTL_PRIORITY_LIST, NULL);
	side_append(side, &second, PTL_PRIORITY_LIST, NULL);
	t_ptl_ok(PtlTriggeredMEUnlink(handle, second.ct_handle, 1));
	procs_barrier();
	for (int i = 0; i < 2; i++)
		seen[side_event(side->eq, PTL_EVENT_PUT).match_bits - BITS] = true;
	t_holds(seen[0] && seen[1]);
	side_check(far_away, LONG, MOVE_INITIATOR + 1, 0);
}

static void unlink_initiator(struct side *side)
{
	ptl_handle_md_t md = side_md(side, far_away, LONG, 0, PTL_EQ_NONE, PTL_CT_NONE);

	side_fill(far_away, LONG, MOVE_INITIATOR + 1);
	procs_barrier();
	for (unsigned i = 0; i < 2; i++)
		t_ptl_ok(PtlPut(md, 0, i ? 8 : LONG, PTL_NO_ACK_REQ, side_id(side, MOVE_TARGET),
				SIDE_PT, BITS + i, 0, NULL, 0));
	side_release(md);
}

static void test_unlink(void **state)
{
	(void)state;
	move_run(unlink_initiator, unlink_target);
}

/* ---- ends ---- */

/* The target dies: operations that wait for it end with an event. */
static void death(unsigned me, void *arg)
{
	struct side side;
	ptl_handle_md_t md;
	ptl_ni_fail_t how;
	ptl_me_t entry;

	(void)arg;
	open_side(&side, me, move_options);
	if (me == MOVE_TARGET) {
		entry = side_me(&side, move_room, 8, BITS, PTL_ME_OP_PUT);
		side_append(&side, &entry, PTL_PRIORITY_LIST, NULL);
		procs_put(K_READY, 1);
		procs_get(MOVE_INITIATOR, K_GO);
		raise(SIGKILL);
	}
	md = bind_data(&side);
	procs_get(MOVE_TARGET, K_READY);
	t_eq(end_of_put(&side, md), PTL_NI_OK);
	procs_put(K_GO, 1);
	while ((how = end_of_put(&side, md)) == PTL_NI_OK)
		;
	t_eq(how, PTL_NI_UNDELIVERABLE);
	t_ptl_ok(PtlGet(md, 0, 8, side_id(&side, MOVE_TARGET), SIDE_PT, BITS, 0, NULL));
	side_failure(side.eq, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
	side_release(md);
	side_leave(&side);
}

static void test_death(void **state)
{
	(void)state;
	procs_start(2, move_nodes, death, NULL);
	procs_may_die(MOVE_TARGET);
	procs_finish();
}

/* The target closes its interface: operations that it doesn't answer end, too. */
static void closed(unsigned me, void *arg)
{
	struct side side;
	ptl_handle_md_t md;

	(void)arg;
	open_side(&side, me, move_options);
	if (me == MOVE_TARGET) {
		side_leave(&side);
		procs_barrier();
		return;
	}
	md = bind_data(&side);
	procs_barrier();
	t_eq(end_of_put(&side, md), PTL_NI_UNDELIVERABLE);
	side_release(md);
	side_leave(&side);
}

static void test_closed(void **state)
{
	(void)state;
	/* A process that nobody can find is given up after this. */
	setenv("PORTALS_PARAMS", "connect_timeout=2", 1);
	procs_run(2, move_nodes, closed, NULL);
	unsetenv("PORTALS_PARAMS");
}

/* ---- which messages the HCA matches ---- */

#define ROUNDS 200

/* Takes puts by entries of one initiator that share one mask, each appended before its put. */
static void queue_target(struct side *side)
{
	ptl_me_t me = side_me(side, move_room, ROOM, BITS,
			      PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
				      PTL_ME_EVENT_UNLINK_DISABLE);
	ptl_handle_me_t last;
	ptl_event_t event;

	me.match_id = side_id(side, MOVE_INITIATOR);
	me.ignore_bits = UINT64_C(0xf) << 60;
	side_append(side, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		last = side_append(side, &me, PTL_PRIORITY_LIST, NULL);
		event = side_event(side->eq, PTL_EVENT_PUT);
		t_eq(event.match_bits, BITS | i << 60);
		side_check(move_room, ROOM, MOVE_INITIATOR + 1, 0);
		procs_put(K_GO, i + 1);
	}
	t_ptl_ok(PtlMEUnlink(last));
}

static void queue_initiator(struct side *side)
{
	ptl_handle_md_t md = bind_data(side);

	procs_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		put(side, md, ROOM, BITS | i << 60);
		side_event(side->eq, PTL_EVENT_SEND);
		side_event(side->eq, PTL_EVENT_ACK);
		procs_wait_for(MOVE_TARGET, K_GO, i + 1);
	}
	side_release(md);
}

/* The messages of the report at the end of a process: those that the HCA has matched, and all. */
struct report {
	unsigned long direct, all;
};

/* Ends an interface. Returns the numbers of the report in the log. */
static struct report leave_reported(struct side *side)
{
	static const char sentence[] = "The HCA has matched ";
	struct report report = {0, 0};
	struct t_caught caught;
	const char *found;

	t_catch(&caught);
	side_leave(side);
	found = strstr(t_caught_end(&caught), sentence);
	t_true(found && sscanf(found + strlen(sentence), "%lu of %lu", &report.direct,
			       &report.all) == 2,
	       "there is no report, but: %s", caught.text);
	return report;
}

static void queue(unsigned me, void *arg)
{
	struct report report;
	struct side side;

	(void)arg;
	setenv("PORTALS_LOG", "info", 1);
	/* On one node, shared memory would take the messages; short ones have no queue. */
	setenv("PORTALS_PARAMS", "intranode=hca promote_after=0", 1);
	open_side(&side, me, move_options);
	if (me == MOVE_TARGET)
		queue_target(&side);
	else
		queue_initiator(&side);
	procs_barrier();
	report = leave_reported(&side);
	/* Acknowledgements are no messages to an entry. */
	t_eq(report.all, me == MOVE_TARGET ? ROUNDS : 0);
	t_true(me != MOVE_TARGET || report.direct > ROUNDS / 2, "the HCA has matched %lu of %lu",
	       report.direct, report.all);
}

static void test_queue(void **state)
{
	(void)state;
	procs_run(2, move_nodes, queue, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow),   cmocka_unit_test(test_lists),
		cmocka_unit_test(test_queue),  cmocka_unit_test(test_death),
		cmocka_unit_test(test_closed), cmocka_unit_test(test_unlink),
	};

	side_arguments(argc, argv, &move_options, move_nodes, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
