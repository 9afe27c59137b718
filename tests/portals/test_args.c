/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The return codes of wrong arguments, in a process that is alone: interfaces, portal table
 * entries, and limits.
 *
 * test_args, under "softhca run"
 */
#include <unistd.h>

#include "side.h"

#define INVALID PTL_ARG_INVALID

static char memory[4096];

static void alone(procs_fn fn)
{
	procs_run(1, NULL, fn, NULL);
}

/* ---- before PtlInit(), and after PtlFini() ---- */

static void nothing_works(void)
{
	const ptl_process_t nobody = {.rank = 0};
	const ptl_ct_event_t one = {.success = 1};
	ptl_handle_any_t handle = 0;
	ptl_pt_index_t index;
	ptl_process_t id;
	ptl_event_t event;
	ptl_ct_event_t count;
	ptl_me_t me = {0};
	ptl_le_t le = {0};
	ptl_md_t md = {0};

	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, &handle),
	     PTL_NO_INIT);
	p_rc(PtlNIFini(handle), PTL_NO_INIT);
	p_rc(PtlNIHandle(handle, &handle), PTL_NO_INIT);
	p_rc(PtlGetPhysId(handle, &id), PTL_NO_INIT);
	p_rc(PtlPTAlloc(handle, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_NO_INIT);
	p_rc(PtlPTEnable(handle, 0), PTL_NO_INIT);
	p_rc(PtlMDBind(handle, &md, &handle), PTL_NO_INIT);
	p_rc(PtlMEAppend(handle, 0, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_INIT);
	p_rc(PtlLEAppend(handle, 0, &le, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_INIT);
	p_rc(PtlMEUnlink(handle), PTL_NO_INIT);
	p_rc(PtlEQAlloc(handle, 1, &handle), PTL_NO_INIT);
	p_rc(PtlEQGet(handle, &event), PTL_NO_INIT);
	p_rc(PtlEQWait(handle, &event), PTL_NO_INIT);
	p_rc(PtlCTAlloc(handle, &handle), PTL_NO_INIT);
	p_rc(PtlCTGet(handle, &count), PTL_NO_INIT);
	p_rc(PtlCTInc(handle, one), PTL_NO_INIT);
	p_rc(PtlPut(handle, 0, 0, PTL_NO_ACK_REQ, nobody, 0, 0, 0, NULL, 0), PTL_NO_INIT);
	p_rc(PtlGet(handle, 0, 0, nobody, 0, 0, 0, NULL), PTL_NO_INIT);
	p_rc(PtlTriggeredCTInc(handle, one, handle, 1), PTL_NO_INIT);
	p_rc(PtlAtomicSync(), PTL_NO_INIT);
}

static void uninitialised_child(unsigned me, void *arg)
{
	(void)arg;
	(void)me;
	nothing_works();
	p_ok(PtlInit());
	p_ok(PtlInit());
	PtlFini();
	p_ok(PtlAtomicSync());
	PtlFini();
	nothing_works();
}

static void uninitialised(void **state)
{
	(void)state;
	alone(uninitialised_child);
}

/* ---- interfaces ---- */

static void expect_refused(void)
{
	ptl_handle_ni_t ni;

	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, 0, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | PTL_NI_NO_MATCHING, PTL_PID_ANY, NULL,
		       NULL, &ni),
	     INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
		       &ni),
	     INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | 1u << 20, PTL_PID_ANY, NULL, NULL, &ni),
	     INVALID);
	p_rc(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, NULL), INVALID);
}

/* Opens the interface that the others are compared with. */
static ptl_handle_ni_t open_physical(void)
{
	ptl_handle_ni_t ni, again;
	ptl_ni_limits_t wish = {0}, got;

	/* Limits become what there is, and never less than nothing. */
	wish.max_pt_index = INT32_MAX;
	wish.max_msg_size = PTL_SIZE_MAX;
	wish.max_atomic_size = wish.max_fetch_atomic_size = 8;
	p_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, &wish, &got, &ni));
	t_true(got.max_pt_index >= 63, "max_pt_index is %d", got.max_pt_index);
	t_true(got.max_pt_index < INT32_MAX, "max_pt_index is not bounded");
	t_true(got.max_atomic_size >= 8 && got.max_fetch_atomic_size >= 8, "no atomic operations");
	/* Once more gives the same interface, which ends with its second PtlNIFini(). */
	p_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, &again));
	t_holds(PtlHandleIsEqual(ni, again));
	p_ok(PtlNIFini(again));
	return ni;
}

