/* SPDX-License-Identifier: BSD-3-Clause */
/* side.c - see side.h. */
#include "side.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K_ID };

static const char *const event_names[] = {
	[PTL_EVENT_GET] = "GET",
	[PTL_EVENT_GET_OVERFLOW] = "GET_OVERFLOW",
	[PTL_EVENT_PUT] = "PUT",
	[PTL_EVENT_PUT_OVERFLOW] = "PUT_OVERFLOW",
	[PTL_EVENT_ATOMIC] = "ATOMIC",
	[PTL_EVENT_ATOMIC_OVERFLOW] = "ATOMIC_OVERFLOW",
	[PTL_EVENT_FETCH_ATOMIC] = "FETCH_ATOMIC",
	[PTL_EVENT_FETCH_ATOMIC_OVERFLOW] = "FETCH_ATOMIC_OVERFLOW",
	[PTL_EVENT_REPLY] = "REPLY",
	[PTL_EVENT_SEND] = "SEND",
	[PTL_EVENT_ACK] = "ACK",
	[PTL_EVENT_PT_DISABLED] = "PT_DISABLED",
	[PTL_EVENT_LINK] = "LINK",
	[PTL_EVENT_AUTO_UNLINK] = "AUTO_UNLINK",
	[PTL_EVENT_AUTO_FREE] = "AUTO_FREE",
	[PTL_EVENT_SEARCH] = "SEARCH",
};

static const char *event_name(ptl_event_kind_t type)
{
	return type < sizeof(event_names) / sizeof(*event_names) ? event_names[type] : "unknown";
}

/* Finds the options of the interfaces of that kind. Returns false if there is no such kind. */
static bool find_options(const char *kind, unsigned *options)
{
	static const struct {
		const char *name;
		unsigned options;
	} kinds[] = {{"physical", SIDE_MATCHING}, {"logical", SIDE_LOGICAL}, {"lists", SIDE_LISTS}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kind, kinds[i].name) != 0)
			continue;
		*options = kinds[i].options;
		return true;
	}
	return false;
}

void side_alone(procs_fn fn)
{
	procs_run(1, NULL, fn, NULL);
}

void side_arguments(int argc, char **argv, unsigned *options, unsigned nodes[], unsigned n)
{
	bool apart = argc == 3 && !strcmp(argv[2], "2");

	if (argc != 3 || !find_options(argv[1], options) || !(apart || !strcmp(argv[2], "1"))) {
		fprintf(stderr, "Usage: %s physical|logical|lists 1|2\n", argv[0]);
		exit(2);
	}
	for (unsigned i = 0; i < n; i++)
		nodes[i] = apart && i % 2;
}

void side_open_limits(struct side *side, unsigned me, unsigned n, unsigned options,
		      const ptl_ni_limits_t *desired)
{
	ptl_process_t own;

	*side = (struct side){.me = me, .n = n, .options = options};
	t_ptl_ok(PtlInit());
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, desired, &side->limits,
			   &side->ni));
	t_ptl_ok(PtlGetPhysId(side->ni, &own));
	procs_put(K_ID, (uint64_t)own.phys.nid << 32 | own.phys.pid);
	for (unsigned i = 0; i < n; i++) {
		uint64_t id = procs_get(i, K_ID);

		side->ids[i].phys.nid = (ptl_nid_t)(id >> 32);
		side->ids[i].phys.pid = (ptl_pid_t)id;
	}
	if (options & PTL_NI_LOGICAL)
		t_ptl_ok(PtlSetMap(side->ni, n, side->ids));
	t_ptl_ok(PtlEQAlloc(side->ni, SIDE_EVENTS, &side->eq));
	procs_barrier();
}

void side_open(struct side *side, unsigned me, unsigned n, unsigned options)
{
	side_open_limits(side, me, n, options, NULL);
}

void side_table(struct side *side, unsigned pt_options)
{
	t_ptl_ok(PtlPTAlloc(side->ni, pt_options, side->eq, SIDE_PT, &side->pt));
	t_eq(side->pt, SIDE_PT);
	procs_barrier();
}

void side_leave(struct side *side)
{
	t_ptl_ok(PtlNIFini(side->ni));
	PtlFini();
}

void side_close(struct side *side)
{
	procs_barrier();
	side_leave(side);
}

ptl_process_t side_id(const struct side *side, unsigned who)
{
	if (side->options & PTL_NI_LOGICAL)
		return (ptl_process_t){.rank = who};
	return side->ids[who];
}

