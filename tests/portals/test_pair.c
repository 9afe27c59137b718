/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_pair.c - puts, gets and atomic operations between two processes, with what they cause at
 * both.
 */
#include <string.h>
#include <unistd.h>

#include "pair.h"

/* ---- puts ---- */

static ptl_size_t lengths[] = {0, 1, 100, 5000, 100000, PAIR_LONG};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void put_target(struct p_ni *ni, ptl_process_t peer)
{
	ptl_me_t me = p_me(pair_to, PAIR_LONG, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
	ptl_event_t event;

	for (unsigned i = 0; i < LENGTHS; i++) {
		me.match_id = peer;
		p_append(ni, &me, PTL_PRIORITY_LIST, &lengths[i]);
		p_event(ni->eq, PTL_EVENT_LINK);
	}
	procs_barrier();
	for (unsigned i = 0; i < LENGTHS; i++) {
		event = p_event(ni->eq, PTL_EVENT_PUT);
		t_holds(event.user_ptr == &lengths[i]);
		t_eq(event.rlength, lengths[i]);
		t_eq(event.mlength, lengths[i]);
		t_eq(event.hdr_data, lengths[i]);
		t_eq(event.match_bits, P_BITS);
		t_eq(event.initiator.phys.pid, peer.phys.pid);
		t_eq(event.ptl_list, PTL_PRIORITY_LIST);
		t_holds(event.start == pair_to);
		p_event(ni->eq, PTL_EVENT_AUTO_UNLINK);
		for (ptl_size_t k = 0; k < lengths[i]; k++)
			t_eq(pair_to[k], (char)(k * 7));
		procs_barrier();
	}
}

static void put(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		put_target(&ni, peer);
	} else {
		md = p_md(&ni, pair_from, PAIR_LONG);
		procs_barrier();
		for (unsigned i = 0; i < LENGTHS; i++) {
			p_put(md, lengths[i], peer, P_BITS, 0);
			t_eq(p_acked(&ni).mlength, lengths[i]);
			procs_barrier();
		}
		t_ptl_ok(PtlMDRelease(md));
	}
	pair_part(&ni);
}

static void test_put(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, put, NULL);
}

/* Offsets, truncation, and entries that don't truncate. */
static void places(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_me_t entry = p_me(pair_to, 100, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE | PTL_ME_USE_ONCE);
	ptl_me_t local = p_me(pair_to, 64, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL);
	ptl_handle_me_t all;
	ptl_handle_md_t md;

	(void)arg;
	local.min_free = 20;
	if (me) {
		p_append(&ni, &entry, PTL_PRIORITY_LIST, "exact");
		entry.options = PTL_ME_OP_PUT;
		all = p_append(&ni, &entry, PTL_PRIORITY_LIST, "all");
		local.match_bits = 5;
		p_append(&ni, &local, PTL_PRIORITY_LIST, "local");
		procs_barrier();
		for (int i = 0; i < 3; i++)
			p_event(ni.eq, PTL_EVENT_LINK);
		/* The first put is too long for the first entry, and is cut by the second. */
		t_str_eq(p_event(ni.eq, PTL_EVENT_PUT).user_ptr, "all");
		t_str_eq(p_event(ni.eq, PTL_EVENT_PUT).user_ptr, "exact");
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		t_eq(p_event(ni.eq, PTL_EVENT_PUT).mlength, 0);
		t_holds(p_event(ni.eq, PTL_EVENT_PUT).start == pair_to);
		t_holds(p_event(ni.eq, PTL_EVENT_PUT).start == pair_to + 25);
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		t_ptl_ok(PtlMEUnlink(all));
	} else {
		md = p_md(&ni, pair_from, PAIR_LONG);
		procs_barrier();
		p_put(md, 101, peer, P_BITS, 10);
		t_eq(p_acked(&ni).mlength, 90);
		p_put(md, 30, peer, P_BITS, 70);
		t_eq(p_acked(&ni).remote_offset, 70);
		p_put(md, 30, peer, P_BITS, 1000);
		t_eq(p_acked(&ni).mlength, 0);
		/* The target manages the offset. */
		p_put(md, 25, peer, 5, 3);
		t_eq(p_acked(&ni).remote_offset, 0);
		p_put(md, 25, peer, 5, 3);
		t_eq(p_acked(&ni).remote_offset, 25);
		p_put(md, 25, peer, 5, 3);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_DROPPED);
		t_ptl_ok(PtlMDRelease(md));
	}
	pair_part(&ni);
}

static void test_places(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, places, NULL);
}

/* Acknowledgements of each kind, and entries that refuse. */
static void refusals(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_me_t entry = p_me(pair_to, 8, PTL_ME_OP_GET);
	ptl_handle_me_t handles[2];
	ptl_handle_md_t md;
	ptl_sr_value_t value;

	(void)arg;
	if (me) {
		handles[0] = p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		entry.match_bits = 6;
		entry.options = PTL_ME_OP_PUT;
		entry.uid = geteuid() + 1;
		handles[1] = p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		procs_barrier();
		procs_barrier();
		t_ptl_ok(PtlNIStatus(ni.ni, PTL_SR_OPERATION_VIOLATIONS, &value));
		t_eq(value, 1);
		t_ptl_ok(PtlNIStatus(ni.ni, PTL_SR_PERMISSION_VIOLATIONS, &value));
		t_eq(value, 1);
		t_ptl_ok(PtlNIStatus(ni.ni, PTL_SR_DROP_COUNT, &value));
		t_eq(value, 1);
		t_ptl_ok(PtlMEUnlink(handles[0]));
		t_ptl_ok(PtlMEUnlink(handles[1]));
	} else {
		md = p_md(&ni, pair_from, 8);
		procs_barrier();
		p_put(md, 8, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_OP_VIOLATION);
		p_put(md, 8, peer, 6, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_PERM_VIOLATION);
		p_put(md, 8, peer, 7, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_DROPPED);
		procs_barrier();
		t_ptl_ok(PtlMDRelease(md));
	}
	pair_part(&ni);
}