static void expect_names(ptl_handle_ni_t ni, ptl_handle_ni_t other)
{
	ptl_process_t id, of_other;
	ptl_sr_value_t value;
	ptl_uid_t uid;

	p_ok(PtlGetPhysId(ni, &id));
	p_ok(PtlGetPhysId(other, &of_other));
	t_eq(id.phys.nid, of_other.phys.nid);
	t_eq(id.phys.pid, of_other.phys.pid);
	p_rc(PtlGetPhysId(PTL_INVALID_HANDLE, &id), INVALID);
	p_rc(PtlGetPhysId(ni, NULL), INVALID);
	p_rc(PtlGetId(PTL_INVALID_HANDLE, &id), INVALID);
	p_rc(PtlGetId(ni, NULL), INVALID);
	p_ok(PtlGetUid(ni, &uid));
	t_eq(uid, geteuid());
	p_rc(PtlGetUid(ni, NULL), INVALID);
	p_rc(PtlGetUid(PTL_INVALID_HANDLE, &uid), INVALID);

	p_ok(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value));
	t_eq(value, 0);
	p_rc(PtlNIStatus(ni, (ptl_sr_index_t)PTL_SR_LAST, &value), INVALID);
	p_rc(PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL), INVALID);
	p_rc(PtlNIStatus(PTL_INVALID_HANDLE, PTL_SR_DROP_COUNT, &value), INVALID);
}

/* Checks that maps belong to logical interfaces, and are set once. */
static void expect_maps(ptl_handle_ni_t ni, ptl_handle_ni_t logical)
{
	ptl_process_t id, map[2];
	ptl_size_t size;

	p_ok(PtlGetPhysId(ni, &id));
	map[0] = id;
	p_rc(PtlSetMap(ni, 1, map), INVALID);
	p_rc(PtlSetMap(logical, 0, map), INVALID);
	p_rc(PtlSetMap(logical, 1, NULL), INVALID);
	p_rc(PtlSetMap(PTL_INVALID_HANDLE, 1, map), INVALID);
	p_ok(PtlSetMap(logical, 1, map));
	p_rc(PtlSetMap(logical, 1, map), PTL_IGNORED);
	p_ok(PtlGetId(logical, &id));
	t_eq(id.rank, 0);
	memset(map, 0, sizeof(map));
	p_ok(PtlGetMap(logical, 2, map, &size));
	t_eq(size, 1);
	p_ok(PtlGetPhysId(ni, &id));
	t_eq(map[0].phys.pid, id.phys.pid);
	p_rc(PtlGetMap(ni, 2, map, &size), INVALID);
	p_rc(PtlGetMap(PTL_INVALID_HANDLE, 2, map, &size), INVALID);
}

static void interfaces_child(unsigned me, void *arg)
{
	ptl_handle_ni_t ni, logical;

	(void)arg;
	(void)me;
	p_ok(PtlInit());
	expect_refused();
	ni = open_physical();
	p_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_LOGICAL, PTL_PID_ANY, NULL, NULL, &logical));
	t_holds(!PtlHandleIsEqual(ni, logical));
	expect_names(ni, logical);
	expect_maps(ni, logical);

	p_rc(PtlStartBundle(PTL_INVALID_HANDLE), INVALID);
	p_rc(PtlEndBundle(PTL_INVALID_HANDLE), INVALID);
	p_ok(PtlStartBundle(ni));
	p_ok(PtlEndBundle(ni));

	p_ok(PtlNIFini(logical));
	p_rc(PtlNIFini(logical), INVALID);
	p_ok(PtlNIFini(ni));
	p_rc(PtlNIFini(ni), INVALID);
	p_rc(PtlNIFini(PTL_INVALID_HANDLE), INVALID);
	PtlFini();
}

static void interfaces(void **state)
{
	(void)state;
	alone(interfaces_child);
}

/* ---- portal table entries ---- */

