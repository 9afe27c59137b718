/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that need no other process: kinds of interfaces, logical ids, event queues, triggered
 * changes of lists, progress, and the end of the library.
 *
 * test_local, under "softhca run"
 */
#include <unistd.h>

#include "side.h"

/* Appends an entry without memory. */
static ptl_handle_me_t append(struct side *side, void *user_ptr)
{
	const ptl_me_t me = side_me(side, NULL, 0, 0, PTL_ME_OP_PUT);
	ptl_handle_me_t handle;

	t_ptl_ok(PtlMEAppend(side->ni, side->pt, &me, PTL_PRIORITY_LIST, user_ptr, &handle));
	return handle;
}

/* ---- interfaces ---- */

/* A second call gives the same interface, with the limits of the first one. Another kind has its
 * own limits, and the same physical id. */
static void interfaces_child(unsigned me, void *arg)
{
	const ptl_ni_limits_t wish = {.max_eqs = 1, .max_cts = 3};
	ptl_ni_limits_t got;
	ptl_handle_ni_t again, other;
	ptl_handle_eq_t eqs[2];
	ptl_process_t id;
	struct side side;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, &wish, &got, &again));
	t_holds(PtlHandleIsEqual(again, side.ni));
	t_eq(got.max_eqs, side.limits.max_eqs);
	t_ptl_ok(PtlNIFini(again));
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_LISTS, PTL_PID_ANY, &wish, &got, &other));
	t_eq(got.max_eqs, 1);
	t_eq(got.max_cts, 3);
	t_ptl_ok(PtlGetId(other, &id));
	t_eq(id.phys.nid, side.ids[0].phys.nid);
	t_eq(id.phys.pid, side.ids[0].phys.pid);
	t_ptl_ok(PtlEQAlloc(other, 1, &eqs[0]));
	t_ptl(PtlEQAlloc(other, 1, &eqs[1]), PTL_NO_SPACE);
	/* An interface may end although objects are left. */
	t_ptl_ok(PtlNIFini(other));
	t_ptl(PtlGetId(other, &id), PTL_ARG_INVALID);
	side_close(&side);
}

static void test_interfaces(void **state)
{
	(void)state;
	side_alone(interfaces_child);
}

/* A rank is the place of the process in the map. */
static void map_child(unsigned me, void *arg)
{
	ptl_process_t map[2] = {{.phys = {99, 7}}}, got[2] = {{.rank = 0}}, id;
	ptl_handle_ni_t logical;
	struct side side;
	ptl_size_t size;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	map[1] = side.ids[0];
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_LOGICAL, PTL_PID_ANY, NULL, NULL, &logical));
	t_ptl(PtlGetId(logical, &id), PTL_ARG_INVALID);
	t_ptl_ok(PtlSetMap(logical, 2, map));
	t_ptl_ok(PtlGetId(logical, &id));
	t_eq(id.rank, 1);
	/* There is room for less than the map. */
	t_ptl_ok(PtlGetMap(logical, 1, got, &size));
	t_eq(size, 2);
	t_eq(got[0].phys.nid, 99);
	t_eq(got[1].rank, 0);
	t_ptl_ok(PtlNIFini(logical));
	side_close(&side);
}

static void test_map(void **state)
{
	(void)state;
	side_alone(map_child);
}

/* ---- event queues ---- */

/* A full queue loses its oldest events, and says so once. */
static void full_child(unsigned me, void *arg)
{
	ptl_handle_me_t handles[20];
	ptl_event_t event;
	struct side side;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	t_ptl_ok(PtlEQFree(side.eq));
	t_ptl_ok(PtlEQAlloc(side.ni, 16, &side.eq));
	side_table(&side, 0);
	for (uintptr_t i = 0; i < 20; i++)
		handles[i] = append(&side, (void *)i);
	t_ptl(PtlEQGet(side.eq, &event), PTL_EQ_DROPPED);
	t_eq((uintptr_t)event.user_ptr, 4);
	for (uintptr_t i = 5; i < 20; i++)
		t_eq((uintptr_t)side_event(side.eq, PTL_EVENT_LINK).user_ptr, i);
	side_no_event(side.eq);
	for (unsigned i = 0; i < 20; i++)
		t_ptl_ok(PtlMEUnlink(handles[i]));
	side_close(&side);
}

static void test_full(void **state)
{
	(void)state;
	side_alone(full_child);
}

/* A wait for several queues names the one that has an event. */
static void several_child(unsigned me, void *arg)
{
	ptl_handle_me_t handle;
	ptl_handle_eq_t eqs[2];
	ptl_event_t event;
	struct side side;
	unsigned which;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	side_table(&side, 0);
	t_ptl_ok(PtlEQAlloc(side.ni, 4, &eqs[0]));
	eqs[1] = side.eq;
	handle = append(&side, NULL);
	t_ptl_ok(PtlEQPoll(eqs, 2, PTL_TIME_FOREVER, &event, &which));
	t_eq(which, 1);
	t_ptl_ok(PtlMEUnlink(handle));
	side_close(&side);
}

static void test_several(void **state)
{
	(void)state;
	side_alone(several_child);
}

