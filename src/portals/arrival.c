/* SPDX-License-Identifier: BSD-3-Clause */
#include "arrival.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "atomic.h"
#include "ct.h"
#include "entry.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "map.h"
#include "ni.h"
#include "response.h"

/* Events of the operations; those of unexpected messages follow. */
static const ptl_event_kind_t kinds[] = {
	[P4_PUT] = PTL_EVENT_PUT,           [P4_GET] = PTL_EVENT_GET,
	[P4_ATOMIC] = PTL_EVENT_ATOMIC,     [P4_FETCH] = PTL_EVENT_FETCH_ATOMIC,
	[P4_SWAP] = PTL_EVENT_FETCH_ATOMIC,
};

static ptl_event_t event_of(const struct p4_arrival *arrival, ptl_event_kind_t type, void *user_ptr,
			    ptl_ni_fail_t fail)
{
	const struct p4_wire_request *req = &arrival->req;

	return (ptl_event_t){
		.start = arrival->start,
		.user_ptr = user_ptr,
		.hdr_data = req->hdr_data,
		.match_bits = arrival->bits,
		.rlength = req->rlength,
		.mlength = arrival->mlength,
		.remote_offset = req->remote_offset,
		.initiator = p4_map_id(arrival->pt->ni, req->nid, req->pid),
		.uid = req->uid,
		.pt_index = arrival->pt->index,
		.type = type,
		.ptl_list = arrival->list,
		.ni_fail_type = fail,
		.atomic_operation = req->operation,
		.atomic_type = req->datatype,
	};
}

static void count(const struct p4_arrival *arrival, ptl_handle_ct_t handle, unsigned options,
		  ptl_ni_fail_t fail)
{
	struct p4_ct *ct = p4_handle_get(handle, P4_CT);

	if (fail)
		p4_ct_add(ct, 0, 1);
	else
		p4_ct_add(ct, options & PTL_ME_EVENT_CT_BYTES ? arrival->mlength : 1, 0);
}

/* ---- the unexpected list ---- */

/* Posts the event of an entry or a search that has found the message. */
static void post_hit(struct p4_arrival *arrival, const struct p4_entry *finder,
		     ptl_event_kind_t type, ptl_ni_fail_t fail)
{
	ptl_event_t event = event_of(arrival, type, finder->user_ptr, fail);
	unsigned disable =
		(type == PTL_EVENT_SEARCH ? PTL_ME_EVENT_COMM_DISABLE : PTL_ME_EVENT_OVER_DISABLE) |
		(fail ? 0 : PTL_ME_EVENT_SUCCESS_DISABLE);

	if (!(finder->options & disable))
		p4_pt_event(arrival->pt, &event);
	if (finder->options & PTL_ME_EVENT_CT_OVERFLOW)
		count(arrival, finder->ct, finder->options, fail);
}

static ptl_event_kind_t overflow_kind(const struct p4_arrival *arrival)
{
	return kinds[arrival->req.kind] + 1;
}

/* Takes the arrival's length off a locally managed entry that has found the arrival, if its options
 * want that. Returns true if the entry has too little left. */
static bool use_up(struct p4_entry *entry, const struct p4_arrival *arrival)
{
	if ((entry->options & (PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH)) !=
	    (PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH))
		return false;
	entry->offset += arrival->req.rlength;
	if (entry->offset > entry->region.length)
		entry->offset = entry->region.length;
	return entry->min_free && entry->region.length - entry->offset < entry->min_free;
}

/* Lets the overflow entry forget a message whose data are there, and which an entry has found. */
static void forget_header(struct p4_arrival *arrival)
{
	struct p4_entry *entry = arrival->entry;

	arrival->pt->nheaders--;
	entry->nheaders--;
	arrival->entry = NULL;
	p4_entry_try_free(entry);
}

/* Ends the wait of the entry that has found the message, whose data are there. */
static void end_hit(struct p4_arrival *arrival)
{
	struct p4_entry *finder = arrival->hit.entry;

	arrival->hit.entry = NULL;
	post_hit(arrival, finder, overflow_kind(arrival), arrival->fail);
	forget_header(arrival);
	p4_entry_release(finder);
	p4_entry_try_free(finder);
}

enum tq_verdict p4_arrival_decide_hit(struct p4_arrival *arrival, struct p4_entry *entry,
				      struct tq_take *take)
{
	bool once = entry->options & PTL_ME_USE_ONCE;

	p4_assert_held();
	if (!p4_entry_fits(entry, &arrival->req, arrival->bits))
		return TQ_PASS;
	entry->nfound++;
	if (entry->search == P4_SEARCH_ONLY) {
		post_hit(arrival, entry, PTL_EVENT_SEARCH, PTL_NI_OK);
		return once ? TQ_STOP : TQ_PASS;
	}
	if (use_up(entry, arrival))
		once = true;
	if (once)
		p4_entry_leave(entry, P4_ENTRY_USED_UP);
	entry->nbusy++;
	arrival->hit.entry = entry;
	if (arrival->stored)
		end_hit(arrival);
	take->user = &arrival->hit;
	return once ? TQ_TAKE : TQ_TAKE_STAY;
}

static void arrival_free(struct p4_arrival *arrival)
{
	if (arrival->header)
		DL_DELETE(arrival->pt->ni->headers, arrival);
	free(arrival->data);
	free(arrival);
}