static void test_refusals(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, refusals, NULL);
}

/* ---- gets and atomic operations ---- */

static void fetch_target(struct p_ni *ni)
{
	ptl_me_t entry = p_me(pair_from, PAIR_LONG, PTL_ME_OP_PUT | PTL_ME_OP_GET);
	ptl_handle_me_t handle;

	memset(pair_from, 0, 16);
	*(int64_t *)pair_from = 10;
	handle = p_append(ni, &entry, PTL_PRIORITY_LIST, NULL);
	p_event(ni->eq, PTL_EVENT_LINK);
	procs_barrier();
	for (unsigned i = 0; i < LENGTHS; i++)
		t_eq(p_event(ni->eq, PTL_EVENT_GET).mlength,
		     lengths[i] < PAIR_LONG ? lengths[i] : PAIR_LONG - 16);
	t_eq(p_event(ni->eq, PTL_EVENT_ATOMIC).atomic_operation, PTL_SUM);
	t_eq(p_event(ni->eq, PTL_EVENT_FETCH_ATOMIC).atomic_operation, PTL_PROD);
	t_eq(p_event(ni->eq, PTL_EVENT_FETCH_ATOMIC).atomic_operation, PTL_CSWAP);
	p_event(ni->eq, PTL_EVENT_FETCH_ATOMIC);
	t_eq(*(int64_t *)pair_from, 3);
	t_ptl_ok(PtlMEUnlink(handle));
}

static void fetch_initiator(struct p_ni *ni, ptl_process_t peer)
{
	ptl_handle_md_t md, numbers;
	int64_t number[2] = {0, 5}, operand = 12;

	md = p_md(ni, pair_to, PAIR_LONG);
	numbers = p_md(ni, number, sizeof(number));
	procs_barrier();
	for (unsigned i = 0; i < LENGTHS; i++) {
		t_ptl_ok(PtlGet(md, 0, lengths[i], peer, 0, P_BITS, 16, NULL));
		t_eq(p_event(ni->mine, PTL_EVENT_REPLY).mlength,
		     lengths[i] < PAIR_LONG ? lengths[i] : PAIR_LONG - 16);
		for (ptl_size_t k = 0; k < lengths[i] && k < PAIR_LONG - 16; k++)
			t_eq(pair_to[k], (char)((k + 16) * 7 + 1));
	}
	/* 10 + 5 = 15; 15 * 5 = 75; not 12, so no swap; then 3. */
	t_ptl_ok(PtlAtomic(numbers, 8, 8, PTL_ACK_REQ, peer, 0, P_BITS, 0, NULL, 0, PTL_SUM,
			   PTL_INT64_T));
	p_acked(ni);
	t_ptl_ok(PtlFetchAtomic(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0, PTL_PROD,
				PTL_INT64_T));
	p_event(ni->mine, PTL_EVENT_SEND);
	p_event(ni->mine, PTL_EVENT_REPLY);
	t_eq(number[0], 15);
	t_ptl_ok(PtlSwap(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0, &operand,
			 PTL_CSWAP, PTL_INT64_T));
	p_event(ni->mine, PTL_EVENT_SEND);
	p_event(ni->mine, PTL_EVENT_REPLY);
	t_eq(number[0], 75);
	number[1] = 3;
	t_ptl_ok(PtlSwap(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0, NULL, PTL_SWAP,
			 PTL_INT64_T));
	p_event(ni->mine, PTL_EVENT_SEND);
	p_event(ni->mine, PTL_EVENT_REPLY);
	t_eq(number[0], 75);
	t_ptl_ok(PtlMDRelease(md));
	t_ptl_ok(PtlMDRelease(numbers));
}

static void fetches(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);

	(void)arg;
	if (me)
		fetch_target(&ni);
	else
		fetch_initiator(&ni, peer);
	pair_part(&ni);
}

static void test_fetches(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, fetches, NULL);
}

/* Pieces at both sides. */
static void pieces(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_iovec_t iov[] = {{me ? pair_to : pair_from, 10},
			     {NULL, 0},
			     {me ? pair_to + 30 : pair_from + 10, 90}};
	ptl_me_t entry = p_me(iov, 3, PTL_ME_OP_PUT | PTL_IOVEC);
	ptl_md_t init = {iov, 3, PTL_IOVEC, ni.mine, PTL_CT_NONE};
	ptl_handle_me_t handle;
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		handle = p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		p_event(ni.eq, PTL_EVENT_LINK);
		procs_barrier();
		t_eq(p_event(ni.eq, PTL_EVENT_PUT).mlength, 95);
		for (int i = 5; i < 100; i++)
			t_eq((i < 10 ? pair_to : pair_to + 20)[i], (char)((i - 5) * 7));
		t_eq(pair_to[10], 0);
		t_ptl_ok(PtlMEUnlink(handle));
	} else {
		t_ptl_ok(PtlMDBind(ni.ni, &init, &md));
		procs_barrier();
		p_put(md, 100, peer, P_BITS, 5);
		p_acked(&ni);
		t_ptl_ok(PtlMDRelease(md));
	}
	pair_part(&ni);
}

static void test_pieces(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, pieces, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),      cmocka_unit_test(test_places),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_pieces),
	};

	pair_arguments(argc, argv);
	return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
