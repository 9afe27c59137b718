/* SPDX-License-Identifier: BSD-3-Clause */
#include "portals.h"

#define KEY 200 /* of ids in the mailbox */

struct p_ni p_open(unsigned options, unsigned pt_options, ptl_size_t events)
{
	struct p_ni ni;
	ptl_pt_index_t index;

	t_ptl_ok(PtlInit());
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni.ni));
	t_ptl_ok(PtlEQAlloc(ni.ni, events, &ni.eq));
	t_ptl_ok(PtlEQAlloc(ni.ni, 64, &ni.mine));
	t_ptl_ok(PtlPTAlloc(ni.ni, pt_options, ni.eq, 0, &index));
	t_eq(index, 0);
	t_ptl_ok(PtlGetPhysId(ni.ni, &ni.id));
	return ni;
}

void p_close(struct p_ni *ni)
{
	t_ptl_ok(PtlPTFree(ni->ni, 0));
	t_ptl_ok(PtlEQFree(ni->eq));
	t_ptl_ok(PtlEQFree(ni->mine));
	t_ptl_ok(PtlNIFini(ni->ni));
	PtlFini();
}

void p_publish(const struct p_ni *ni)
{
	procs_put(KEY, (uint64_t)ni->id.phys.nid << 32 | ni->id.phys.pid);
}

ptl_process_t p_id_of(unsigned who)
{
	uint64_t value = procs_get(who, KEY);

	return (ptl_process_t){.phys = {(ptl_nid_t)(value >> 32), (ptl_pid_t)value}};
}

ptl_event_t p_event(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
	ptl_event_t event = {0};
	unsigned which;

	t_ptl_ok(PtlEQPoll(&eq, 1, P_WAIT, &event, &which));
	t_eq(event.type, type);
	return event;
}

void p_no_event(ptl_handle_eq_t eq)
{
	ptl_event_t event;

	t_ptl(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
}

ptl_me_t p_me(void *start, ptl_size_t length, unsigned options)
{
	return (ptl_me_t){
		.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = options,
		.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
		.match_bits = P_BITS,
	};
}

ptl_handle_me_t p_append(struct p_ni *ni, const ptl_me_t *me, ptl_list_t list, void *user_ptr)
{
	ptl_handle_me_t handle;

	t_ptl_ok(PtlMEAppend(ni->ni, 0, me, list, user_ptr, &handle));
	return handle;
}

ptl_handle_md_t p_md(struct p_ni *ni, void *start, ptl_size_t length)
{
	ptl_md_t md = {
		.start = start, .length = length, .eq_handle = ni->mine, .ct_handle = PTL_CT_NONE};
	ptl_handle_md_t handle;

	t_ptl_ok(PtlMDBind(ni->ni, &md, &handle));
	return handle;
}

void p_put(ptl_handle_md_t md, ptl_size_t length, ptl_process_t to, ptl_match_bits_t bits,
	   ptl_size_t remote_offset)
{
	t_ptl_ok(PtlPut(md, 0, length, PTL_ACK_REQ, to, 0, bits, remote_offset, NULL, length));
}

ptl_event_t p_acked(struct p_ni *ni)
{
	p_event(ni->mine, PTL_EVENT_SEND);
	return p_event(ni->mine, PTL_EVENT_ACK);
}
