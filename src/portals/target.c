/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "arrival.h"
#include "atomic.h"
#include "ct.h"
#include "entry.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "ni.h"

static struct p4_wire_request decode(const void *header)
{
	struct p4_wire_request req;

	memcpy(&req, header, sizeof(req));
	req.hdr_data = le64toh(req.hdr_data);
	req.remote_offset = le64toh(req.remote_offset);
	req.rlength = le64toh(req.rlength);
	req.uid = le32toh(req.uid);
	req.nid = le32toh(req.nid);
	req.pid = le32toh(req.pid);
	return req;
}

/* Returns true if the request's kind, lengths, operation and datatype are valid. */
static bool is_sane(const struct p4_wire_request *req, uint64_t length)
{
	bool swap = req->kind == P4_SWAP;

	switch (req->kind) {
	case P4_PUT:
		return length == req->rlength;
	case P4_GET:
		return !length;
	case P4_ATOMIC:
	case P4_FETCH:
	case P4_SWAP:
		return req->rlength <= P4_ATOMIC_MAX &&
		       length == req->rlength + (swap ? P4_OPERAND : 0) &&
		       p4_atomic_is_valid(req->operation, req->datatype) &&
		       swap == (req->operation >= PTL_SWAP);
	}
	return false;
}

/* Returns true if the request names the process that has sent it, to which the answer goes. */
static bool is_genuine(const struct p4_wire_request *req, const struct tq_envelope *envelope)
{
	return p4_peer_is_sender(req->nid, req->pid, envelope);
}

/* ---- which entry takes a message ---- */

/* Returns PTL_NI_OK if the entry permits the operation, or the violation. */
static ptl_ni_fail_t violation_of(const struct p4_entry *entry, const struct p4_wire_request *req)
{
	unsigned needs = req->kind == P4_PUT || req->kind == P4_ATOMIC ? PTL_ME_OP_PUT
			 : req->kind == P4_GET                         ? PTL_ME_OP_GET
					       : PTL_ME_OP_PUT | PTL_ME_OP_GET;

	if (entry->uid != PTL_UID_ANY && entry->uid != req->uid)
		return PTL_NI_PERM_VIOLATION;
	return (entry->options & needs) == needs ? PTL_NI_OK : PTL_NI_OP_VIOLATION;
}

/* Returns how many events the message may cause at its entry, for which flow control needs room. */
static unsigned events_of(const struct p4_entry *entry)
{
	unsigned needs = 0;

	if (!(entry->pt->options & PTL_PT_FLOWCTRL))
		return 0;
	if (!(entry->options & (PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE)))
		needs++;
	if ((entry->options & PTL_ME_USE_ONCE) && !(entry->options & PTL_ME_EVENT_UNLINK_DISABLE))
		needs++;
	return needs;
}

/* Returns true if flow control allows one more message for the entry. */
static bool has_resources(const struct p4_entry *entry)
{
	struct p4_eq *eq = p4_handle_get(entry->pt->eq, P4_EQ);
	unsigned needs = events_of(entry);

	return !needs || !eq || p4_eq_room(eq) >= needs + eq->reserved;
}

/* Fills in the memory that the message's data go to. Returns false without memory. */
static bool place(struct p4_arrival *arrival, struct tq_take *take)
{
	struct p4_entry *entry = arrival->entry;
	uint64_t length = arrival->req.rlength;

	take->buf = (struct tq_buf){0};
	switch (arrival->req.kind) {
	case P4_PUT:
		take->buf = p4_region_buf(&entry->region, arrival->offset, arrival->mlength,
					  &arrival->window);
		return true;
	case P4_GET:
		return true;
	case P4_SWAP:
		length += P4_OPERAND;
		break;
	}
	if (!length)
		return true;
	arrival->data = malloc(length);
	take->buf = (struct tq_buf){.addr = arrival->data, .len = length};
	return arrival->data;
}

/* Lets the entry take a message: reserves its place, and takes the entry out of its list if this
 * message is its last. */
