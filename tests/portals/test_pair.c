/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_pair.c - two processes on two nodes: child 0 is the initiator, child 1 the target. Puts,
 * gets and atomic operations with what they cause at both; the overflow list; flow control; what
 * the HCA matches; ends.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "portals.h"

#define LONG (1 << 20)

static char from[LONG], to[LONG];
/* The nodes of the children. With the argument "alone" both are on one. */
static unsigned nodes[] = {0, 1};

/* Opens an interface, and tells the other child. Returns the other's id. */
static ptl_process_t meet(struct p_ni *ni, unsigned me, unsigned options, unsigned pt_options,
			  ptl_size_t events)
{
	*ni = p_open(options, pt_options, events);
	p_publish(ni);
	for (size_t i = 0; i < LONG; i++)
		from[i] = (char)(i * 7 + me);
	return p_id_of(1 - me);
}

/* Closes an interface after the other child is done, too. */
static void part(struct p_ni *ni)
{
	procs_barrier();
	p_close(ni);
}

enum { K_READY = 10, K_GO };

#define MATCHING (PTL_NI_MATCHING | PTL_NI_PHYSICAL)

/* ---- puts ---- */

static ptl_size_t lengths[] = {0, 1, 100, 5000, 100000, LONG};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void put_target(struct p_ni *ni, ptl_process_t peer)
{
	ptl_me_t me = p_me(to, LONG, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
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
		t_holds(event.start == to);
		p_event(ni->eq, PTL_EVENT_AUTO_UNLINK);
		for (ptl_size_t k = 0; k < lengths[i]; k++)
			t_eq(to[k], (char)(k * 7));
		procs_barrier();
	}
}

