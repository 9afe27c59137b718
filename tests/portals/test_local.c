/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_local.c - what needs no other process: the checks of arguments, limits, handles, event
 * queues, counting events and triggered operations.
 */
#include <string.h>
#include <unistd.h>

#include "portals.h"

static struct p_ni ni;

static int setup(void **state)
{
	(void)state;
	ni = p_open(PTL_NI_MATCHING | PTL_NI_PHYSICAL, 0, 16);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	p_close(&ni);
	return 0;
}

/* ---- before PtlInit() ---- */

static void test_no_init(void **state)
{
	ptl_handle_ni_t handle;
	ptl_ct_event_t value = {0};
	ptl_event_t event;

	(void)state;
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
			NULL, &handle),
	      PTL_NO_INIT);
	t_ptl(PtlEQGet(PTL_EQ_NONE, &event), PTL_NO_INIT);
	t_ptl(PtlCTInc(PTL_CT_NONE, value), PTL_NO_INIT);
	t_ptl(PtlMEUnlink(PTL_INVALID_HANDLE), PTL_NO_INIT);
	t_ptl(PtlAtomicSync(), PTL_NO_INIT);
}

/* ---- interfaces ---- */

static void test_interfaces(void **state)
{
	ptl_ni_limits_t limits = {.max_eqs = 1, .max_cts = 3}, actual;
	ptl_handle_ni_t second, other;
	ptl_handle_eq_t eqs[2];
	ptl_process_t id;

	(void)state;
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING, PTL_PID_ANY, NULL, NULL, &other),
	      PTL_ARG_INVALID);
	t_ptl(PtlNIInit(7, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other),
	      PTL_ARG_INVALID);
	/* A second call gives the same interface, with the limits of the first one. */
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
			   &limits, &actual, &second));
	t_holds(PtlHandleIsEqual(second, ni.ni));
	t_holds(actual.max_eqs > 1);
	t_ptl_ok(PtlNIFini(second));
	/* Another kind of interface has its own limits, and the same physical id. */
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
			   &limits, &actual, &other));
	t_eq(actual.max_eqs, 1);
	t_eq(actual.max_cts, 3);
	t_ptl_ok(PtlGetId(other, &id));
	t_eq(id.phys.pid, ni.id.phys.pid);
	t_ptl_ok(PtlEQAlloc(other, 1, &eqs[0]));
	t_ptl(PtlEQAlloc(other, 1, &eqs[1]), PTL_NO_SPACE);
	t_ptl_ok(PtlNIHandle(eqs[0], &second));
	t_holds(PtlHandleIsEqual(second, other));
	t_ptl_ok(PtlNIFini(other));
	t_ptl(PtlNIFini(other), PTL_ARG_INVALID);
	/* Objects that the user has left are gone with the interface. */
	t_ptl(PtlGetId(other, &id), PTL_ARG_INVALID);
}

static void test_status(void **state)
{
	ptl_sr_value_t value = -1;

	(void)state;
	t_ptl_ok(PtlNIStatus(ni.ni, PTL_SR_DROP_COUNT, &value));
	t_eq(value, 0);
	t_ptl(PtlNIStatus(ni.ni, PTL_SR_LAST, &value), PTL_ARG_INVALID);
	t_ptl(PtlNIStatus(ni.eq, PTL_SR_DROP_COUNT, &value), PTL_ARG_INVALID);
}

static void test_map(void **state)
{
	ptl_process_t map[2] = {{.phys = {99, 7}}, ni.id}, got[2], id;
	ptl_handle_ni_t logical;
	ptl_size_t size;

	(void)state;
	t_ptl(PtlSetMap(ni.ni, 2, map), PTL_ARG_INVALID);
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
			   NULL, &logical));
	t_ptl(PtlGetId(logical, &id), PTL_ARG_INVALID);
	t_ptl(PtlSetMap(logical, 0, map), PTL_ARG_INVALID);
	t_ptl_ok(PtlSetMap(logical, 2, map));
	t_ptl_ok(PtlGetId(logical, &id));
	t_eq(id.rank, 1);
	t_ptl_ok(PtlGetMap(logical, 1, got, &size));
	t_eq(size, 2);
	t_eq(got[0].phys.nid, 99);
	t_ptl_ok(PtlNIFini(logical));
}

/* ---- portal table entries ---- */

