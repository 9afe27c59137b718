/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rules.c - rules between two processes: the overflow list, flow control, interfaces by rank,
 * ends, and which messages the HCA matches.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../caught.h"
#include "pair.h"

enum { K_READY = 10, K_GO };

/* ---- the overflow list ---- */

static void overflow(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_me_t block = p_me(pair_to, 1000, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL);
	ptl_me_t entry = p_me(pair_to + 2000, 100, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
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
		t_holds(event.start == pair_to);
		t_eq(event.mlength, 100);
		p_event(ni.eq, PTL_EVENT_AUTO_UNLINK);
		t_eq(pair_to[99], (char)(99 * 7));
		/* The block is free when its last header is gone. */
		entry.match_bits = 8;
		t_ptl(PtlMESearch(ni.ni, 0, &entry, PTL_SEARCH_DELETE, "search"), PTL_OK);
		event = p_event(ni.eq, PTL_EVENT_PUT_OVERFLOW);
		t_str_eq(event.user_ptr, "search");
		t_holds(event.start == pair_to + 100);
		t_str_eq(p_event(ni.eq, PTL_EVENT_AUTO_FREE).user_ptr, "block");
		p_no_event(ni.eq);
	} else {
		md = p_md(&ni, pair_from, PAIR_LONG);
		procs_barrier();
		p_put(md, 100, peer, P_BITS, 0);
		t_eq(p_acked(&ni).ptl_list, PTL_OVERFLOW_LIST);
		p_put(md, 100, peer, 8, 0);
		p_acked(&ni);
		t_ptl(PtlMDRelease(md), PTL_OK);
	}
	pair_part(&ni);
}

static void test_overflow(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, overflow, NULL);
}

/* ---- flow control ---- */

static void flow(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, PTL_PT_FLOWCTRL, 8);
	ptl_me_t entry = p_me(pair_to, PAIR_LONG, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
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
		md = p_md(&ni, pair_from, PAIR_LONG);
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
	pair_part(&ni);
}

static void test_flow(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, flow, NULL);
}

/* ---- interfaces without matching, by rank ---- */

static void logical(unsigned me, void *arg)
{
	ptl_process_t map[2], target = {.rank = 1};
	ptl_handle_ct_t ct;
	ptl_ct_event_t value;
	ptl_le_t le = {.start = pair_to,
		       .length = 64,
		       .uid = PTL_UID_ANY,
		       .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_CT_BYTES};
	ptl_handle_le_t handle;
	ptl_handle_md_t md;
	struct p_ni ni;

	(void)arg;
	map[1 - me] = pair_meet(&ni, me, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, 0, 64);
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
		t_eq(pair_to[40], (char)(8 * 7));
		t_ptl(PtlLEUnlink(handle), PTL_OK);
	} else {
		md = p_md(&ni, pair_from, PAIR_LONG);
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
	pair_part(&ni);
}

static void test_logical(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, logical, NULL);
}

/* ---- ends ---- */

/* The target dies: what waits for it ends with an event. */
static void death(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_me_t entry = p_me(pair_to, 8, PTL_ME_OP_PUT);
	ptl_event_t event;
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		p_append(&ni, &entry, PTL_PRIORITY_LIST, NULL);
		procs_put(K_READY, 1);
		procs_get(0, K_GO);
		raise(SIGKILL);
	}
	md = p_md(&ni, pair_from, PAIR_LONG);
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
	procs_start(2, pair_nodes, death, NULL);
	procs_may_die(1);
	procs_finish();
}

/* The target closes its interface: what it doesn't answer ends, too. */
static void closed(unsigned me, void *arg)
{
	struct p_ni ni;
	ptl_process_t peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	ptl_handle_md_t md;

	(void)arg;
	if (me) {
		p_close(&ni);
		procs_barrier();
		return;
	}
	md = p_md(&ni, pair_from, PAIR_LONG);
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
	procs_run(2, pair_nodes, closed, NULL);
	unsetenv("PORTALS_PARAMS");
}

/* ---- which messages the HCA matches ---- */

#define ROUNDS 200

/* Puts to entries of one initiator that share one mask, each appended before its put. */
static void queue_target(struct p_ni *ni, ptl_process_t peer)
{
	ptl_me_t me = p_me(pair_to, 5000,
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
		t_eq(pair_to[4999], (char)(4999 * 7));
		procs_put(K_GO, (uint64_t)i + 1);
	}
	t_ptl(PtlMEUnlink(last), PTL_OK);
}

/* The messages of the report at the end of a process: those that the HCA has matched, and all. */
struct report {
	unsigned long direct, all;
};

/* Ends an interface. Returns what the log reports then. */
static struct report close_reported(struct p_ni *ni)
{
	static const char sentence[] = "The HCA has matched ";
	struct report report = {0, 0};
	struct t_caught caught;
	const char *found;

	t_catch(&caught);
	p_close(ni);
	found = strstr(t_caught_end(&caught), sentence);
	t_true(found && sscanf(found + strlen(sentence), "%lu of %lu", &report.direct,
			       &report.all) == 2,
	       "there is no report, but: %s", caught.text);
	return report;
}

static void queue(unsigned me, void *arg)
{
	struct report report;
	ptl_process_t peer;
	ptl_handle_md_t md;
	struct p_ni ni;

	(void)arg;
	setenv("PORTALS_LOG", "info", 1);
	/* Both processes are on one node, whose shared memory would take the messages. */
	setenv("PORTALS_PARAMS", "intranode=hca", 1);
	peer = pair_meet(&ni, me, PAIR_MATCHING, 0, 64);
	if (me) {
		queue_target(&ni, peer);
		report = close_reported(&ni);
		t_eq(report.all, ROUNDS);
		t_true(report.direct > ROUNDS / 2, "the HCA has matched %lu of %lu", report.direct,
		       report.all);
		procs_barrier();
		return;
	}
	md = p_md(&ni, pair_from, PAIR_LONG);
	procs_barrier();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		p_put(md, 5000, peer, P_BITS | i << 60, 0);
		p_acked(&ni);
		procs_wait_for(1, K_GO, i + 1);
	}
	t_ptl(PtlMDRelease(md), PTL_OK);
	procs_barrier();
	/* Acknowledgements are no messages to an entry. */
	report = close_reported(&ni);
	t_eq(report.all, 0);
}

static void test_queue(void **state)
{
	(void)state;
	procs_run(2, pair_nodes, queue, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overflow), cmocka_unit_test(test_flow),
		cmocka_unit_test(test_logical),  cmocka_unit_test(test_queue),
		cmocka_unit_test(test_death),    cmocka_unit_test(test_closed),
	};

	pair_arguments(argc, argv);
	return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