void p4_arrivals_destroy(struct p4_ni *ni)
{
	p4_assert_held();
	while (ni->headers)
		arrival_free(ni->headers);
}

void p4_arrival_leave_list(struct p4_arrival *arrival)
{
	p4_assert_held();
	arrival->left_list = true;
	if (arrival->stored)
		arrival_free(arrival);
}

/* ---- operations ---- */

/* Ends the arrival, unless it is in the unexpected list. */
static void end(struct p4_arrival *arrival)
{
	struct p4_entry *entry = arrival->entry;
	struct p4_pt *pt = arrival->pt;
	struct p4_eq *eq = p4_handle_get(pt->eq, P4_EQ);
	bool taken = entry;

	if (entry)
		p4_entry_release(entry);
	if (eq)
		eq->reserved -= arrival->reserved;
	arrival->stored = true;
	if (arrival->hit.entry)
		end_hit(arrival);
	else if (entry && !arrival->header)
		p4_entry_try_free(entry);
	if (!arrival->header || arrival->left_list)
		arrival_free(arrival);
	p4_pt_release(pt, taken);
}

static void post_comm(struct p4_arrival *arrival)
{
	struct p4_entry *entry = arrival->entry;
	ptl_event_t event =
		event_of(arrival, kinds[arrival->req.kind], entry->user_ptr, arrival->fail);

	if (!(entry->options & PTL_ME_EVENT_COMM_DISABLE) &&
	    (arrival->fail || !(entry->options & PTL_ME_EVENT_SUCCESS_DISABLE)))
		p4_pt_event(arrival->pt, &event);
	if (entry->options & PTL_ME_EVENT_CT_COMM)
		count(arrival, entry->ct, entry->options, arrival->fail);
}

/* Changes the entry's memory, which may be pieces, and stores its old contents in `old`, unless
 * `old` is NULL. */
static void change(struct p4_arrival *arrival, void *old)
{
	const struct p4_wire_request *req = &arrival->req;
	const struct p4_region *region = &arrival->entry->region;
	const char *operand = req->kind == P4_SWAP ? arrival->data : NULL;
	const char *data = (char *)arrival->data + (operand ? P4_OPERAND : 0);
	size_t size = p4_atomic_type_size(req->datatype), n;
	union arith_item before = {.bytes = {0}}, after;

	for (ptl_size_t at = 0; at < arrival->mlength; at += n) {
		n = arrival->mlength - at < size ? arrival->mlength - at : size;
		/* Half an item at the end of the entry can't be computed with. */
		if (n < size && req->operation != PTL_SWAP)
			break;
		p4_region_read(region, arrival->offset + at, &before, n);
		if (old)
			memcpy((char *)old + at, &before, n);
		after = before;
		if (n == size)
			p4_atomic_item(&after, data + at, operand, req->operation, req->datatype);
		else
			memcpy(&after, data + at, n);
		p4_region_write(region, arrival->offset + at, &after, n);
	}
}

/* Ends a get, fetch or swap, whose reply was sent, or could not be sent (`error`). */
static void on_replied(struct p4_arrival *arrival, int error)
{
	p4_assert_held();
	/* An atomic operation was carried out, whatever became of its reply. */
	if (error && arrival->req.kind == P4_GET)
		arrival->fail = PTL_NI_UNDELIVERABLE;
	post_comm(arrival);
	end(arrival);
}

/* Sends the reply, with the data in `buf`; the operation's event follows its end. */
static void reply(struct p4_arrival *arrival, struct tq_buf buf)
{
	if (!p4_response_start(arrival, &buf, on_replied))
		on_replied(arrival, -EIO);
}

static void fetch(struct p4_arrival *arrival)
{
	void *old = calloc(1, arrival->mlength + 1);

	if (!old) {
		arrival->fail = PTL_NI_DROPPED;
		arrival->mlength = 0;
	} else {
		change(arrival, old);
	}
	free(arrival->data);
	arrival->data = old;
	reply(arrival, (struct tq_buf){.addr = old, .len = arrival->mlength});
}

/* Answers a message that nothing was done with. */
static void refuse(struct p4_arrival *arrival)
{
	struct p4_ni *ni = arrival->pt->ni;

	arrival->mlength = 0;
	if (arrival->fail == PTL_NI_PERM_VIOLATION)
		ni->status[PTL_SR_PERMISSION_VIOLATIONS]++;
	else if (arrival->fail == PTL_NI_OP_VIOLATION)
		ni->status[PTL_SR_OPERATION_VIOLATIONS]++;
	else
		ni->status[PTL_SR_DROP_COUNT]++;
	p4_response_start(arrival, NULL, NULL);
	if (arrival->entry)
		post_comm(arrival);
	end(arrival);
}

void p4_arrival_finish(struct p4_arrival *arrival, int error)
{
	p4_assert_held();
	if (error && !arrival->fail)
		arrival->fail = PTL_NI_UNDELIVERABLE;
	if (arrival->fail) {
		refuse(arrival);
		return;
	}
	switch (arrival->req.kind) {
	case P4_GET:
		reply(arrival, p4_region_buf(&arrival->entry->region, arrival->offset,
					     arrival->mlength, &arrival->window));
		return;
	case P4_FETCH:
	case P4_SWAP:
		fetch(arrival);
		return;
	case P4_ATOMIC:
		change(arrival, NULL);
		break;
	}
	post_comm(arrival);
	p4_response_start(arrival, NULL, NULL);
	end(arrival);
}