static void enter(struct p4_arrival *arrival, struct p4_entry *entry)
{
	ptl_size_t room = p4_entry_room(entry, &arrival->req, &arrival->offset);
	struct p4_eq *eq = p4_handle_get(entry->pt->eq, P4_EQ);

	arrival->entry = entry;
	arrival->list = entry->list;
	arrival->mlength = arrival->req.rlength < room ? arrival->req.rlength : room;
	arrival->start = p4_region_at(&entry->region, arrival->offset);
	arrival->reserved = events_of(entry);
	if (arrival->reserved && eq)
		eq->reserved += arrival->reserved;
	entry->nbusy++;
	entry->pt->ntaken++;
	if (entry->options & PTL_ME_MANAGE_LOCAL)
		entry->offset += arrival->mlength;
	if ((entry->options & PTL_ME_USE_ONCE) ||
	    ((entry->options & PTL_ME_MANAGE_LOCAL) && entry->min_free &&
	     entry->region.length - entry->offset < entry->min_free))
		p4_entry_leave(entry, P4_ENTRY_USED_UP);
}

/* Makes the arrival of a message. If `entry` isn't NULL it takes the message, unless that fails. */
static struct p4_arrival *arrive(struct p4_pt *pt, struct p4_entry *entry,
				 const struct p4_wire_request *req, ptl_match_bits_t bits,
				 ptl_ni_fail_t fail, struct tq_take *take)
{
	struct p4_arrival *arrival = calloc(1, sizeof(*arrival));

	if (!arrival)
		return NULL;
	arrival->tag = P4_TAG_ARRIVAL;
	arrival->hit.tag = P4_TAG_HIT;
	arrival->pt = pt;
	arrival->req = *req;
	arrival->bits = bits;
	arrival->fail = fail;
	pt->nbusy++;
	if (!fail && entry) {
		enter(arrival, entry);
		if (!place(arrival, take))
			arrival->fail = PTL_NI_DROPPED;
	}
	take->user = arrival;
	return arrival;
}

static enum tq_verdict match_live(struct p4_entry *entry, const struct tq_envelope *envelope,
				  struct tq_take *take)
{
	const struct p4_wire_request req = decode(envelope->header);
	struct p4_pt *pt = entry->pt;
	struct p4_arrival *arrival;
	ptl_ni_fail_t fail;

	if (entry->search || !pt->enabled || pt->ni->closing || !is_genuine(&req, envelope) ||
	    !is_sane(&req, envelope->length) || !p4_entry_fits(entry, &req, envelope->bits))
		return TQ_PASS;
	fail = violation_of(entry, &req);
	if (!fail && !has_resources(entry)) {
		p4_pt_disable_exhausted(pt);
		return TQ_PASS; /* disabled now, so no entry takes it */
	}
	p4_entry_post_link(entry);
	take->buf = (struct tq_buf){0};
	arrival = arrive(pt, entry, &req, envelope->bits, fail, take);
	if (!arrival)
		return TQ_PASS;
	return entry->state == P4_ENTRY_USED_UP ? TQ_TAKE : TQ_TAKE_STAY;
}

static enum tq_verdict match(void *arg, void *user, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	struct p4_entry *entry = user;
	enum tq_verdict verdict;

	(void)arg;
	p4_lock();
	if (envelope->taken)
		verdict = p4_arrival_decide_hit(envelope->taken, entry, take);
	else
		verdict = match_live(entry, envelope, take);
	p4_unlock();
	return verdict;
}

/* ---- messages that no entry of the priority list takes ---- */

/* Returns the first entry of the overflow list that fits. */
static struct p4_entry *find_overflow(struct p4_pt *pt, const struct p4_wire_request *req,
				      ptl_match_bits_t bits)
{
	struct p4_entry *entry;

	for (entry = pt->overflow; entry; entry = entry->next) {
		if (p4_entry_fits(entry, req, bits))
			return entry;
	}
	return NULL;
}

static bool wants_header(const struct p4_entry *entry)
{
	return !(entry->options & PTL_ME_UNEXPECTED_HDR_DISABLE);
}

/* Decides if the first fitting entry of the overflow list, or NULL, takes the message. Returns
 * PTL_NI_OK or the failure. With flow control, a message that no entry can take disables the portal
 * table entry. */
