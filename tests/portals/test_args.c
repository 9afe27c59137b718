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

	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, &handle),
	      PTL_NO_INIT);
	t_ptl(PtlNIFini(handle), PTL_NO_INIT);
	t_ptl(PtlNIHandle(handle, &handle), PTL_NO_INIT);
	t_ptl(PtlGetPhysId(handle, &id), PTL_NO_INIT);
	t_ptl(PtlPTAlloc(handle, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_NO_INIT);
	t_ptl(PtlPTEnable(handle, 0), PTL_NO_INIT);
	t_ptl(PtlMDBind(handle, &md, &handle), PTL_NO_INIT);
	t_ptl(PtlMEAppend(handle, 0, &me, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_INIT);
	t_ptl(PtlLEAppend(handle, 0, &le, PTL_PRIORITY_LIST, NULL, &handle), PTL_NO_INIT);
	t_ptl(PtlMEUnlink(handle), PTL_NO_INIT);
	t_ptl(PtlEQAlloc(handle, 1, &handle), PTL_NO_INIT);
	t_ptl(PtlEQGet(handle, &event), PTL_NO_INIT);
	t_ptl(PtlEQWait(handle, &event), PTL_NO_INIT);
	t_ptl(PtlCTAlloc(handle, &handle), PTL_NO_INIT);
	t_ptl(PtlCTGet(handle, &count), PTL_NO_INIT);
	t_ptl(PtlCTInc(handle, one), PTL_NO_INIT);
	t_ptl(PtlPut(handle, 0, 0, PTL_NO_ACK_REQ, nobody, 0, 0, 0, NULL, 0), PTL_NO_INIT);
	t_ptl(PtlGet(handle, 0, 0, nobody, 0, 0, 0, NULL), PTL_NO_INIT);
	t_ptl(PtlTriggeredCTInc(handle, one, handle, 1), PTL_NO_INIT);
	t_ptl(PtlAtomicSync(), PTL_NO_INIT);
}

static void uninitialised_child(unsigned me, void *arg)
{
	(void)arg;
	(void)me;
	nothing_works();
	t_ptl_ok(PtlInit());
	t_ptl_ok(PtlInit());
	PtlFini();
	t_ptl_ok(PtlAtomicSync());
	PtlFini();
	nothing_works();
}

static void uninitialised(void **state)
{
	(void)state;
	side_alone(uninitialised_child);
}

/* ---- interfaces ---- */

static void expect_refused(void)
{
	ptl_handle_ni_t ni;

	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, 0, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | PTL_NI_NO_MATCHING, PTL_PID_ANY, NULL,
			NULL, &ni),
	      INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
			&ni),
	      INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING | 1u << 20, PTL_PID_ANY, NULL, NULL, &ni),
	      INVALID);
	t_ptl(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, NULL), INVALID);
	t_ptl(PtlNIInit(7, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, &ni), INVALID);
}

/* Opens the interface that the others are compared with. */
static ptl_handle_ni_t open_physical(void)
{
	ptl_handle_ni_t ni, again;
	ptl_ni_limits_t wish = {0}, got;

	/* A wish beyond the library's limit gets that limit; others are granted. */
	wish.max_pt_index = INT32_MAX;
	wish.max_msg_size = PTL_SIZE_MAX;
	wish.max_atomic_size = wish.max_fetch_atomic_size = 8;
	wish.max_waw_ordered_size = wish.max_war_ordered_size = 8;
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, &wish, &got, &ni));
	t_true(got.max_pt_index >= 63, "max_pt_index is %d", got.max_pt_index);
	t_true(got.max_pt_index < INT32_MAX, "max_pt_index is not bounded");
	t_true(got.max_atomic_size >= 8 && got.max_fetch_atomic_size >= 8, "no atomic operations");
	/* Open MPI's osc/portals4 cuts its operations into pieces of these sizes. */
	t_true(got.max_waw_ordered_size >= 8 && got.max_war_ordered_size >= 8, "no order of data");
	/* Once more gives the same interface, which ends with its second PtlNIFini(). */
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_MATCHING, PTL_PID_ANY, NULL, NULL, &again));
	t_holds(PtlHandleIsEqual(ni, again));
	t_ptl_ok(PtlNIFini(again));
	return ni;
}