static void test_pt(void **state)
{
	ptl_pt_index_t index, other;

	(void)state;
	t_ptl(PtlPTAlloc(ni.ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &index),
	      PTL_PT_EQ_NEEDED);
	t_ptl(PtlPTAlloc(ni.ni, 0, PTL_EQ_NONE, 0, &index), PTL_PT_IN_USE);
	t_ptl(PtlPTAlloc(ni.ni, 0, PTL_EQ_NONE, 64, &index), PTL_ARG_INVALID);
	t_ptl(PtlPTAlloc(ni.ni, 1u << 20, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_ARG_INVALID);
	for (ptl_pt_index_t i = 1; i < 64; i++)
		t_ptl_ok(PtlPTAlloc(ni.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &other));
	t_ptl(PtlPTAlloc(ni.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_FULL);
	for (ptl_pt_index_t i = 1; i < 64; i++)
		t_ptl_ok(PtlPTFree(ni.ni, i));
	t_ptl(PtlPTFree(ni.ni, 5), PTL_ARG_INVALID);
	t_ptl(PtlPTEnable(ni.ni, 5), PTL_ARG_INVALID);
}

/* ---- events ---- */

/* Appends entries, each of which posts PTL_EVENT_LINK. */
static void post(unsigned n, ptl_handle_me_t handles[])
{
	ptl_me_t me = p_me(NULL, 0, PTL_ME_OP_PUT);

	for (unsigned i = 0; i < n; i++)
		handles[i] = p_append(&ni, &me, PTL_PRIORITY_LIST, (void *)(uintptr_t)i);
}

static void test_eq_dropped(void **state)
{
	ptl_handle_me_t handles[20];
	ptl_event_t event;

	(void)state;
	post(20, handles);
	/* 16 fit: the four oldest are lost. */
	t_ptl(PtlEQGet(ni.eq, &event), PTL_EQ_DROPPED);
	t_eq((uintptr_t)event.user_ptr, 4);
	for (uintptr_t i = 5; i < 20; i++)
		t_eq((uintptr_t)p_event(ni.eq, PTL_EVENT_LINK).user_ptr, i);
	p_no_event(ni.eq);
	for (unsigned i = 0; i < 20; i++)
		t_ptl_ok(PtlMEUnlink(handles[i]));
	t_ptl(PtlMEUnlink(handles[0]), PTL_ARG_INVALID);
}

static void test_eq_poll(void **state)
{
	ptl_handle_eq_t eqs[] = {ni.mine, ni.eq};
	ptl_handle_me_t handle;
	ptl_event_t event;
	unsigned which;

	(void)state;
	t_ptl(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_EQ_EMPTY);
	t_ptl(PtlEQPoll(eqs, 2, 20, &event, &which), PTL_EQ_EMPTY);
	t_ptl(PtlEQPoll(eqs, 0, 0, &event, &which), PTL_ARG_INVALID);
	t_ptl(PtlEQPoll(eqs, 2, 0, NULL, &which), PTL_ARG_INVALID);
	post(1, &handle);
	t_ptl_ok(PtlEQPoll(eqs, 2, PTL_TIME_FOREVER, &event, &which));
	t_eq(which, 1);
	t_ptl_ok(PtlMEUnlink(handle));
}

static void test_me_arguments(void **state)
{
	ptl_me_t me = p_me(NULL, 0, PTL_ME_OP_PUT);
	ptl_handle_me_t handle;

	(void)state;
	t_ptl(PtlMEAppend(ni.ni, 1, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
	t_ptl(PtlMEAppend(ni.ni, 0, &me, 2, NULL, &handle), PTL_ARG_INVALID);
	t_ptl(PtlMEAppend(ni.ni, 0, NULL, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
	me.options = 1u << 30;
	t_ptl(PtlMEAppend(ni.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
	me = p_me(NULL, 8, PTL_ME_OP_PUT);
	t_ptl(PtlMEAppend(ni.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
	me = p_me(NULL, 0, PTL_ME_OP_PUT);
	me.ct_handle = ni.eq;
	t_ptl(PtlMEAppend(ni.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_ARG_INVALID);
	/* An entry keeps its portal table entry. */
	me.ct_handle = PTL_CT_NONE;
	handle = p_append(&ni, &me, PTL_OVERFLOW_LIST, NULL);
	p_event(ni.eq, PTL_EVENT_LINK);
	t_ptl(PtlPTFree(ni.ni, 0), PTL_PT_IN_USE);
	t_ptl_ok(PtlMEUnlink(handle));
	/* A search that finds nothing says so. */
	t_ptl_ok(PtlMESearch(ni.ni, 0, &me, PTL_SEARCH_DELETE, NULL));
	t_eq(p_event(ni.eq, PTL_EVENT_SEARCH).ni_fail_type, PTL_NI_NO_MATCH);
	t_ptl(PtlMESearch(ni.ni, 0, &me, 9, NULL), PTL_ARG_INVALID);
}

static void test_operation_arguments(void **state)
{
	char data[16];
	ptl_handle_md_t md = p_md(&ni, data, sizeof(data));
	ptl_process_t nobody = {.phys = {PTL_NID_ANY, 1}};
	static char many[5000];
	ptl_md_t volatile_md = {.start = many, .length = 5000, .options = PTL_MD_VOLATILE};
	ptl_handle_md_t other;

	(void)state;
	t_ptl(PtlPut(md, 8, 9, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl(PtlPut(md, 17, 0, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl(PtlPut(md, 0, 1, 77, ni.id, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, nobody, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl(PtlPut(md, 0, 1, PTL_NO_ACK_REQ, ni.id, 64, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl(PtlPut(ni.eq, 0, 1, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	volatile_md.ct_handle = PTL_CT_NONE;
	volatile_md.eq_handle = ni.mine;
	t_ptl_ok(PtlMDBind(ni.ni, &volatile_md, &other));
	t_ptl(PtlPut(other, 0, 4097, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
	t_ptl_ok(PtlMDRelease(other));
	/* Operations that types don't have, and half items. */
	t_ptl(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0, PTL_BAND, PTL_DOUBLE),
	      PTL_ARG_INVALID);
	t_ptl(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0, PTL_MIN,
			PTL_FLOAT_COMPLEX),
	      PTL_ARG_INVALID);
	t_ptl(PtlAtomic(md, 0, 6, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT32_T),
	      PTL_ARG_INVALID);
	t_ptl(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, ni.id, 0, 0, 0, NULL, 0, PTL_SWAP, PTL_INT64_T),
	      PTL_ARG_INVALID);
	t_ptl(PtlSwap(md, 0, md, 8, 8, ni.id, 0, 0, 0, NULL, 0, NULL, PTL_CSWAP, PTL_INT64_T),
	      PTL_ARG_INVALID);
	t_ptl(PtlSwap(md, 0, md, 8, 8, ni.id, 0, 0, 0, NULL, 0, data, PTL_CSWAP, PTL_INT32_T),
	      PTL_ARG_INVALID);
	t_ptl_ok(PtlMDRelease(md));
	t_ptl(PtlMDRelease(md), PTL_ARG_INVALID);
}

/* ---- counting events ---- */

static void test_ct(void **state)
{
	ptl_handle_ct_t cts[2];
	ptl_size_t tests[2] = {5, 2};
	ptl_ct_event_t value = {3, 0};
	unsigned which;

	(void)state;
	t_ptl_ok(PtlCTAlloc(ni.ni, &cts[0]));
	t_ptl_ok(PtlCTAlloc(ni.ni, &cts[1]));
	t_ptl_ok(PtlCTSet(cts[0], value));
	t_ptl(PtlCTPoll(cts, tests, 2, 10, &value, &which), PTL_CT_NONE_REACHED);
	t_ptl(PtlCTInc(cts[1], (ptl_ct_event_t){1, 1}), PTL_ARG_INVALID);
	t_ptl_ok(PtlCTInc(cts[1], (ptl_ct_event_t){0, 2}));
	/* Failures count, too. */
	t_ptl_ok(PtlCTPoll(cts, tests, 2, 10, &value, &which));
	t_eq(which, 1);
	t_eq(value.failure, 2);
	t_ptl_ok(PtlCTWait(cts[0], 3, &value));
	t_eq(value.success, 3);
	t_ptl_ok(PtlCTFree(cts[0]));
	t_ptl_ok(PtlCTFree(cts[1]));
	t_ptl(PtlCTGet(cts[1], &value), PTL_ARG_INVALID);
	t_ptl(PtlCTWait(cts[1], 0, &value), PTL_ARG_INVALID);
}

static void test_triggered(void **state)
{
	ptl_handle_ct_t trigger, ct;
	ptl_ct_event_t value, one = {1, 0};

	(void)state;
	t_ptl_ok(PtlCTAlloc(ni.ni, &trigger));
	t_ptl_ok(PtlCTAlloc(ni.ni, &ct));
	/* Thresholds in any order; equal ones in the order of the calls. */
	t_ptl_ok(PtlTriggeredCTInc(ct, (ptl_ct_event_t){100, 0}, trigger, 2));
	t_ptl_ok(PtlTriggeredCTSet(ct, (ptl_ct_event_t){7, 0}, trigger, 1));
	t_ptl_ok(PtlTriggeredCTInc(ct, one, trigger, 1));
	t_ptl(PtlTriggeredCTInc(ct, one, PTL_CT_NONE, 1), PTL_ARG_INVALID);
	t_ptl_ok(PtlCTInc(trigger, one));
	t_ptl_ok(PtlCTGet(ct, &value));
	t_eq(value.success, 8);
	t_ptl_ok(PtlCTInc(trigger, one));
	t_ptl_ok(PtlCTGet(ct, &value));
	t_eq(value.success, 108);
	/* A threshold that has been reached triggers at once; what is cancelled never happens. */
	t_ptl_ok(PtlTriggeredCTInc(ct, one, trigger, 2));
	t_ptl_ok(PtlTriggeredCTInc(ct, one, trigger, 3));
	t_ptl_ok(PtlCTCancelTriggered(trigger));
	t_ptl_ok(PtlCTInc(trigger, one));
	t_ptl_ok(PtlCTGet(ct, &value));
	t_eq(value.success, 109);
	t_ptl_ok(PtlCTFree(trigger));
	t_ptl_ok(PtlCTFree(ct));
}

static void test_triggered_me(void **state)
{
	ptl_me_t me = p_me(NULL, 0, PTL_ME_OP_PUT);
	ptl_handle_ct_t trigger;
	ptl_handle_me_t handle;

	(void)state;
	t_ptl_ok(PtlCTAlloc(ni.ni, &trigger));
	t_ptl_ok(PtlTriggeredMEAppend(ni.ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle, trigger, 1));
	t_ptl_ok(PtlTriggeredMEUnlink(handle, trigger, 2));
	p_no_event(ni.eq);
	t_ptl_ok(PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
	p_event(ni.eq, PTL_EVENT_LINK);
	t_ptl_ok(PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
	t_ptl(PtlMEUnlink(handle), PTL_ARG_INVALID);
	t_ptl_ok(PtlCTFree(trigger));
}

/* The option that leaves out successful operations is not about the entry itself. */
static void test_link(void **state)
{
	static char room[8];
	ptl_me_t me = p_me(room, sizeof(room), PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE);
	ptl_handle_me_t entry = p_append(&ni, &me, PTL_PRIORITY_LIST, room);

	(void)state;
	t_true(p_event(ni.eq, PTL_EVENT_LINK).user_ptr == room, "the event is of another entry");
	t_ptl_ok(PtlMEUnlink(entry));
}

/* ---- progress ---- */

/* A process sends to itself, and is in no function of the library afterwards: the library's thread
 * does all. */
static void test_asleep(void **state)
{
	static char from[8] = "data";
	static volatile char to[8];
	ptl_me_t me = p_me((void *)(uintptr_t)to, sizeof(to), PTL_ME_OP_PUT);
	ptl_handle_me_t entry = p_append(&ni, &me, PTL_PRIORITY_LIST, NULL);
	ptl_handle_md_t md = p_md(&ni, from, sizeof(from));
	uint64_t start = t_now();

	(void)state;
	t_ptl_ok(PtlPut(md, 0, sizeof(from), PTL_NO_ACK_REQ, ni.id, 0, P_BITS, 0, NULL, 0));
	while (!to[0]) {
		t_true(t_ms_since(start) < P_WAIT, "the data don't come");
		usleep(100);
	}
	p_event(ni.eq, PTL_EVENT_LINK);
	p_event(ni.eq, PTL_EVENT_PUT);
	p_event(ni.mine, PTL_EVENT_SEND);
	t_ptl_ok(PtlMEUnlink(entry));
	t_ptl_ok(PtlMDRelease(md));
}

/* ---- the end ---- */

static void test_abort(void **state)
{
	ptl_event_t event;
	ptl_ct_event_t value;

	(void)state;
	t_ptl_ok(PtlInit());
	PtlAbort();
	t_ptl(PtlEQWait(PTL_EQ_NONE, &event), PTL_ABORTED);
	t_ptl(PtlCTWait(PTL_CT_NONE, 1, &value), PTL_ABORTED);
	PtlFini();
	/* The next life begins anew. */
	t_ptl_ok(PtlInit());
	t_ptl(PtlEQWait(PTL_EQ_NONE, &event), PTL_ARG_INVALID);
	PtlFini();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_init),
		CASE(test_interfaces),
		CASE(test_status),
		CASE(test_map),
		CASE(test_pt),
		CASE(test_eq_dropped),
		CASE(test_eq_poll),
		CASE(test_me_arguments),
		CASE(test_operation_arguments),
		CASE(test_ct),
		CASE(test_triggered),
		CASE(test_triggered_me),
		CASE(test_link),
		CASE(test_asleep),
		cmocka_unit_test(test_abort),
	};

	return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