static ptl_ni_fail_t admit_to_overflow(struct p4_pt *pt, const struct p4_entry *entry,
				       const struct p4_wire_request *req)
{
	ptl_ni_fail_t fail;

	if (!pt->allocated)
		return PTL_NI_DROPPED;
	if (!pt->enabled)
		return PTL_NI_PT_DISABLED;
	fail = entry ? violation_of(entry, req) : PTL_NI_OK;
	if (fail)
		return fail;
	if (entry &&
	    (!wants_header(entry) || pt->nheaders < pt->ni->limits.max_unexpected_headers) &&
	    has_resources(entry))
		return PTL_NI_OK;
	if (!(pt->options & PTL_PT_FLOWCTRL))
		return PTL_NI_DROPPED;
	p4_pt_disable_exhausted(pt);
	return PTL_NI_PT_DISABLED;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	const struct p4_wire_request req = decode(envelope->header);
	struct p4_pt *pt = arg;
	struct p4_entry *entry = NULL;
	struct p4_arrival *arrival;
	ptl_ni_fail_t fail = PTL_NI_DROPPED;
	bool genuine = is_genuine(&req, envelope);

	p4_lock();
	if (!genuine)
		pt->ni->status[PTL_SR_DROP_COUNT]++;
	if (!genuine || pt->ni->closing) {
		p4_unlock();
		return TQ_DROP;
	}
	if (is_sane(&req, envelope->length)) {
		entry = pt->enabled ? find_overflow(pt, &req, envelope->bits) : NULL;
		fail = admit_to_overflow(pt, entry, &req);
	}
	arrival = arrive(pt, entry, &req, envelope->bits, fail, take);
	if (arrival && arrival->entry && wants_header(entry)) {
		arrival->header = true;
		DL_APPEND(pt->ni->headers, arrival);
		entry->nheaders++;
		pt->nheaders++;
	}
	p4_unlock();
	return arrival && arrival->header ? TQ_STORE : TQ_DROP;
}

/* ---- the data are there ---- */

/* Ends an entry whose message is lost. */
static void fail_entry(struct p4_entry *entry)
{
	p4_entry_leave(entry, P4_ENTRY_REMOVED);
	if (!(entry->options & PTL_ME_EVENT_COMM_DISABLE))
		p4_entry_event(entry, PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
	if (entry->options & PTL_ME_EVENT_CT_COMM)
		p4_ct_add(p4_handle_get(entry->ct, P4_CT), 0, 1);
	p4_entry_try_free(entry);
}

/* Returns true if a correct process may have sent this message to a queue, past match(). */
static bool may_be_direct(const struct p4_wire_request *req, const struct tq_envelope *envelope)
{
	return is_genuine(req, envelope) && is_sane(req, envelope->length) && req->kind == P4_PUT &&
	       !req->remote_offset;
}

/* Ends a message that the HCA has matched. */
static void end_direct(struct p4_entry *entry, const struct tq_arrival *message)
{
	const struct tq_envelope *envelope = &message->envelope;
	const struct p4_wire_request req = decode(envelope->header);
	struct p4_arrival *arrival = NULL;
	struct tq_take take;

	if (may_be_direct(&req, envelope))
		arrival = arrive(entry->pt, entry, &req, envelope->bits, PTL_NI_OK, &take);
	if (!arrival) {
		entry->pt->ni->status[PTL_SR_DROP_COUNT]++;
		fail_entry(entry);
		return;
	}
	arrival->mlength = message->received;
	p4_arrival_finish(arrival, 0);
}

static void done(void *arg, void *user, const struct tq_arrival *message)
{
	struct p4_arrival *arrival = user;

	(void)arg;
	p4_lock();
	switch (*(const enum p4_tag *)user) {
	case P4_TAG_ENTRY:
		/* The context's end is the interface's. */
		if (message->error == -ECANCELED)
			break;
		p4_entry_post_link(user);
		if (message->error)
			fail_entry(user);
		else
			end_direct(user, message);
		break;
	case P4_TAG_ARRIVAL:
		p4_arrival_finish(arrival, message->error);
		break;
	case P4_TAG_HIT:
		p4_arrival_leave_list(
			(struct p4_arrival *)((char *)user - offsetof(struct p4_arrival, hit)));
		break;
	default:
		break;
	}
	p4_unlock_run();
}

const struct tq_match_ops p4_target_ops = {match, unexpected, done};