static void expect_names(ptl_handle_ni_t ni, ptl_handle_ni_t other)
{
	ptl_process_t id, of_other;
	ptl_sr_value_t value;
	ptl_uid_t uid;

	t_ptl_ok(PtlGetPhysId(ni, &id));
	t_ptl_ok(PtlGetPhysId(other, &of_other));
	t_eq(id.phys.nid, of_other.phys.nid);
	t_eq(id.phys.pid, of_other.phys.pid);
	t_ptl(PtlGetPhysId(PTL_INVALID_HANDLE, &id), INVALID);
	t_ptl(PtlGetPhysId(ni, NULL), INVALID);
	t_ptl(PtlGetId(PTL_INVALID_HANDLE, &id), INVALID);
	t_ptl(PtlGetId(ni, NULL), INVALID);
	t_ptl_ok(PtlGetUid(ni, &uid));
	t_eq(uid, geteuid());
	t_ptl(PtlGetUid(ni, NULL), INVALID);
	t_ptl(PtlGetUid(PTL_INVALID_HANDLE, &uid), INVALID);

	t_ptl_ok(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value));
	t_eq(value, 0);
	t_ptl(PtlNIStatus(ni, (ptl_sr_index_t)PTL_SR_LAST, &value), INVALID);
	t_ptl(PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL), INVALID);
	t_ptl(PtlNIStatus(PTL_INVALID_HANDLE, PTL_SR_DROP_COUNT, &value), INVALID);
}

/* Checks that maps belong to logical interfaces, and are set once. */
static void expect_maps(ptl_handle_ni_t ni, ptl_handle_ni_t logical)
{
	ptl_process_t id, map[2];
	ptl_size_t size;

	t_ptl_ok(PtlGetPhysId(ni, &id));
	map[0] = id;
	t_ptl(PtlSetMap(ni, 1, map), INVALID);
	t_ptl(PtlSetMap(logical, 0, map), INVALID);
	t_ptl(PtlSetMap(logical, 1, NULL), INVALID);
	t_ptl(PtlSetMap(PTL_INVALID_HANDLE, 1, map), INVALID);
	t_ptl_ok(PtlSetMap(logical, 1, map));
	t_ptl(PtlSetMap(logical, 1, map), PTL_IGNORED);
	t_ptl_ok(PtlGetId(logical, &id));
	t_eq(id.rank, 0);
	memset(map, 0, sizeof(map));
	t_ptl_ok(PtlGetMap(logical, 2, map, &size));
	t_eq(size, 1);
	t_ptl_ok(PtlGetPhysId(ni, &id));
	t_eq(map[0].phys.pid, id.phys.pid);
	t_ptl(PtlGetMap(ni, 2, map, &size), INVALID);
	t_ptl(PtlGetMap(PTL_INVALID_HANDLE, 2, map, &size), INVALID);
}

static void interfaces_child(unsigned me, void *arg)
{
	ptl_handle_ni_t ni, logical;

	(void)arg;
	(void)me;
	t_ptl_ok(PtlInit());
	expect_refused();
	ni = open_physical();
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_LOGICAL, PTL_PID_ANY, NULL, NULL, &logical));
	t_holds(!PtlHandleIsEqual(ni, logical));
	expect_names(ni, logical);
	expect_maps(ni, logical);

	t_ptl(PtlStartBundle(PTL_INVALID_HANDLE), INVALID);
	t_ptl(PtlEndBundle(PTL_INVALID_HANDLE), INVALID);
	t_ptl_ok(PtlStartBundle(ni));
	t_ptl_ok(PtlEndBundle(ni));

	t_ptl_ok(PtlNIFini(logical));
	t_ptl(PtlNIFini(logical), INVALID);
	t_ptl_ok(PtlNIFini(ni));
	t_ptl(PtlNIFini(ni), INVALID);
	t_ptl(PtlNIFini(PTL_INVALID_HANDLE), INVALID);
	PtlFini();
}