static void put(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		put_target(&ni, peer);
	} else {
		md = p_md(&ni, from, LONG);
		procs_barrier();
		for (unsigned i = 0; i < LENGTHS; i++) {
			p_put(md, lengths[i], peer, P_BITS, 0);
			t_eq(p_acked(&ni).mlength, lengths[i]);
			procs_barrier();
		}
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_put(void **state)
{
	(void)state;
	procs_run(2, nodes, put, NULL);
}

/* Offsets, truncation, and entries that don't truncate. */
static void places(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_me_t entry = p_me(to, 100, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE | PTL_ME_USE_ONCE);
	ptl_me_t local = p_me(to, 64, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL);
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
		t_holds(p_event(ni.eq, PTL_EVENT_PUT).start == to);
		t_holds(p_event(ni.eq, PTL_EVENT_PUT).start == to + 25);
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		t_ptl(PtlMEUnlink(all), PTL_OK);
	} else {
		md = p_md(&ni, from, LONG);
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
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_places(void **state)
{
	(void)state;
	procs_run(2, nodes, places, NULL);
}

/* Acknowledgements of each kind, and entries that refuse. */
static void refusals(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_me_t entry = p_me(to, 8, PTL_ME_OP_GET);
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
		t_ptl(PtlNIStatus(ni.ni, PTL_SR_OPERATION_VIOLATIONS, &value), PTL_OK);
		t_eq(value, 1);
		t_ptl(PtlNIStatus(ni.ni, PTL_SR_PERMISSION_VIOLATIONS, &value), PTL_OK);
		t_eq(value, 1);
		t_ptl(PtlNIStatus(ni.ni, PTL_SR_DROP_COUNT, &value), PTL_OK);
		t_eq(value, 1);
		t_ptl(PtlMEUnlink(handles[0]), PTL_OK);
		t_ptl(PtlMEUnlink(handles[1]), PTL_OK);
	} else {
		md = p_md(&ni, from, 8);
		procs_barrier();
		p_put(md, 8, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_OP_VIOLATION);
		p_put(md, 8, peer, 6, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_PERM_VIOLATION);
		p_put(md, 8, peer, 7, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_DROPPED);
		procs_barrier();
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_refusals(void **state)
{
	(void)state;
	procs_run(2, nodes, refusals, NULL);
}

/* ---- gets and atomic operations ---- */

static void fetches(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_me_t entry = p_me(from, LONG, PTL_ME_OP_PUT | PTL_ME_OP_GET);
	ptl_handle_me_t handle;
	ptl_handle_md_t md, numbers;
	int64_t number[2] = {0, 5}, operand = 12;

	(void)arg;
	if (me) {
		memset(from, 0, 16);
		*(int64_t *)from = 10;
		handle = p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		p_event(ni.eq, PTL_EVENT_LINK);
		procs_barrier();
		for (unsigned i = 0; i < LENGTHS; i++)
			t_eq(p_event(ni.eq, PTL_EVENT_GET).mlength,
			     lengths[i] < LONG ? lengths[i] : LONG - 16);
		t_eq(p_event(ni.eq, PTL_EVENT_ATOMIC).atomic_operation, PTL_SUM);
		t_eq(p_event(ni.eq, PTL_EVENT_FETCH_ATOMIC).atomic_operation, PTL_PROD);
		t_eq(p_event(ni.eq, PTL_EVENT_FETCH_ATOMIC).atomic_operation, PTL_CSWAP);
		p_event(ni.eq, PTL_EVENT_FETCH_ATOMIC);
		t_eq(*(int64_t *)from, 3);
		t_ptl(PtlMEUnlink(handle), PTL_OK);
	} else {
		md = p_md(&ni, to, LONG);
		numbers = p_md(&ni, number, sizeof(number));
		procs_barrier();
		for (unsigned i = 0; i < LENGTHS; i++) {
			t_ptl(PtlGet(md, 0, lengths[i], peer, 0, P_BITS, 16, NULL), PTL_OK);
			t_eq(p_event(ni.mine, PTL_EVENT_REPLY).mlength,
			     lengths[i] < LONG ? lengths[i] : LONG - 16);
			for (ptl_size_t k = 0; k < lengths[i] && k < LONG - 16; k++)
				t_eq(to[k], (char)((k + 16) * 7 + 1));
		}
		/* 10 + 5 = 15; 15 * 5 = 75; not 12, so no swap; then 3. */
		t_ptl(PtlAtomic(numbers, 8, 8, PTL_ACK_REQ, peer, 0, P_BITS, 0, NULL, 0, PTL_SUM,
				PTL_INT64_T),
		      PTL_OK);
		p_acked(&ni);
		t_ptl(PtlFetchAtomic(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0,
				     PTL_PROD, PTL_INT64_T),
		      PTL_OK);
		p_event(ni.mine, PTL_EVENT_SEND);
		p_event(ni.mine, PTL_EVENT_REPLY);
		t_eq(number[0], 15);
		t_ptl(PtlSwap(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0, &operand,
			      PTL_CSWAP, PTL_INT64_T),
		      PTL_OK);
		p_event(ni.mine, PTL_EVENT_SEND);
		p_event(ni.mine, PTL_EVENT_REPLY);
		t_eq(number[0], 75);
		number[1] = 3;
		t_ptl(PtlSwap(numbers, 0, numbers, 8, 8, peer, 0, P_BITS, 0, NULL, 0, NULL,
			      PTL_SWAP, PTL_INT64_T),
		      PTL_OK);
		p_event(ni.mine, PTL_EVENT_SEND);
		p_event(ni.mine, PTL_EVENT_REPLY);
		t_eq(number[0], 75);
		t_ptl(PtlMDRelease(md), PTL_OK);
		t_ptl(PtlMDRelease(numbers), PTL_OK);
	}
	part(&ni);
}

static void test_fetches(void **state)
{
	(void)state;
	procs_run(2, nodes, fetches, NULL);
}

/* Pieces at both sides. */
static void pieces(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_iovec_t iov[] = {{me ? to : from, 10}, {NULL, 0}, {me ? to + 30 : from + 10, 90}};
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
			t_eq((i < 10 ? to : to + 20)[i], (char)((i - 5) * 7));
		t_eq(to[10], 0);
		t_ptl(PtlMEUnlink(handle), PTL_OK);
	} else {
		t_ptl(PtlMDBind(ni.ni, &init, &md), PTL_OK);
		procs_barrier();
		p_put(md, 100, peer, P_BITS, 5);
		p_acked(&ni);
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_pieces(void **state)
{
	(void)state;
	procs_run(2, nodes, pieces, NULL);
}

/* ---- the overflow list ---- */

static void overflow(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_me_t block = p_me(to, 1000, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL);
	ptl_me_t entry = p_me(to + 2000, 100, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
	ptl_event_t event;
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		block.ignore_bits = UINT64_MAX;
		block.min_free = 801;
		p_append(&ni, &block, PTL_OVERFLOW_LIST, "block");
		p_event(ni.eq, PTL_EVENT_LINK);
		procs_barrier();
		event = p_event(ni.eq, PTL_EVENT_PUT);
		t_eq(event.ptl_list, PTL_OVERFLOW_LIST);
		event = p_event(ni.eq, PTL_EVENT_PUT);
		t_str_eq(event.user_ptr, "block");
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		/* A search looks, an entry takes, in the order of arrival. */
		t_ptl(PtlMESearch(ni.ni, 0, &entry, PTL_SEARCH_ONLY, NULL), PTL_OK);
		t_eq(p_event(ni.eq, PTL_EVENT_SEARCH).hdr_data, 100);
		p_append(&ni, &entry, PTL_PRIORITY_LIST, "entry");
		event = p_event(ni.eq, PTL_EVENT_PUT_OVERFLOW);
		t_holds(event.start == to);
		t_eq(event.mlength, 100);
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		t_eq(to[99], (char)(99 * 7));
		/* The block is free when its last header is gone. */
		entry.match_bits = 8;
		t_ptl(PtlMESearch(ni.ni, 0, &entry, PTL_SEARCH_DELETE, "search"), PTL_OK);
		event = p_event(ni.eq, PTL_EVENT_PUT_OVERFLOW);
		t_str_eq(event.user_ptr, "search");
		t_holds(event.start == to + 100);
		t_str_eq(p_event(ni.eq, PTL_EVENT_AUTO_FREE).user_ptr, "block");
		p_no_event(ni.eq);
	} else {
		md = p_md(&ni, from, LONG);
		procs_barrier();
		p_put(md, 100, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ptl_list, PTL_OVERFLOW_LIST);
		p_put(md, 100, peer, 8, 0);
		p_acked(&ni);
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_overflow(void **state)
{
	(void)state;
	procs_run(2, nodes, overflow, NULL);
}

/* ---- flow control ---- */

static void flow(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, PTL_PT_FLOWCTRL, 8);
	ptl_me_t entry = p_me(to, LONG, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
	ptl_handle_me_t handle;
	ptl_handle_md_t md;
	unsigned failed = 0;

	(void)arg;
	if (me) {
		handle = p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		procs_barrier();
		procs_barrier();
		/* Eight fit; the entry is disabled after them. */
		for (int i = 0; i < 8; i++)
			p_event(ni.eq, PTL_EVENT_PUT);
		p_event(ni.eq, PTL_EVENT_PT_DISABLED);
		p_no_event(ni.eq);
		t_ptl(PtlPTEnable(ni.ni, 0), PTL_OK);
		procs_barrier();
		p_event(ni.eq, PTL_EVENT_PUT);
		t_ptl(PtlPTDisable(ni.ni, 0), PTL_OK);
		procs_barrier();
		procs_barrier();
		p_no_event(ni.eq);
		t_ptl(PtlMEUnlink(handle), PTL_OK);
	} else {
		md = p_md(&ni, from, LONG);
		procs_barrier();
		for (int i = 0; i < 12; i++)
			p_put(md, 8, peer, P_BITS, 0);
		for (int i = 0; i < 24; i++) {
			ptl_event_t event;
			unsigned which;

			t_ptl(PtlEQPoll(&ni.mine, 1, P_WAIT, &event, &which), PTL_OK);
			failed += event.ni_fail_type == PTL_NI_PT_DISABLED;
		}
		t_eq(failed, 4);
		procs_barrier();
		procs_barrier();
		p_put(md, 8, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_OK);
		procs_barrier();
		p_put(md, 8, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ni_fail_type, PTL_NI_PT_DISABLED);
		procs_barrier();
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	part(&ni);
}

static void test_flow(void **state)
{
	(void)state;
	procs_run(2, nodes, flow, NULL);
}

/* ---- interfaces without matching, by rank ---- */

static void logical(unsigned me, void *arg)
{
	ptl_process_t map[2], target = {.rank = 1};
	ptl_handle_ct_t ct;
	ptl_ct_event_t value;
	ptl_le_t le = {.start = to,
		       .length = 64,
		       .uid = PTL_UID_ANY,
		       .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_CT_BYTES};
	ptl_handle_le_t handle;
	ptl_handle_md_t md;
	struct p_ni ni;

	(void)arg;
	map[1 - me] = meet(&ni, me, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, 0, 64);
	map[me] = ni.id;
	t_ptl(PtlSetMap(ni.ni, 2, map), PTL_OK);
	t_ptl(PtlCTAlloc(ni.ni, &ct), PTL_OK);
	if (me) {
		le.ct_handle = ct;
		t_ptl(PtlLEAppend(ni.ni, 0, &le, PTL_PRIORITY_LIST, NULL, &handle), PTL_OK);
		p_event(ni.eq, PTL_EVENT_LINK);
		procs_barrier();
		t_ptl(PtlCTWait(ct, 40, &value), PTL_OK);
		t_eq(value.success, 40);
		t_eq(p_event(ni.eq, PTL_EVENT_PUT).initiator.rank, 0);
		t_eq(to[40], (char)(8 * 7));
		t_ptl(PtlLEUnlink(handle), PTL_OK);
	} else {
		md = p_md(&ni, from, LONG);
		procs_barrier();
		/* Goes when it is triggered. */
		t_ptl(PtlTriggeredPut(md, 0, 40, PTL_ACK_REQ, target, 0, 99, 32, NULL, 0, ct, 1),
		      PTL_OK);
		t_ptl(PtlTriggeredPut(md, 0, 40, PTL_ACK_REQ, target, 0, 99, 32, NULL, 0, ct, 2),
		      PTL_OK);
		p_no_event(ni.mine);
		t_ptl(PtlCTInc(ct, (ptl_ct_event_t){1, 0}), PTL_OK);
		t_eq(p_acked(&ni).mlength, 32);
		t_ptl(PtlCTCancelTriggered(ct), PTL_OK);
		/* The rest of the 40 bytes. */
		p_put(md, 8, target, 0, 0);
		p_acked(&ni);
		target.rank = 2;
		t_ptl(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, target, 0, 0, 0, NULL, 0), PTL_ARG_INVALID);
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	procs_barrier();
	t_ptl(PtlCTFree(ct), PTL_OK);
	while (PtlEQGet(ni.eq, &(ptl_event_t){0}) == PTL_OK)
		;
	part(&ni);
}

static void test_logical(void **state)
{
	(void)state;
	procs_run(2, nodes, logical, NULL);
}

/* ---- ends ---- */

/* The target dies: what waits for it ends with an event. */
static void death(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_me_t entry = p_me(to, 8, PTL_ME_OP_PUT);
	ptl_event_t event;
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		procs_put(K_READY, 1);
		procs_get(0, K_GO);
		raise(SIGKILL);
	}
	md = p_md(&ni, from, LONG);
	procs_get(1, K_READY);
	p_put(md, 8, peer, P_BITS, 0);
	t_eq(p_acked(&ni).ni_fail_type, PTL_NI_OK);
	procs_put(K_GO, 1);
	do {
		p_put(md, 8, peer, P_BITS, 0);
		event = p_acked(&ni);
	} while (!event.ni_fail_type);
	t_eq(event.ni_fail_type, PTL_NI_UNDELIVERABLE);
	t_ptl(PtlGet(md, 0, 8, peer, 0, P_BITS, 0, NULL), PTL_OK);
	t_eq(p_event(ni.mine, PTL_EVENT_REPLY).ni_fail_type, PTL_NI_UNDELIVERABLE);
	t_ptl(PtlMDRelease(md), PTL_OK);
	p_close(&ni);
}

static void test_death(void **state)
{
	(void)state;
	procs_start(2, nodes, death, NULL);
	procs_may_die(1);
	procs_finish();
}

/* The target closes its interface: what it doesn't answer ends, too. */
static void closed(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = meet(&ni, me, MATCHING, 0, 64);
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		p_close(&ni);
		procs_barrier();
		return;
	}
	md = p_md(&ni, from, LONG);
	procs_barrier();
	t_ptl(PtlPut(md, 0, 8, PTL_ACK_REQ, peer, 0, P_BITS, 0, NULL, 0), PTL_OK);
	p_event(ni.mine, PTL_EVENT_SEND);
	t_eq(p_event(ni.mine, PTL_EVENT_ACK).ni_fail_type, PTL_NI_UNDELIVERABLE);
	t_ptl(PtlMDRelease(md), PTL_OK);
	p_close(&ni);
}

static void test_closed(void **state)
{
	(void)state;
	/* A process that nobody can find is given up after this. */
	setenv("PORTALS_PARAMS", "connect_timeout=2", 1);
	procs_run(2, nodes, closed, NULL);
	unsetenv("PORTALS_PARAMS");
}

/* ---- which messages the HCA matches ---- */

#define ROUNDS 200

/* Puts to entries of one initiator that share one mask, each appended before its put. */
static void queue_target(struct p_ni *ni, ptl_process_t peer)
{
	ptl_me_t me = p_me(to, 5000,
			   PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
				   PTL_ME_EVENT_UNLINK_DISABLE);
	ptl_handle_me_t last = PTL_INVALID_HANDLE;
	ptl_event_t event;

	me.match_id = peer;
	me.ignore_bits = UINT64_C(0xf) << 60;
	p_append(ni, &me, PTL_PRIORITY_LIST, NULL);
	procs_barrier();
	for (int i = 0; i < ROUNDS; i++) {
		last = p_append(ni, &me, PTL_PRIORITY_LIST, NULL);
		event = p_event(ni->eq, PTL_EVENT_PUT);
		t_eq(event.hdr_data, 5000);
		t_eq(event.match_bits >> 60, i % 16);
		t_eq(to[4999], (char)(4999 * 7));
		procs_put(K_GO, (uint64_t)i + 1);
	}
	t_ptl(PtlMEUnlink(last), PTL_OK);
}

static void queue(unsigned me, void *arg)
{
	const char *log = arg;
	int saved = dup(STDERR_FILENO);
	ptl_process_t peer;
	ptl_handle_md_t md;
	struct p_ni ni;
	unsigned long direct = 0, all = 0;
	char line[256];
	FILE *file;

	setenv("PORTALS_LOG", "info", 1);
	peer = meet(&ni, me, MATCHING, 0, 64);
	if (me) {
		queue_target(&ni, peer);
		file = fopen(log, "w+");
		t_holds(file);
		t_holds(dup2(fileno(file), STDERR_FILENO) >= 0);
		p_close(&ni);
		t_holds(dup2(saved, STDERR_FILENO) >= 0);
		rewind(file);
		while (fgets(line, sizeof(line), file))
			sscanf(line, "%*s The HCA has matched %lu of %lu", &direct, &all);
		fclose(file);
		t_true(direct > ROUNDS / 2 && all >= ROUNDS, "the HCA has matched %lu of %lu",
		       direct, all);
		procs_barrier();
		return;
	}
	md = p_md(&ni, from, LONG);
	procs_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		p_put(md, 5000, peer, P_BITS | i << 60, 0);
		p_acked(&ni);
		procs_wait_for(1, K_GO, i + 1);
	}
	t_ptl(PtlMDRelease(md), PTL_OK);
	part(&ni);
}

static void test_queue(void **state)
{
	char log[] = "/tmp/portals-XXXXXX";
	int fd = mkstemp(log);

	(void)state;
	t_holds(fd >= 0);
	close(fd);
	procs_run(2, nodes, queue, log);
	unlink(log);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),      cmocka_unit_test(test_places),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_pieces),   cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_flow),     cmocka_unit_test(test_logical),
		cmocka_unit_test(test_queue),    cmocka_unit_test(test_death),
		cmocka_unit_test(test_closed),
	};

	if (argc > 1 && !strcmp(argv[1], "alone"))
		nodes[1] = 0;
	return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
