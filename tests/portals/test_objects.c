/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The return codes of wrong arguments, in a process that is alone: event queues, counting events,
 * memory descriptors, entries, and operations.
 *
 * test_objects, under "softhca run"
 */
#include "side.h"

#define INVALID PTL_ARG_INVALID

static char memory[8192];

/* ---- event queues and counting events ---- */

static void queues(struct side *side)
{
	ptl_handle_eq_t eq, both[2];
	ptl_handle_ni_t ni;
	ptl_sr_value_t value;
	ptl_event_t event;
	unsigned which;

	t_ptl(PtlEQAlloc(PTL_INVALID_HANDLE, 4, &eq), INVALID);
	t_ptl(PtlEQAlloc(side->ni, 4, NULL), INVALID);
	t_ptl_ok(PtlEQAlloc(side->ni, 4, &eq));
	t_ptl_ok(PtlNIHandle(eq, &ni));
	t_holds(PtlHandleIsEqual(ni, side->ni));
	t_ptl(PtlNIHandle(PTL_INVALID_HANDLE, &ni), INVALID);
	t_ptl(PtlNIHandle(PTL_EQ_NONE, &ni), INVALID);
	t_ptl(PtlNIHandle(eq, NULL), INVALID);
	t_ptl(PtlNIStatus(eq, PTL_SR_DROP_COUNT, &value), INVALID);

	t_ptl(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
	t_ptl(PtlEQGet(eq, NULL), INVALID);
	t_ptl(PtlEQGet(PTL_EQ_NONE, &event), INVALID);
	t_ptl(PtlEQGet(side->ni, &event), INVALID);
	t_ptl(PtlEQWait(PTL_INVALID_HANDLE, &event), INVALID);
	both[0] = side->eq;
	both[1] = eq;
	t_ptl(PtlEQPoll(both, 2, 1, &event, &which), PTL_EQ_EMPTY);
	t_ptl(PtlEQPoll(both, 2, 0, &event, &which), PTL_EQ_EMPTY);
	t_ptl(PtlEQPoll(both, 0, 1, &event, &which), INVALID);
	t_ptl(PtlEQPoll(NULL, 2, 1, &event, &which), INVALID);
	t_ptl(PtlEQPoll(both, 2, 1, NULL, &which), INVALID);
	t_ptl(PtlEQPoll(both, 2, 1, &event, NULL), INVALID);
	both[1] = PTL_INVALID_HANDLE;
	t_ptl(PtlEQPoll(both, 2, 1, &event, &which), INVALID);
	t_ptl_ok(PtlEQFree(eq));
	t_ptl(PtlEQFree(eq), INVALID);
	t_ptl(PtlEQGet(eq, &event), INVALID);
}

static void counts(struct side *side)
{
	const ptl_ct_event_t three = {.success = 3}, failed = {.failure = 2},
			     mixed = {.success = 1, .failure = 1};
	const ptl_size_t five = 5, two = 2, many[2] = {5, 5};
	ptl_handle_ct_t ct, both[2];
	ptl_ct_event_t count;
	unsigned which;

	t_ptl(PtlCTAlloc(PTL_INVALID_HANDLE, &ct), INVALID);
	t_ptl(PtlCTAlloc(side->ni, NULL), INVALID);
	t_ptl_ok(PtlCTAlloc(side->ni, &ct));
	t_ptl_ok(PtlCTGet(ct, &count));
	t_eq(count.success, 0);
	t_eq(count.failure, 0);
	t_ptl_ok(PtlCTInc(ct, three));
	t_ptl_ok(PtlCTWait(ct, 3, &count));
	t_eq(count.success, 3);
	t_ptl_ok(PtlCTPoll(&ct, &two, 1, 0, &count, &which));
	t_eq(count.success, 3);
	t_ptl(PtlCTPoll(&ct, &five, 1, 1, &count, &which), PTL_CT_NONE_REACHED);
	t_ptl(PtlCTPoll(&ct, &five, 0, 1, &count, &which), INVALID);
	t_ptl(PtlCTPoll(NULL, &five, 1, 1, &count, &which), INVALID);
	t_ptl(PtlCTPoll(&ct, NULL, 1, 1, &count, &which), INVALID);
	t_ptl(PtlCTPoll(&ct, &five, 1, 1, NULL, &which), INVALID);
	t_ptl(PtlCTPoll(&ct, &five, 1, 1, &count, NULL), INVALID);
	t_ptl(PtlCTInc(ct, mixed), INVALID);
	both[0] = side_ct(side);
	both[1] = ct;
	t_ptl(PtlCTPoll(both, many, 2, 1, &count, &which), PTL_CT_NONE_REACHED);
	/* A failure ends each wait. */
	t_ptl_ok(PtlCTInc(ct, failed));
	t_ptl_ok(PtlCTWait(ct, 100, &count));
	t_eq(count.success, 3);
	t_eq(count.failure, 2);
	t_ptl_ok(PtlCTPoll(both, many, 2, SIDE_TIMEOUT, &count, &which));
	t_eq(which, 1);
	t_eq(count.failure, 2);
	t_ptl_ok(PtlCTFree(both[0]));
	t_ptl_ok(PtlCTSet(ct, three));
	t_ptl_ok(PtlCTGet(ct, &count));
	t_eq(count.success, 3);
	t_eq(count.failure, 0);
	t_ptl(PtlCTGet(ct, NULL), INVALID);
	t_ptl(PtlCTGet(PTL_CT_NONE, &count), INVALID);
	t_ptl(PtlCTSet(side->eq, three), INVALID);
	t_ptl(PtlCTInc(PTL_INVALID_HANDLE, three), INVALID);
	t_ptl(PtlCTWait(PTL_CT_NONE, 1, &count), INVALID);
	t_ptl(PtlCTCancelTriggered(PTL_CT_NONE), INVALID);
	t_ptl_ok(PtlCTCancelTriggered(ct));
	t_ptl_ok(PtlCTFree(ct));
	t_ptl(PtlCTFree(ct), INVALID);
	t_ptl(PtlCTGet(ct, &count), INVALID);
}

static void events_child(unsigned me, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	queues(&side);
	counts(&side);
	side_close(&side);
}

static void events(void **state)
{
	(void)state;
	side_alone(events_child);
}

/* ---- memory descriptors and entries ---- */

static void descriptors(struct side *side)
{
	ptl_md_t md = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
	ptl_handle_md_t handle;

	t_ptl(PtlMDBind(PTL_INVALID_HANDLE, &md, &handle), INVALID);
	t_ptl(PtlMDBind(side->ni, NULL, &handle), INVALID);
	t_ptl(PtlMDBind(side->ni, &md, NULL), INVALID);
	md.options = 1u << 30;
	t_ptl(PtlMDBind(side->ni, &md, &handle), INVALID);
	md.options = 0;
	md.eq_handle = side->ni;
	t_ptl(PtlMDBind(side->ni, &md, &handle), INVALID);
	md.eq_handle = PTL_EQ_NONE;
	md.ct_handle = PTL_INVALID_HANDLE;
	t_ptl(PtlMDBind(side->ni, &md, &handle), INVALID);
	md.ct_handle = PTL_CT_NONE;
	t_ptl_ok(PtlMDBind(side->ni, &md, &handle));
	t_ptl(PtlMDRelease(side->ni), INVALID);
	t_ptl_ok(PtlMDRelease(handle));
	t_ptl(PtlMDRelease(handle), INVALID);
}

static void entries(struct side *side)
{
	ptl_le_t le = {memory, 10, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
	ptl_me_t entry = side_me(side, memory, 10, 0, PTL_ME_OP_PUT);
	ptl_handle_any_t handle;

	t_ptl(PtlMEAppend(PTL_INVALID_HANDLE, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle),
	      INVALID);
	t_ptl(PtlMEAppend(side->ni, SIDE_PT + 1, &entry, PTL_PRIORITY_LIST, NULL, &handle),
	      INVALID);
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, NULL, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.start = NULL;
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.start = memory;
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, 7, NULL, &handle), INVALID);
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, NULL), INVALID);
	entry.ct_handle = side->eq;
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.ct_handle = PTL_CT_NONE;
	entry.options |= 1u << 30;
	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	entry.options = PTL_ME_OP_PUT;
	t_ptl(PtlLEAppend(side->ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	t_ptl(PtlLESearch(side->ni, SIDE_PT, &le, PTL_SEARCH_ONLY, NULL), INVALID);
	t_ptl(PtlMESearch(side->ni, SIDE_PT, &entry, 7, NULL), INVALID);
	t_ptl(PtlMESearch(side->ni, SIDE_PT, NULL, PTL_SEARCH_ONLY, NULL), INVALID);
	t_ptl(PtlMESearch(side->ni, SIDE_PT + 1, &entry, PTL_SEARCH_ONLY, NULL), INVALID);
	handle = side_append(side, &entry, PTL_PRIORITY_LIST, &entry);
	t_ptl_ok(PtlMEUnlink(handle));
	t_ptl(PtlMEUnlink(handle), INVALID);
	t_ptl(PtlMEUnlink(side->eq), INVALID);
	side_no_event(side->eq);
}

/* Checks that an interface without matching has list entries only. */
static void list_entries(struct side *side)
{
	const ptl_le_t le = {memory, 10, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
	const ptl_me_t entry = side_me(side, memory, 10, 0, PTL_ME_OP_PUT);
	ptl_handle_any_t handle;

	t_ptl(PtlMEAppend(side->ni, SIDE_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle), INVALID);
	t_ptl(PtlMESearch(side->ni, SIDE_PT, &entry, PTL_SEARCH_ONLY, NULL), INVALID);
	t_ptl_ok(PtlLEAppend(side->ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle));
	side_event(side->eq, PTL_EVENT_LINK);
	t_ptl_ok(PtlLEUnlink(handle));
	t_ptl(PtlLEUnlink(handle), INVALID);
}

/* Checks that an operation needs one target. */
static void targets(struct side *side)
{
	ptl_handle_md_t md = side_md(side, memory, 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
	ptl_process_t target = {.phys = {PTL_NID_ANY, 1}};

	t_ptl(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, target, SIDE_PT, 0, 0, NULL, 0), INVALID);
	t_ptl_ok(PtlMDRelease(md));
}

static void memory_child(unsigned me, void *arg)
{
	struct side side;

	(void)arg;
	side_open(&side, me, 1, SIDE_MATCHING);
	side_table(&side, 0);
	descriptors(&side);
	entries(&side);
	targets(&side);
	side_close(&side);

	side_open(&side, me, 1, SIDE_LISTS);
	side_table(&side, 0);
	list_entries(&side);
	side_close(&side);
}

static void memories(void **state)
{
	(void)state;
	side_alone(memory_child);
}

/* ---- operations ---- */

static void puts_and_gets(struct side *side, ptl_handle_md_t md)
{
	const ptl_process_t self = side_id(side, 0), stranger = {.rank = 1};

#define PUT(md, offset, length, ack, target, pt) \
	PtlPut(md, offset, length, ack, target, pt, 0, 0, NULL, 0)
	t_ptl(PUT(side->eq, 0, 8, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, 0, 65, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, 60, 5, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, 65, 0, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, PTL_SIZE_MAX, 2, PTL_NO_ACK_REQ, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, 0, 8, 9, self, SIDE_PT), INVALID);
	t_ptl(PUT(md, 0, 8, PTL_NO_ACK_REQ, stranger, SIDE_PT), INVALID);
	t_ptl(PUT(md, 0, 8, PTL_NO_ACK_REQ, self, (ptl_pt_index_t)side->limits.max_pt_index + 1),
	      INVALID);
#define GET(md, offset, length, target, pt) PtlGet(md, offset, length, target, pt, 0, 0, NULL)
	t_ptl(GET(side->eq, 0, 8, self, SIDE_PT), INVALID);
	t_ptl(GET(md, 57, 8, self, SIDE_PT), INVALID);
	t_ptl(GET(md, 0, 8, stranger, SIDE_PT), INVALID);
	t_ptl(GET(md, 0, 8, self, (ptl_pt_index_t)side->limits.max_pt_index + 1), INVALID);
}

/* Checks that a volatile descriptor's data are no longer than the limit. */
static void volatile_data(struct side *side)
{
	const ptl_process_t self = side_id(side, 0);
	ptl_handle_md_t md =
		side_md(side, memory, sizeof(memory), PTL_MD_VOLATILE, PTL_EQ_NONE, PTL_CT_NONE);

	t_true(side->limits.max_volatile_size < sizeof(memory), "max_volatile_size is %llu",
	       (unsigned long long)side->limits.max_volatile_size);
	t_ptl(PUT(md, 0, side->limits.max_volatile_size + 1, PTL_NO_ACK_REQ, self, SIDE_PT),
	      INVALID);
	t_ptl(PtlSwap(md, 0, md, 0, side->limits.max_volatile_size + 1, self, SIDE_PT, 0, 0, NULL,
		      0, NULL, PTL_SWAP, PTL_UINT8_T),
	      INVALID);
	t_ptl_ok(PtlMDRelease(md));
}

static void atomics(struct side *side, ptl_handle_md_t md)
{
	const ptl_process_t self = side_id(side, 0);
	uint64_t operand = 0;

#define ATOMIC(length, op, type) \
	PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, op, type)
	t_ptl(ATOMIC(8, PTL_SWAP, PTL_INT64_T), INVALID);
	t_ptl(ATOMIC(8, PTL_OP_LAST, PTL_INT64_T), INVALID);
	t_ptl(ATOMIC(8, PTL_SUM, PTL_DATATYPE_LAST), INVALID);
	t_ptl(ATOMIC(8, PTL_BOR, PTL_DOUBLE), INVALID);
	t_ptl(ATOMIC(8, PTL_MIN, PTL_FLOAT_COMPLEX), INVALID);
	t_ptl(ATOMIC(12, PTL_SUM, PTL_INT64_T), INVALID);
	t_ptl(ATOMIC(72, PTL_SUM, PTL_INT64_T), INVALID);
#define FETCH(length, op, type) \
	PtlFetchAtomic(md, 0, md, 32, length, self, SIDE_PT, 0, 0, NULL, 0, op, type)
	t_ptl(FETCH(8, PTL_CSWAP, PTL_INT64_T), INVALID);
	t_ptl(FETCH(40, PTL_SUM, PTL_INT64_T), INVALID);
	t_ptl(FETCH(8, PTL_LOR, PTL_FLOAT), INVALID);
#define SWAP(length, operand, op, type) \
	PtlSwap(md, 0, md, 32, length, self, SIDE_PT, 0, 0, NULL, 0, operand, op, type)
	t_ptl(SWAP(8, NULL, PTL_SUM, PTL_INT64_T), INVALID);
	t_ptl(SWAP(8, NULL, PTL_CSWAP, PTL_INT64_T), INVALID);
	t_ptl(SWAP(16, &operand, PTL_CSWAP, PTL_INT64_T), INVALID);
	t_ptl(SWAP(8, &operand, PTL_MSWAP, PTL_DOUBLE), INVALID);
	t_ptl(SWAP(8, &operand, PTL_CSWAP_GE, PTL_FLOAT_COMPLEX), INVALID);
}

static void triggered(struct side *side, ptl_handle_md_t md)
{
	const ptl_process_t self = side_id(side, 0);
	ptl_handle_ct_t ct = side_ct(side);

	t_ptl(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, side->eq, 1),
	      INVALID);
	t_ptl(PtlTriggeredPut(md, 0, 65, PTL_NO_ACK_REQ, self, SIDE_PT, 0, 0, NULL, 0, ct, 1),
	      INVALID);
	t_ptl(PtlTriggeredGet(md, 0, 65, self, SIDE_PT, 0, 0, NULL, ct, 1), INVALID);
	t_ptl(PtlTriggeredCTInc(PTL_CT_NONE, (ptl_ct_event_t){1, 0}, ct, 1), INVALID);
	t_ptl(PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, PTL_CT_NONE, 1), INVALID);
	t_ptl(PtlTriggeredCTSet(ct, (ptl_ct_event_t){1, 0}, PTL_CT_NONE, 1), INVALID);
}

static void operations_child(unsigned me, void *arg)
{
	struct side side;
	ptl_handle_md_t md;

	(void)arg;
	side_open(&side, me, 1, SIDE_LOGICAL);
	side_table(&side, 0);
	md = side_md(&side, memory, 64, 0, side.eq, PTL_CT_NONE);
	puts_and_gets(&side, md);
	volatile_data(&side);
	atomics(&side, md);
	triggered(&side, md);
	side_no_event(side.eq);
	t_ptl_ok(PtlMDRelease(md));
	side_close(&side);
}

static void operations(void **state)
{
	(void)state;
	side_alone(operations_child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events),
		cmocka_unit_test(memories),
		cmocka_unit_test(operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