static void interfaces(void **state)
{
	(void)state;
	side_alone(interfaces_child);
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
	t_ptl(PtlPTAlloc(PTL_INVALID_HANDLE, 0, side.eq, 1, &index), INVALID);
	t_ptl(PtlPTAlloc(side.eq, 0, side.eq, 1, &index), INVALID);
	t_ptl(PtlPTAlloc(side.ni, 1u << 20, side.eq, 1, &index), INVALID);
	t_ptl(PtlPTAlloc(side.ni, 0, side.ni, 1, &index), INVALID);
	t_ptl(PtlPTAlloc(side.ni, 0, side.eq, (ptl_pt_index_t)side.limits.max_pt_index + 1, &index),
	      INVALID);
	t_ptl(PtlPTAlloc(side.ni, 0, side.eq, 1, NULL), INVALID);
	t_ptl(PtlPTAlloc(side.ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, 1, &index), PTL_PT_EQ_NEEDED);

	t_ptl_ok(PtlPTAlloc(side.ni, PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE, side.eq, 1,
			    &index));
	t_eq(index, 1);
	t_ptl(PtlPTAlloc(side.ni, 0, side.eq, 1, &index), PTL_PT_IN_USE);
	side.pt = 1;
	entry = side_me(&side, memory, 10, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
	for (ptl_list_t list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
		handle = side_append(&side, &entry, list, NULL);
		t_ptl(PtlPTFree(side.ni, 1), PTL_PT_IN_USE);
		t_ptl_ok(PtlMEUnlink(handle));
		t_ptl(PtlMEUnlink(handle), INVALID);
	}

	t_ptl(PtlPTDisable(side.ni, 2), INVALID);
	t_ptl(PtlPTEnable(side.ni, 2), INVALID);
	t_ptl(PtlPTFree(side.ni, 2), INVALID);
	t_ptl(PtlPTFree(side.ni, PTL_PT_ANY), INVALID);
	t_ptl(PtlPTDisable(PTL_INVALID_HANDLE, 1), INVALID);
	t_ptl_ok(PtlPTDisable(side.ni, 1));
	t_ptl_ok(PtlPTEnable(side.ni, 1));
	t_ptl_ok(PtlPTFree(side.ni, 1));
	t_ptl(PtlPTFree(side.ni, 1), INVALID);

	while ((rc = PtlPTAlloc(side.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index)) == PTL_OK)
		n++;
	t_eq(rc, PTL_PT_FULL);
	t_eq(n, side.limits.max_pt_index + 1);
	for (index = 0; index < (ptl_pt_index_t)n; index++)
		t_ptl_ok(PtlPTFree(side.ni, index));
	side_close(&side);
}

static void table(void **state)
{
	(void)state;
	side_alone(table_child);
}

/* ---- limits ---- */

/* Checks that the limits of counting events, memory descriptors and event queues are kept, and that
 * freed ones can be allocated again. */
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
			t_ptl_ok(PtlCTFree(handles[--n]));
		for (n = 0; (rc = PtlMDBind(side.ni, &md, &handles[n])) == PTL_OK; n++)
			t_true(n < side.limits.max_mds, "more than max_mds");
		t_eq(rc, PTL_NO_SPACE);
		while (n > 0)
			t_ptl_ok(PtlMDRelease(handles[--n]));
		for (n = 0; (rc = PtlEQAlloc(side.ni, 1, &handles[n])) == PTL_OK; n++)
			t_true(n < side.limits.max_eqs, "more than max_eqs");
		t_eq(rc, PTL_NO_SPACE);
		while (n > 0)
			t_ptl_ok(PtlEQFree(handles[--n]));
	}
	side_close(&side);
}

static void limits(void **state)
{
	(void)state;
	side_alone(limits_child);
}

/* Checks that operations that return the old value have a limit of their own. */
static void atomics_child(unsigned me, void *arg)
{
	const ptl_ni_limits_t wish = {.max_mds = 1,
				      .max_eqs = 1,
				      .max_msg_size = 64,
				      .max_atomic_size = 16,
				      .max_fetch_atomic_size = 8};
	ptl_md_t md = {memory, 64, 0, PTL_EQ_NONE, PTL_CT_NONE};
	ptl_process_t self;
	struct side side;
	ptl_handle_md_t handle;

	(void)arg;
	side_open_limits(&side, me, 1, SIDE_MATCHING, &wish);
	self = side_id(&side, 0);
	t_ptl_ok(PtlMDBind(side.ni, &md, &handle));
	for (ptl_size_t length = 8; length <= 24; length += 8) {
		t_ptl(PtlAtomic(handle, 0, length, PTL_NO_ACK_REQ, self, 0, 0, 0, NULL, 0, PTL_SUM,
				PTL_INT64_T),
		      length <= 16 ? PTL_OK : INVALID);
		t_ptl(PtlFetchAtomic(handle, 0, handle, 32, length, self, 0, 0, 0, NULL, 0, PTL_SUM,
				     PTL_INT64_T),
		      length <= 8 ? PTL_OK : INVALID);
		t_ptl(PtlSwap(handle, 0, handle, 32, length, self, 0, 0, 0, NULL, 0, NULL, PTL_SWAP,
			      PTL_INT64_T),
		      length <= 8 ? PTL_OK : INVALID);
	}
	side_release(handle);
	side_close(&side);
}

static void atomics(void **state)
{
	(void)state;
	side_alone(atomics_child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uninitialised), cmocka_unit_test(interfaces),
		cmocka_unit_test(table),         cmocka_unit_test(limits),
		cmocka_unit_test(atomics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