/* PTL_ME_EVENT_SUCCESS_DISABLE doesn't leave out the entry's own LINK event. */
static void link_child(unsigned me, void *arg)
{
	static char room[8];
	struct side side;
	ptl_me_t entry;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	side_table(&side, 0);
	entry = side_me(&side, room, sizeof(room), 0, PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE);
	t_ptl_ok(PtlMEUnlink(side_append(&side, &entry, PTL_PRIORITY_LIST, room)));
	side_close(&side);
}

static void test_link(void **state)
{
	(void)state;
	side_alone(link_child);
}

/* ---- triggered changes of lists ---- */

/* Opens a side with a counting event, which is returned. */
static ptl_handle_ct_t open_with_trigger(struct side *side, unsigned me)
{
	side_open(side, me, 1, SIDE_MATCHING);
	side_table(side, 0);
	return side_ct(side);
}

/* Has an entry without memory appended to a list when the counting event reaches 1. */
static ptl_handle_me_t append_triggered(struct side *side, ptl_list_t list, ptl_handle_ct_t trigger)
{
	ptl_me_t entry = side_me(side, NULL, 0, 0, PTL_ME_OP_PUT);
	ptl_handle_me_t handle;

	t_ptl_ok(PtlTriggeredMEAppend(side->ni, side->pt, &entry, list, NULL, &handle, trigger, 1));
	return handle;
}

static void triggered_child(unsigned me, void *arg)
{
	const ptl_ct_event_t one = {.success = 1};
	ptl_handle_ct_t trigger;
	ptl_handle_me_t handle;
	struct side side;

	(void)arg;
	trigger = open_with_trigger(&side, me);
	handle = append_triggered(&side, PTL_PRIORITY_LIST, trigger);
	t_ptl_ok(PtlTriggeredMEUnlink(handle, trigger, 2));
	side_no_event(side.eq);
	t_ptl_ok(PtlCTInc(trigger, one));
	side_event(side.eq, PTL_EVENT_LINK);
	t_ptl_ok(PtlCTInc(trigger, one));
	t_ptl(PtlMEUnlink(handle), PTL_ARG_INVALID);
	side_close(&side);
}

static void test_triggered(void **state)
{
	(void)state;
	side_alone(triggered_child);
}

/* Entries whose appends are cancelled never were in their lists, and are gone. */
static void cancelled_child(unsigned me, void *arg)
{
	ptl_handle_ct_t trigger;
	ptl_handle_me_t handle[2];
	struct side side;

	(void)arg;
	trigger = open_with_trigger(&side, me);
	handle[0] = append_triggered(&side, PTL_PRIORITY_LIST, trigger);
	handle[1] = append_triggered(&side, PTL_OVERFLOW_LIST, trigger);
	t_ptl_ok(PtlCTCancelTriggered(trigger));
	for (unsigned i = 0; i < 2; i++)
		t_ptl(PtlMEUnlink(handle[i]), PTL_ARG_INVALID);
	side_no_event(side.eq);
	t_ptl_ok(PtlCTFree(trigger));
	side_close(&side);
}

static void test_cancelled(void **state)
{
	(void)state;
	side_alone(cancelled_child);
}

/* ---- progress ---- */

/* A process sends to itself, and is in no function of the library afterwards: the library's thread
 * does all. */
static void asleep_child(unsigned me, void *arg)
{
	static char from[8] = "data";
	static volatile char to[8];
	ptl_handle_me_t handle;
	ptl_handle_md_t md;
	struct side side;
	uint64_t start;
	ptl_me_t entry;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	side_table(&side, 0);
	entry = side_me(&side, (void *)(uintptr_t)to, sizeof(to), 0, PTL_ME_OP_PUT);
	handle = side_append(&side, &entry, PTL_PRIORITY_LIST, NULL);
	md = side_md(&side, from, sizeof(from), 0, PTL_EQ_NONE, PTL_CT_NONE);
	t_ptl_ok(PtlPut(md, 0, sizeof(from), PTL_NO_ACK_REQ, side_id(&side, 0), side.pt, 0, 0, NULL,
			0));
	start = t_now();
	while (!to[0]) {
		t_true(t_ms_since(start) < SIDE_TIMEOUT, "the data don't come");
		usleep(100);
	}
	side_event(side.eq, PTL_EVENT_PUT);
	t_ptl_ok(PtlMEUnlink(handle));
	side_release(md);
	side_close(&side);
}

static void test_asleep(void **state)
{
	(void)state;
	side_alone(asleep_child);
}

/* ---- the end ---- */

static void abort_child(unsigned me, void *arg)
{
	ptl_event_t event;
	ptl_ct_event_t value;

	(void)me;
	(void)arg;
	t_ptl_ok(PtlInit());
	PtlAbort();
	t_ptl(PtlEQWait(PTL_EQ_NONE, &event), PTL_ABORTED);
	t_ptl(PtlCTWait(PTL_CT_NONE, 1, &value), PTL_ABORTED);
	PtlFini();
	/* The next PtlInit() begins anew. */
	t_ptl_ok(PtlInit());
	t_ptl(PtlEQWait(PTL_EQ_NONE, &event), PTL_ARG_INVALID);
	PtlFini();
}

static void test_abort(void **state)
{
	(void)state;
	side_alone(abort_child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interfaces), cmocka_unit_test(test_map),
		cmocka_unit_test(test_full),       cmocka_unit_test(test_several),
		cmocka_unit_test(test_link),       cmocka_unit_test(test_triggered),
		cmocka_unit_test(test_cancelled),  cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_abort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
