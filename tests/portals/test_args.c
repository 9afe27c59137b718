/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The return codes of wrong arguments, in a process that is alone.
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

static void interfaces_child(unsigned me, void *arg)
{
	ptl_handle_ni_t ni, again, other;
	ptl_ni_limits_t wish = {0}, got;
	ptl_sr_value_t value;
	ptl_process_t id, map[2];
	ptl_size_t size;
	ptl_uid_t uid;

	(void)arg;
	(void)me;
	p_ok(PtlInit());
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

	p_ok(PtlNIInit(PTL_IFACE_DEFAULT, SIDE_LOGICAL, PTL_PID_ANY, NULL, NULL, &other));
	t_holds(!PtlHandleIsEqual(ni, other));
	p_ok(PtlGetPhysId(ni, &id));
	p_ok(PtlGetPhysId(other, &map[1]));
	t_eq(id.phys.nid, map[1].phys.nid);
	t_eq(id.phys.pid, map[1].phys.pid);

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

	/* Maps belong to logical interfaces, and are set once. */
	map[0] = id;
	p_rc(PtlSetMap(ni, 1, map), INVALID);
	p_rc(PtlSetMap(other, 0, map), INVALID);
	p_rc(PtlSetMap(other, 1, NULL), INVALID);
	p_rc(PtlSetMap(PTL_INVALID_HANDLE, 1, map), INVALID);
	p_ok(PtlSetMap(other, 1, map));
	p_rc(PtlSetMap(other, 1, map), PTL_IGNORED);
	p_ok(PtlGetId(other, &id));
	t_eq(id.rank, 0);
	memset(map, 0, sizeof(map));
	p_ok(PtlGetMap(other, 2, map, &size));
	t_eq(size, 1);
	p_ok(PtlGetPhysId(ni, &id));
	t_eq(map[0].phys.pid, id.phys.pid);
	p_rc(PtlGetMap(ni, 2, map, &size), INVALID);
	p_rc(PtlGetMap(PTL_INVALID_HANDLE, 2, map, &size), INVALID);

	p_rc(PtlStartBundle(PTL_INVALID_HANDLE), INVALID);
	p_rc(PtlEndBundle(PTL_INVALID_HANDLE), INVALID);
	p_ok(PtlStartBundle(ni));
	p_ok(PtlEndBundle(ni));

	p_ok(PtlNIFini(other));
	p_rc(PtlNIFini(other), INVALID);
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

/* ---- event queues and counting events ---- */

static void events_child(unsigned me, void *arg)
{
	struct side side;
	ptl_handle_eq_t eq, queues[2];
	ptl_handle_ct_t ct;
	ptl_handle_ni_t ni;
	ptl_event_t event;
	ptl_ct_event_t count;
	const ptl_ct_event_t three = {.success = 3}, failed = {.failure = 2};
	const ptl_size_t five = 5, two = 2;
	unsigned which;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	p_rc(PtlEQAlloc(PTL_INVALID_HANDLE, 4, &eq), INVALID);
	p_rc(PtlEQAlloc(side.ni, 4, NULL), INVALID);
	p_ok(PtlEQAlloc(side.ni, 4, &eq));
	p_ok(PtlNIHandle(eq, &ni));
	t_holds(PtlHandleIsEqual(ni, side.ni));
	p_rc(PtlNIHandle(PTL_INVALID_HANDLE, &ni), INVALID);
	p_rc(PtlNIHandle(PTL_EQ_NONE, &ni), INVALID);
	p_rc(PtlNIHandle(eq, NULL), INVALID);

	p_rc(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
	p_rc(PtlEQGet(eq, NULL), INVALID);
	p_rc(PtlEQGet(PTL_EQ_NONE, &event), INVALID);
	p_rc(PtlEQGet(side.ni, &event), INVALID);
	p_rc(PtlEQWait(PTL_INVALID_HANDLE, &event), INVALID);
	queues[0] = side.eq;
	queues[1] = eq;
	p_rc(PtlEQPoll(queues, 2, 1, &event, &which), PTL_EQ_EMPTY);
	p_rc(PtlEQPoll(queues, 2, 0, &event, &which), PTL_EQ_EMPTY);
	p_rc(PtlEQPoll(queues, 0, 1, &event, &which), INVALID);
	p_rc(PtlEQPoll(NULL, 2, 1, &event, &which), INVALID);
	p_rc(PtlEQPoll(queues, 2, 1, NULL, &which), INVALID);
	p_rc(PtlEQPoll(queues, 2, 1, &event, NULL), INVALID);
	queues[1] = PTL_INVALID_HANDLE;
	p_rc(PtlEQPoll(queues, 2, 1, &event, &which), INVALID);
	p_ok(PtlEQFree(eq));
	p_rc(PtlEQFree(eq), INVALID);
	p_rc(PtlEQGet(eq, &event), INVALID);

	p_rc(PtlCTAlloc(PTL_INVALID_HANDLE, &ct), INVALID);
	p_rc(PtlCTAlloc(side.ni, NULL), INVALID);
	p_ok(PtlCTAlloc(side.ni, &ct));
	p_ok(PtlCTGet(ct, &count));
	t_eq(count.success, 0);
	t_eq(count.failure, 0);
	p_ok(PtlCTInc(ct, three));
	p_ok(PtlCTWait(ct, 3, &count));
	t_eq(count.success, 3);
	p_ok(PtlCTPoll(&ct, &two, 1, 0, &count, &which));
	t_eq(count.success, 3);
	p_rc(PtlCTPoll(&ct, &five, 1, 1, &count, &which), PTL_CT_NONE_REACHED);
	p_rc(PtlCTPoll(&ct, &five, 0, 1, &count, &which), INVALID);
	p_rc(PtlCTPoll(NULL, &five, 1, 1, &count, &which), INVALID);
	p_rc(PtlCTPoll(&ct, NULL, 1, 1, &count, &which), INVALID);
	p_rc(PtlCTPoll(&ct, &five, 1, 1, NULL, &which), INVALID);
	p_rc(PtlCTPoll(&ct, &five, 1, 1, &count, NULL), INVALID);
	/* A failure ends each wait. */
	p_ok(PtlCTInc(ct, failed));
	p_ok(PtlCTWait(ct, 100, &count));
	t_eq(count.success, 3);
	t_eq(count.failure, 2);
	p_ok(PtlCTSet(ct, three));
	p_ok(PtlCTGet(ct, &count));
	t_eq(count.success, 3);
	t_eq(count.failure, 0);
	p_rc(PtlCTGet(ct, NULL), INVALID);
	p_rc(PtlCTGet(PTL_CT_NONE, &count), INVALID);
	p_rc(PtlCTSet(side.eq, three), INVALID);
	p_rc(PtlCTInc(PTL_INVALID_HANDLE, three), INVALID);
	p_rc(PtlCTWait(PTL_CT_NONE, 1, &count), INVALID);
	p_rc(PtlCTCancelTriggered(PTL_CT_NONE), INVALID);
	p_ok(PtlCTCancelTriggered(ct));
	p_ok(PtlCTFree(ct));
	p_rc(PtlCTFree(ct), INVALID);
	p_rc(PtlCTGet(ct, &count), INVALID);
	side_close(&side);
}

static void events(void **state)
{
	(void)state;
	alone(events_child);
}

/* ---- memory descriptors and entries ---- */

static void memory_child(unsigned me, void *arg)
{
	struct side side;
	ptl_md_t md = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
	ptl_handle_any_t handle;
	ptl_me_t entry;
	ptl_le_t le = {memory, 10, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	side_table(&side, 0);
	p_rc(PtlMDBind(PTL_INVALID_HANDLE, &md, &handle), INVALID);
	p_rc(PtlMDBind(side.ni, NULL, &handle), INVALID);
	p_rc(PtlMDBind(side.ni, &md, NULL), INVALID);
	md.options = 1u << 30;
	p_rc(PtlMDBind(side.ni, &md, &handle), INVALID);
	md.options = 0;
	md.eq_handle = side.ni;
	p_rc(PtlMDBind(side.ni, &md, &handle), INVALID);
	md.eq_handle = PTL_EQ_NONE;
	md.ct_handle = PTL_INVALID_HANDLE;
	p_rc(PtlMDBind(side.ni, &md, &handle), INVALID);
	md.ct_handle = PTL_CT_NONE;
	p_ok(PtlMDBind(side.ni, &md, &handle));
	p_rc(PtlMDRelease(side.ni), INVALID);
	p_ok(PtlMDRelease(handle));
	p_rc(PtlMDRelease(handle), INVALID);

	entry = side_me(&side, memory, 10, 0, PTL_ME_OP_PUT);
	p_rc(PtlMEAppend(PTL_INVALID_HANDLE, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle),
	     INVALID);
	p_rc(PtlMEAppend(side.ni, SIDE_PT + 1, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	p_rc(PtlMEAppend(side.ni, SIDE_PT, NULL, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	p_rc(PtlMEAppend(side.ni, SIDE_PT, &entry, 7, NULL, &handle), INVALID);
	p_rc(PtlMEAppend(side.ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, NULL), INVALID);
	entry.ct_handle = side.eq;
	p_rc(PtlMEAppend(side.ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.ct_handle = PTL_CT_NONE;
	entry.options |= 1u << 30;
	p_rc(PtlMEAppend(side.ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.options = PTL_ME_OP_PUT;
	p_rc(PtlLEAppend(side.ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	p_rc(PtlLESearch(side.ni, SIDE_PT, &le, PTL_SEARCH_ONLY, NULL), INVALID);
	p_rc(PtlMESearch(side.ni, SIDE_PT, &entry, 7, NULL), INVALID);
	p_rc(PtlMESearch(side.ni, SIDE_PT, NULL, PTL_SEARCH_ONLY, NULL), INVALID);
	p_rc(PtlMESearch(side.ni, SIDE_PT + 1, &entry, PTL_SEARCH_ONLY, NULL), INVALID);
	handle = side_append(&side, &entry, PTL_PRIORITY_LIST, &entry);
	p_ok(PtlMEUnlink(handle));
	p_rc(PtlMEUnlink(handle), INVALID);
	p_rc(PtlMEUnlink(side.eq), INVALID);
	side_no_event(side.eq);
	side_close(&side);

	side_open(&side, me, 1, SIDE_LISTS);
	side_table(&side, 0);
	p_rc(PtlMEAppend(side.ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	p_rc(PtlMESearch(side.ni, SIDE_PT, &entry, PTL_SEARCH_ONLY, NULL), INVALID);
	p_ok(PtlLEAppend(side.ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle));
	side_event(side.eq, PTL_EVENT_LINK);
	p_ok(PtlLEUnlink(handle));
	p_rc(PtlLEUnlink(handle), INVALID);
	side_close(&side);
}

static void memories(void **state)
{
	(void)state;
	alone(memory_child);
}

/* ---- operations ---- */

static void operations_child(unsigned me, void *arg)
{
	const ptl_process_t stranger = {.rank = 1};
	struct side side;
	ptl_process_t self;
	ptl_handle_md_t md;
	ptl_handle_ct_t ct;
	uint64_t operand = 0;

	(void)arg;
	side_open(&side, me, 1, SIDE_LOGICAL);
	side_table(&side, 0);
	self = side_id(&side, 0);
	md = side_md(&side, memory, 64, 0, side.eq, PTL_CT_NONE);
	ct = side_ct(&side);

#define PUT(md, offset, length, ack, target, pt) \
	PtlPut(md, offset, length, ack, target, pt, 0, 0, NULL, 0)
	p_rc(PUT(side.eq, 0, 8, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	p_rc(PUT(md, 0, 65, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	p_rc(PUT(md, 60, 5, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	p_rc(PUT(md, PTL_SIZE_MAX, 2, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	p_rc(PUT(md, 0, 8, 9, self, SIDE_PT), INVALID);
	p_rc(PUT(md, 0, 8, PTL_NO_ACK_REQ, stranger, SIDE_PT), INVALID);
	p_rc(PUT(md, 0, 8, PTL_NO_ACK_REQ, self, (ptl_pt_index_t)side.limits.max_pt_index + 1),
	     INVALID);
#define GET(md, offset, length, target, pt) PtlGet(md, offset, length, target, pt, 0, 0, NULL)
	p_rc(GET(side.eq, 0, 8, self, SIDE_PT), INVALID);
	p_rc(GET(md, 57, 8, self, SIDE_PT), INVALID);
	p_rc(GET(md, 0, 8, stranger, SIDE_PT), INVALID);
	p_rc(GET(md, 0, 8, self, (ptl_pt_index_t)side.limits.max_pt_index + 1), INVALID);
#define ATOMIC(length, op, type) \
	PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, op, type)
	p_rc(ATOMIC(8, PTL_SWAP, PTL_INT64_T), INVALID);
	p_rc(ATOMIC(8, PTL_OP_LAST, PTL_INT64_T), INVALID);
	p_rc(ATOMIC(8, PTL_SUM, PTL_DATATYPE_LAST), INVALID);
	p_rc(ATOMIC(8, PTL_BOR, PTL_DOUBLE), INVALID);
	p_rc(ATOMIC(8, PTL_MIN, PTL_FLOAT_COMPLEX), INVALID);
	p_rc(ATOMIC(12, PTL_SUM, PTL_INT64_T), INVALID);
	p_rc(ATOMIC(72, PTL_SUM, PTL_INT64_T), INVALID);
#define FETCH(length, op, type) \
	PtlFetchAtomic(md, 0, md, 32, length, self, SIDE_PT, 0, 0, NULL, 0, op, type)
	p_rc(FETCH(8, PTL_CSWAP, PTL_INT64_T), INVALID);
	p_rc(FETCH(40, PTL_SUM, PTL_INT64_T), INVALID);
	p_rc(FETCH(8, PTL_LOR, PTL_FLOAT), INVALID);
#define SWAP(length, operand, op, type) \
	PtlSwap(md, 0, md, 32, length, self, SIDE_PT, 0, 0, NULL, 0, operand, op, type)
	p_rc(SWAP(8, NULL, PTL_SUM, PTL_INT64_T), INVALID);
	p_rc(SWAP(8, NULL, PTL_CSWAP, PTL_INT64_T), INVALID);
	p_rc(SWAP(16, &operand, PTL_CSWAP, PTL_INT64_T), INVALID);
	p_rc(SWAP(8, &operand, PTL_MSWAP, PTL_DOUBLE), INVALID);
	p_rc(SWAP(8, &operand, PTL_CSWAP_GE, PTL_FLOAT_COMPLEX), INVALID);

	p_rc(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, side.eq, 1),
	     INVALID);
	p_rc(PtlTriggeredPut(md, 0, 65, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, ct, 1),
	     INVALID);
	p_rc(PtlTriggeredGet(md, 0, 65, self, SIDE_PT, 0, 0, NULL, ct, 1), INVALID);
	p_rc(PtlTriggeredCTInc(PTL_CT_NONE, (ptl_ct_event_t){1, 0}, ct, 1), INVALID);
	p_rc(PtlTriggeredCTSet(ct, (ptl_ct_event_t){1, 0}, PTL_CT_NONE, 1), INVALID);
	side_no_event(side.eq);
	p_ok(PtlMDRelease(md));
	side_close(&side);
}

static void operations(void **state)
{
	(void)state;
	alone(operations_child);
}

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
		cmocka_unit_test(uninitialised), cmocka_unit_test(interfaces),
		cmocka_unit_test(table),         cmocka_unit_test(events),
		cmocka_unit_test(memories),      cmocka_unit_test(operations),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