ptl_process_t side_any(const struct side *side)
{
	ptl_process_t any = {.phys = {PTL_NID_ANY, PTL_PID_ANY}};

	if (side->options & PTL_NI_LOGICAL)
		any.rank = PTL_RANK_ANY;
	return any;
}

bool side_is_from(const struct side *side, const ptl_event_t *event, unsigned who)
{
	if (side->options & PTL_NI_LOGICAL)
		return event->initiator.rank == who;
	return event->initiator.phys.nid == side->ids[who].phys.nid &&
	       event->initiator.phys.pid == side->ids[who].phys.pid;
}

ptl_handle_md_t side_md(struct side *side, void *start, size_t length, unsigned options,
			ptl_handle_eq_t eq, ptl_handle_ct_t ct)
{
	const ptl_md_t md = {.start = start,
			     .length = length,
			     .options = options,
			     .eq_handle = eq,
			     .ct_handle = ct};
	ptl_handle_md_t handle;

	t_ptl_ok(PtlMDBind(side->ni, &md, &handle));
	return handle;
}

void side_release(ptl_handle_md_t md)
{
	uint64_t start = t_now();
	int rc;

	while ((rc = PtlMDRelease(md)) == PTL_IN_USE)
		t_true(t_ms_since(start) < SIDE_TIMEOUT, "the memory descriptor stays in use");
	t_eq(rc, PTL_OK);
}

ptl_handle_ct_t side_ct(struct side *side)
{
	ptl_handle_ct_t ct;

	t_ptl_ok(PtlCTAlloc(side->ni, &ct));
	return ct;
}

ptl_me_t side_me(struct side *side, void *start, size_t length, ptl_match_bits_t bits,
		 unsigned options)
{
	return (ptl_me_t){
		.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = options,
		.match_id = side_any(side),
		.match_bits = bits,
	};
}

ptl_handle_me_t side_append(struct side *side, const ptl_me_t *me, ptl_list_t list, void *user_ptr)
{
	ptl_handle_me_t handle;
	ptl_event_t event;

	t_ptl_ok(PtlMEAppend(side->ni, side->pt, me, list, user_ptr, &handle));
	if (!(me->options & PTL_ME_EVENT_LINK_DISABLE)) {
		event = side_event(side->eq, PTL_EVENT_LINK);
		t_holds(event.user_ptr == user_ptr);
		t_eq(event.ptl_list, list);
		t_eq(event.pt_index, side->pt);
	}
	return handle;
}

ptl_event_t side_any_event(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
	ptl_event_t event = {.type = 0xff};
	unsigned which = 99;
	int rc = PtlEQPoll(&eq, 1, SIDE_TIMEOUT, &event, &which);

	if (rc != PTL_OK)
		t_fail("PtlEQPoll() returned %d instead of event %s", rc, event_name(type));
	t_eq(which, 0);
	if (event.type != type)
		t_fail("event %s with ni_fail_type %d instead of %s", event_name(event.type),
		       event.ni_fail_type, event_name(type));
	return event;
}

ptl_event_t side_failure(ptl_handle_eq_t eq, ptl_event_kind_t type, ptl_ni_fail_t fail)
{
	ptl_event_t event = side_any_event(eq, type);

	if (event.ni_fail_type != fail)
		t_fail("event %s with ni_fail_type %d, not %d", event_name(type),
		       event.ni_fail_type, fail);
	return event;
}

ptl_event_t side_event(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
	return side_failure(eq, type, PTL_NI_OK);
}

void side_no_event(ptl_handle_eq_t eq)
{
	ptl_event_t event;
	int rc = PtlEQGet(eq, &event);

	if (rc == PTL_OK)
		t_fail("unexpected event %s with ni_fail_type %d", event_name(event.type),
		       event.ni_fail_type);
	t_eq(rc, PTL_EQ_EMPTY);
}

void side_count(ptl_handle_ct_t ct, ptl_size_t successes)
{
	ptl_ct_event_t count;
	unsigned which;

	t_ptl_ok(PtlCTPoll(&ct, &successes, 1, SIDE_TIMEOUT, &count, &which));
	t_eq(count.failure, 0);
	t_eq(count.success, successes);
}

uint8_t side_byte(unsigned seed, size_t offset)
{
	return (uint8_t)(seed * 131 + offset * 7 + (offset >> 8) + 1);
}

void side_fill(void *data, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)data)[i] = side_byte(seed, i);
}

void side_check(const void *data, size_t length, unsigned seed, size_t offset)
{
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = ((const uint8_t *)data)[i];

		if (byte != side_byte(seed, offset + i))
			t_fail("byte %zu of %zu is 0x%02x, not 0x%02x", i, length, byte,
			       side_byte(seed, offset + i));
	}
}
