/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations between processes, with and without the old values, and triggered operations.
 * All processes start operations on the memory of process 0.
 *
 * test_atomic physical|logical|lists NODES, under "softhca run --nodes NODES"
 */
#include "side.h"

#define NPROCS 3
#define TIMES  200

static unsigned options;
static unsigned nodes[NPROCS];

typedef void part_fn(struct side *side);

struct memory {
	int64_t sum;
	double doubles[4];
	int64_t word;
	uint8_t bytes[64];
};
static struct memory memory;

static void part(unsigned me, void *arg)
{
	part_fn *fn = *(part_fn **)arg;
	struct side side;

	side_open(&side, me, NPROCS, options);
	side_table(&side, 0);
	fn(&side);
	side_close(&side);
}

static void run(part_fn *fn)
{
	procs_run(NPROCS, nodes, part, &fn);
}

/* Appends an entry of all the memory, for all operations, with a counting event. */
static ptl_handle_any_t expose(struct side *side, void *start, size_t length, unsigned opts,
			       ptl_handle_ct_t ct)
{
	ptl_me_t me = side_me(side, start, length, 0,
			      PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | opts |
				      (ct == PTL_CT_NONE ? 0 : PTL_ME_EVENT_CT_COMM));
	ptl_le_t le = {start, length, ct, PTL_UID_ANY, me.options};
	ptl_handle_any_t handle;

	me.ct_handle = ct;
	if (side->options & PTL_NI_MATCHING)
		t_ptl_ok(PtlMEAppend(side->ni, SIDE_PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
	else
		t_ptl_ok(PtlLEAppend(side->ni, SIDE_PT, &le, PTL_PRIORITY_LIST, NULL, &handle));
	return handle;
}

static void hide(struct side *side, ptl_handle_any_t handle)
{
	if (side->options & PTL_NI_MATCHING)
		t_ptl_ok(PtlMEUnlink(handle));
	else
		t_ptl_ok(PtlLEUnlink(handle));
}

#define OFFSET(field) offsetof(struct memory, field)

/* ---- sums of all processes ---- */

static void sums(struct side *side)
{
	const ptl_process_t to = side_id(side, 0);
	ptl_handle_any_t entry = PTL_INVALID_HANDLE;
	ptl_handle_ct_t acked = side_ct(side);
	int64_t mine = (int64_t)side->me + 1;
	double doubles[4] = {1, 2, 3, (double)side->me};
	ptl_handle_md_t md =
		side_md(side, &mine, sizeof(mine), PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
	ptl_handle_md_t more =
		side_md(side, doubles, sizeof(doubles), PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);

	memset(&memory, 0, sizeof(memory));
	if (side->me == 0)
		entry = expose(side, &memory, sizeof(memory), PTL_ME_EVENT_COMM_DISABLE,
			       PTL_CT_NONE);
	procs_barrier();
	for (int i = 0; i < TIMES; i++) {
		t_ptl_ok(PtlAtomic(md, 0, 8, PTL_CT_ACK_REQ, to, SIDE_PT, 0, OFFSET(sum), NULL, 0,
				   PTL_SUM, PTL_INT64_T));
		t_ptl_ok(PtlAtomic(more, 0, sizeof(doubles), PTL_CT_ACK_REQ, to, SIDE_PT, 0,
				   OFFSET(doubles), NULL, 0, PTL_SUM, PTL_DOUBLE));
	}
	side_count(acked, (ptl_size_t)2 * TIMES);
	procs_barrier();
	if (side->me == 0) {
		t_ptl_ok(PtlAtomicSync());
		t_eq(memory.sum, TIMES * NPROCS * (NPROCS + 1) / 2);
		for (int i = 0; i < 3; i++)
			t_true(memory.doubles[i] == (i + 1.0) * TIMES * NPROCS, "double %d is %g",
			       i, memory.doubles[i]);
		t_true(memory.doubles[3] == TIMES * (0 + 1 + 2), "double 3 is %g",
		       memory.doubles[3]);
		hide(side, entry);
	}
	side_release(md);
	side_release(more);
}

static void test_sums(void **state)
{
	(void)state;
	run(sums);
}

/* ---- each process fetches other numbers, and a lock of compare-and-swap ---- */

/* Increments a number that only the lock in `word` protects. `got` and `give` are descriptors of
 * the two numbers. */
static void grow_under_lock(struct side *side, ptl_handle_eq_t eq, ptl_handle_md_t got,
			    ptl_handle_md_t give, int64_t numbers[2])
{
	const ptl_process_t to = side_id(side, 0);

	for (int i = 0; i < TIMES / 10; i++) {
		int64_t free = 0;

		do {
			numbers[1] = (int64_t)side->me + 1;
			t_ptl_ok(PtlSwap(got, 0, give, 0, 8, to, SIDE_PT, 0, OFFSET(word), NULL, 0,
					 &free, PTL_CSWAP, PTL_INT64_T));
			side_event(eq, PTL_EVENT_REPLY);
		} while (numbers[0] != 0);
		t_ptl_ok(PtlGet(got, 0, 8, to, SIDE_PT, 0, OFFSET(bytes), NULL));
		side_event(eq, PTL_EVENT_REPLY);
		numbers[1] = numbers[0] + 1;
		t_ptl_ok(PtlPut(give, 0, 8, PTL_ACK_REQ, to, SIDE_PT, 0, OFFSET(bytes), NULL, 0));
		side_event(eq, PTL_EVENT_ACK);
		numbers[1] = 0;
		t_ptl_ok(PtlSwap(got, 0, give, 0, 8, to, SIDE_PT, 0, OFFSET(word), NULL, 0, NULL,
				 PTL_SWAP, PTL_INT64_T));
		side_event(eq, PTL_EVENT_REPLY);
		t_eq(numbers[0], side->me + 1);
	}
}

static void fetches(struct side *side)
{
	const ptl_process_t to = side_id(side, 0);
	ptl_handle_any_t entry = PTL_INVALID_HANDLE;
	ptl_handle_eq_t eq;
	ptl_handle_md_t got, give;
	ptl_event_t event;
	int64_t numbers[2], last = -1;

	memset(&memory, 0, sizeof(memory));
	if (side->me == 0)
		entry = expose(side, &memory, sizeof(memory), PTL_ME_EVENT_COMM_DISABLE,
			       PTL_CT_NONE);
	t_ptl_ok(PtlEQAlloc(side->ni, 16, &eq));
	got = side_md(side, &numbers[0], 8, 0, eq, PTL_CT_NONE);
	give = side_md(side, &numbers[1], 8, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
	procs_barrier();
	numbers[1] = 1;
	for (int i = 0; i < TIMES; i++) {
		t_ptl_ok(PtlFetchAtomic(got, 0, give, 0, 8, to, SIDE_PT, 0, OFFSET(sum), &last, 0,
					PTL_SUM, PTL_INT64_T));
		event = side_event(eq, PTL_EVENT_REPLY);
		t_holds(event.user_ptr == &last);
		t_eq(event.mlength, 8);
		t_eq(event.remote_offset, OFFSET(sum));
		t_true(numbers[0] > last, "%lld after %lld", (long long)numbers[0],
		       (long long)last);
		last = numbers[0];
	}
	grow_under_lock(side, eq, got, give, numbers);
	procs_barrier();
	if (side->me == 0) {
		t_eq(memory.sum, TIMES * NPROCS);
		t_eq(memory.word, 0);
		memcpy(&last, memory.bytes, sizeof(last));
		t_eq(last, TIMES / 10 * NPROCS);
		hide(side, entry);
	}
	side_release(got);
	side_release(give);
}

static void test_fetches(void **state)
{
	(void)state;
	run(fetches);
}

/* ---- the events of both processes ---- */

static void target_events(struct side *side)
{
	ptl_event_t event;
	int64_t number = 5, old = 77;

	if (side->me == 0) {
		ptl_handle_any_t entry = expose(side, &memory, sizeof(memory), 0, PTL_CT_NONE);

		memory.sum = 10;
		procs_barrier();
		event = side_event(side->eq, PTL_EVENT_ATOMIC);
		t_eq(event.atomic_operation, PTL_MAX);
		t_eq(event.atomic_type, PTL_INT64_T);
		t_eq(event.rlength, 8);
		t_eq(event.mlength, 8);
		t_eq(event.hdr_data, 42);
		t_holds(event.start == &memory.sum);
		t_holds(side_is_from(side, &event, 1));
		event = side_event(side->eq, PTL_EVENT_FETCH_ATOMIC);
		t_eq(event.atomic_operation, PTL_PROD);
		event = side_event(side->eq, PTL_EVENT_FETCH_ATOMIC);
		t_eq(event.atomic_operation, PTL_SWAP);
		t_eq(memory.sum, 5);
		procs_barrier();
		hide(side, entry);
		return;
	}
	procs_barrier();
	if (side->me == 1) {
		ptl_handle_md_t give = side_md(side, &number, 8, 0, side->eq, PTL_CT_NONE);
		ptl_handle_md_t got = side_md(side, &old, 8, 0, side->eq, PTL_CT_NONE);
		const ptl_process_t to = side_id(side, 0);

		t_ptl_ok(PtlAtomic(give, 0, 8, PTL_ACK_REQ, to, SIDE_PT, 0, 0, NULL, 42, PTL_MAX,
				   PTL_INT64_T));
		side_event(side->eq, PTL_EVENT_SEND);
		event = side_event(side->eq, PTL_EVENT_ACK);
		t_eq(event.mlength, 8);
		t_ptl_ok(PtlFetchAtomic(got, 0, give, 0, 8, to, SIDE_PT, 0, 0, NULL, 0, PTL_PROD,
					PTL_INT64_T));
		side_event(side->eq, PTL_EVENT_SEND);
		side_event(side->eq, PTL_EVENT_REPLY);
		t_eq(old, 10);
		t_ptl_ok(PtlSwap(got, 0, give, 0, 8, to, SIDE_PT, 0, 0, NULL, 0, NULL, PTL_SWAP,
				 PTL_INT64_T));
		side_event(side->eq, PTL_EVENT_SEND);
		side_event(side->eq, PTL_EVENT_REPLY);
		t_eq(old, 50);
		side_release(give);
		side_release(got);
	}
	procs_barrier();
}

static void test_target_events(void **state)
{
	(void)state;
	run(target_events);
}

/* ---- triggered operations ---- */

/* Passes a text round a ring: in each process a counting event that counts the put of the one
 * before starts the put to the next one, without a call. */
static void relay(struct side *side)
{
	ptl_handle_ct_t came = side_ct(side);
	uint8_t text[16] = {0};
	ptl_handle_any_t entry = expose(side, text, sizeof(text), PTL_ME_EVENT_COMM_DISABLE, came);
	ptl_handle_md_t md = side_md(side, text, sizeof(text), 0, PTL_EQ_NONE, PTL_CT_NONE);
	const ptl_process_t next = side_id(side, (side->me + 1) % NPROCS);

	if (side->me != 0)
		t_ptl_ok(PtlTriggeredPut(md, 0, sizeof(text), PTL_NO_ACK_REQ, next, SIDE_PT, 0, 0,
					 NULL, 0, came, 1));
	procs_barrier();
	if (side->me == 0) {
		memcpy(text, "around the ring", 16);
		t_ptl_ok(PtlPut(md, 0, sizeof(text), PTL_NO_ACK_REQ, next, SIDE_PT, 0, 0, NULL, 0));
	}
	side_count(came, 1);
	t_str_eq((char *)text, "around the ring");
	procs_barrier();
	hide(side, entry);
	side_release(md);
	t_ptl_ok(PtlCTFree(came));
}

static void test_relay(void **state)
{
	(void)state;
	run(relay);
}

/* Counting events that change each other, in the order of their thresholds. */
static void chains(struct side *side)
{
	const ptl_ct_event_t one = {.success = 1}, two = {.success = 2}, ten = {.success = 10},
			     failed = {.failure = 1};
	ptl_handle_ct_t first = side_ct(side), second = side_ct(side), third = side_ct(side);
	ptl_ct_event_t count;

	/* Started in another order than that of the thresholds. */
	t_ptl_ok(PtlTriggeredCTSet(second, ten, first, 3));
	t_ptl_ok(PtlTriggeredCTInc(second, one, first, 2));
	t_ptl_ok(PtlTriggeredCTInc(third, two, second, 1));
	t_ptl_ok(PtlTriggeredCTInc(third, one, second, 11));
	t_ptl_ok(PtlCTInc(first, one));
	t_ptl_ok(PtlCTGet(second, &count));
	t_eq(count.success, 0);
	t_ptl_ok(PtlCTInc(first, one));
	side_count(second, 1);
	side_count(third, 2);
	/* Failures count, too. */
	t_ptl_ok(PtlCTInc(first, failed));
	side_count(second, 10);
	t_ptl_ok(PtlCTInc(second, one));
	side_count(third, 3);
	/* Already reached: at once. */
	t_ptl_ok(PtlTriggeredCTInc(third, one, second, 5));
	side_count(third, 4);
	/* Equal thresholds are in the order of the calls. */
	t_ptl_ok(PtlTriggeredCTSet(third, ten, second, 12));
	t_ptl_ok(PtlTriggeredCTInc(third, one, second, 12));
	t_ptl_ok(PtlCTInc(second, one));
	side_count(third, 11);
	/* Cancelled ones never start. */
	t_ptl_ok(PtlTriggeredCTInc(third, one, second, 13));
	t_ptl_ok(PtlCTCancelTriggered(second));
	t_ptl_ok(PtlCTInc(second, two));
	t_ptl_ok(PtlCTGet(third, &count));
	t_eq(count.success, 11);
	t_ptl_ok(PtlCTFree(first));
	t_ptl_ok(PtlCTFree(second));
	t_ptl_ok(PtlCTFree(third));
}

static void test_chains(void **state)
{
	(void)state;
	run(chains);
}

/* Gets and atomic operations that a counting event starts. */
static void triggered(struct side *side)
{
	const ptl_ct_event_t one = {.success = 1};
	const ptl_process_t to = side_id(side, 0);
	ptl_handle_ct_t start = side_ct(side), done = side_ct(side);
	int64_t numbers[4] = {3, 0, 0, 0}, operand = 8;
	ptl_handle_md_t give, got;
	ptl_handle_any_t entry = PTL_INVALID_HANDLE;

	give = side_md(side, &numbers[0], 8, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, done);
	got = side_md(side, &numbers[1], 24, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, done);
	if (side->me == 0) {
		memory.sum = 5;
		entry = expose(side, &memory, sizeof(memory), PTL_ME_EVENT_COMM_DISABLE,
			       PTL_CT_NONE);
	}
	procs_barrier();
	if (side->me == 1) {
		t_ptl_ok(PtlTriggeredAtomic(give, 0, 8, PTL_CT_ACK_REQ, to, SIDE_PT, 0, 0, NULL, 0,
					    PTL_SUM, PTL_INT64_T, start, 1));
		t_ptl_ok(PtlTriggeredFetchAtomic(got, 0, give, 0, 8, to, SIDE_PT, 0, 0, NULL, 0,
						 PTL_SUM, PTL_INT64_T, start, 2));
		t_ptl_ok(PtlTriggeredSwap(got, 8, give, 0, 8, to, SIDE_PT, 0, 0, NULL, 0, &operand,
					  PTL_CSWAP_NE, PTL_INT64_T, start, 3));
		t_ptl_ok(PtlTriggeredGet(got, 16, 8, to, SIDE_PT, 0, 0, NULL, start, 4));
		for (ptl_size_t i = 1; i <= 4; i++) {
			t_ptl_ok(PtlCTInc(start, one));
			side_count(done, i);
		}
		t_eq(numbers[1], 8);
		t_eq(numbers[2], 11);
		t_eq(numbers[3], 3);
	}
	procs_barrier();
	if (side->me == 0)
		hide(side, entry);
	side_release(give);
	side_release(got);
}

static void test_triggered(void **state)
{
	(void)state;
	run(triggered);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),          cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_target_events), cmocka_unit_test(test_relay),
		cmocka_unit_test(test_chains),        cmocka_unit_test(test_triggered),
	};

	side_arguments(argc, argv, &options, nodes, NPROCS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