static void table_child(unsigned me, void *arg)
{
	struct side side;
	ptl_pt_index_t index;
	ptl_handle_me_t handle;
	ptl_me_t entry;
	int n = 0, rc;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	p_rc(PtlPTAlloc(PTL_INVALID_HANDLE, 0, side.eq, 1, &index), INVALID);
	p_rc(PtlPTAlloc(side.eq, 0, side.eq, 1, &index), INVALID);
	p_rc(PtlPTAlloc(side.ni, 1u << 20, side.eq, 1, &index), INVALID);
	p_rc(PtlPTAlloc(side.ni, 0, side.ni, 1, &index), INVALID);
	p_rc(PtlPTAlloc(side.ni, 0, side.eq, (ptl_pt_index_t)side.limits.max_pt_index + 1, &index),
	     INVALID);
	p_rc(PtlPTAlloc(side.ni, 0, side.eq, 1, NULL), INVALID);
	p_rc(PtlPTAlloc(side.ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, 1, &index), PTL_PT_EQ_NEEDED);

	p_ok(PtlPTAlloc(side.ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, side.eq, 1, &index));
	t_eq(index, 1);
	p_rc(PtlPTAlloc(side.ni, 0, side.eq, 1, &index), PTL_PT_IN_USE);
	side.pt = 1;
	entry = side_me(&side, memory, 10, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
	handle = side_append(&side, &entry, PTL_PRIORITY_LIST, NULL);
	p_rc(PtlPTFree(side.ni, 1), PTL_PT_IN_USE);
	p_ok(PtlMEUnlink(handle));
	p_rc(PtlMEUnlink(handle), INVALID);

	p_rc(PtlPTDisable(side.ni, 2), INVALID);
	p_rc(PtlPTEnable(side.ni, 2), INVALID);
	p_rc(PtlPTFree(side.ni, 2), INVALID);
	p_rc(PtlPTFree(side.ni, PTL_PT_ANY), INVALID);
	p_rc(PtlPTDisable(PTL_INVALID_HANDLE, 1), INVALID);
	p_ok(PtlPTDisable(side.ni, 1));
	p_ok(PtlPTEnable(side.ni, 1));
	p_ok(PtlPTFree(side.ni, 1));
	p_rc(PtlPTFree(side.ni, 1), INVALID);

	while ((rc = PtlPTAlloc(side.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index)) == PTL_OK)
		n++;
	t_eq(rc, PTL_PT_FULL);
	t_eq(n, side.limits.max_pt_index + 1);
	side_close(&side);
}

static void table(void **state)
{
	(void)state;
	alone(table_child);
}

/* ---- limits ---- */

/* Each limit is kept, and what was freed can be had again. */
static void limits_child(unsigned me, void *arg)
{
	const ptl_ni_limits_t wish = {.max_entries = 8,
				      .max_unexpected_headers = 8,
				      .max_mds = 8,
				      .max_cts = 8,
				      .max_eqs = 8,
				      .max_pt_index = 10,
				      .max_list_size = 8,
				      .max_triggered_ops = 8};
	const ptl_md_t md = {memory, 64, 0, PTL_EQ_NONE, PTL_CT_NONE};
	struct side side;
	ptl_handle_any_t handles[10000];
	int n, rc;

	(void)arg;
	side_open_limits(&side, me, 1, SIDE_MATCHING, &wish);
	t_true(side.limits.max_cts >= 8 && side.limits.max_cts < 10000, "max_cts is %d",
	       side.limits.max_cts);
	for (int again = 0; again < 2; again++) {
		for (n = 0; (rc = PtlCTAlloc(side.ni, &handles[n])) == PTL_OK; n++)
			t_true(n < side.limits.max_cts, "more than max_cts");
		t_eq(rc, PTL_NO_SPACE);
		t_eq(n, side.limits.max_cts);
		while (n > 0)
			p_ok(PtlCTFree(handles[--n]));
		for (n = 0; (rc = PtlMDBind(side.ni, &md, &handles[n])) == PTL_OK; n++)
			t_true(n < side.limits.max_mds, "more than max_mds");
		t_eq(rc, PTL_NO_SPACE);
		while (n > 0)
			p_ok(PtlMDRelease(handles[--n]));
		for (n = 0; (rc = PtlEQAlloc(side.ni, 1, &handles[n])) == PTL_OK; n++)
			t_true(n < side.limits.max_eqs, "more than max_eqs");
		t_eq(rc, PTL_NO_SPACE);
		while (n > 0)
			p_ok(PtlEQFree(handles[--n]));
	}
	side_close(&side);
}

static void limits(void **state)
{
	(void)state;
	alone(limits_child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uninitialised),
		cmocka_unit_test(interfaces),
		cmocka_unit_test(table),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
