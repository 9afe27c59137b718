/* SPDX-License-Identifier: BSD-3-Clause */
#include "entry.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "ct.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "map.h"
#include "ni.h"
#include "wait.h"
#include "wire.h"

/* ---- what an entry takes, its events, and its list ---- */

void p4_entry_event(struct p4_entry *entry, ptl_event_kind_t type, ptl_ni_fail_t fail)
{
	ptl_event_t event = {
		.type = type,
		.user_ptr = entry->user_ptr,
		.pt_index = entry->pt->index,
		.ptl_list = entry->list,
		.ni_fail_type = fail,
	};

	p4_pt_event(entry->pt, &event);
}

void p4_entry_post_link(struct p4_entry *entry)
{
	if (entry->link_posted)
		return;
	entry->link_posted = true;
	if (!(entry->options & PTL_ME_EVENT_LINK_DISABLE))
		p4_entry_event(entry, PTL_EVENT_LINK, PTL_NI_OK);
}

ptl_size_t p4_entry_room(const struct p4_entry *entry, const struct p4_wire_request *req,
			 ptl_size_t *offset)
{
	*offset = entry->options & PTL_ME_MANAGE_LOCAL ? entry->offset : req->remote_offset;
	return *offset < entry->region.length ? entry->region.length - *offset : 0;
}

bool p4_entry_fits(const struct p4_entry *entry, const struct p4_wire_request *req,
		   ptl_match_bits_t bits)
{
	const struct p4_ni *ni = entry->pt->ni;
	ptl_size_t offset;

	if (!p4_ni_is_matching(ni))
		return true;
	return !((entry->match_bits ^ bits) & ~entry->ignore_bits) &&
	       p4_map_fits(ni, entry->match_id, req->nid, req->pid) &&
	       (!(entry->options & PTL_ME_NO_TRUNCATE) ||
		req->rlength <= p4_entry_room(entry, req, &offset));
}

void p4_entry_leave(struct p4_entry *entry, enum p4_entry_state state)
{
	bool was_linked = entry->state == P4_ENTRY_LINKED;

	p4_assert_held();
	if (entry->search || (entry->state != P4_ENTRY_NEW && !was_linked))
		return;
	entry->state = state;
	entry->pt->nentries[entry->list]--;
	if (was_linked && entry->list == PTL_OVERFLOW_LIST)
		DL_DELETE(entry->pt->overflow, entry);
}

void p4_entry_release(struct p4_entry *entry)
{
	p4_assert_held();
	entry->nbusy--;
	if (entry->state == P4_ENTRY_USED_UP && !entry->nbusy &&
	    !(entry->options & PTL_ME_EVENT_UNLINK_DISABLE))
		p4_entry_event(entry, PTL_EVENT_AUTO_UNLINK, PTL_NI_OK);
}

void p4_entry_try_free(struct p4_entry *entry)
{
	p4_assert_held();
	if (entry->state == P4_ENTRY_LINKED || entry->held || entry->nbusy || entry->nheaders)
		return;
	if (entry->state == P4_ENTRY_USED_UP && entry->list == PTL_OVERFLOW_LIST &&
	    !(entry->options & PTL_ME_EVENT_UNLINK_DISABLE))
		p4_entry_event(entry, PTL_EVENT_AUTO_FREE, PTL_NI_OK);
	if (entry->handle != PTL_INVALID_HANDLE) {
		p4_handle_free(entry->handle);
		entry->pt->ni->nentries--;
	}
	p4_region_fini(&entry->region);
	free(entry);
}

void p4_entry_destroy(struct p4_entry *entry)
{
	p4_entry_leave(entry, P4_ENTRY_REMOVED);
	/* Nobody waits for events any more. */
	entry->state = P4_ENTRY_REMOVED;
	entry->held = false;
	entry->nbusy = 0;
	entry->nheaders = 0;
	p4_entry_try_free(entry);
}

/* ---- appending ---- */

static bool is_valid(const struct p4_ni *ni, const ptl_me_t *me, ptl_list_t list)
{
	unsigned mask =
		p4_ni_is_matching(ni) ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
	bool ok = !(me->options & ~mask) && list <= PTL_OVERFLOW_LIST;

	p4_ct_of(ni, me->ct_handle, &ok);
	return ok;
}

static int fill_in(struct p4_entry *entry, struct p4_pt *pt, const ptl_me_t *me)
{
	entry->tag = P4_TAG_ENTRY;
	entry->handle = PTL_INVALID_HANDLE;
	entry->pt = pt;
	entry->options = me->options;
	entry->ct = me->ct_handle;
	entry->uid = me->uid;
	entry->match_id = me->match_id;
	entry->match_bits = me->match_bits;
	entry->ignore_bits = me->ignore_bits;
	entry->min_free = me->min_free;
	entry->held = true;
	return p4_region_init(&entry->region, me->start, me->length, me->options,
			      pt->ni->limits.max_iovecs);
}

int p4_entry_make(struct p4_pt *pt, const ptl_me_t *me, ptl_list_t list, enum p4_search search,
		  void *user_ptr, struct p4_entry **made)
{
	struct p4_ni *ni = pt->ni;
	struct p4_entry *entry;
	int rc;

	p4_assert_held();
	if (!is_valid(ni, me, list))
		return PTL_ARG_INVALID;
	if (search == P4_APPEND) {
		if (ni->nentries >= ni->limits.max_entries)
			return PTL_NO_SPACE;
		if (pt->nentries[list] >= ni->limits.max_list_size)
			return PTL_NO_SPACE;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return PTL_NO_SPACE;
	rc = fill_in(entry, pt, me);
	if (!rc && search == P4_APPEND) {
		entry->handle = p4_handle_new(P4_ENTRY, entry);
		rc = entry->handle == PTL_INVALID_HANDLE ? PTL_NO_SPACE : PTL_OK;
	}
	if (rc) {
		p4_region_fini(&entry->region);
		free(entry);
		return rc;
	}
	entry->list = list;
	entry->search = search;
	entry->user_ptr = user_ptr;
	if (search == P4_APPEND) {
		ni->nentries++;
		pt->nentries[list]++;
	}
	*made = entry;
	return PTL_OK;
}

/* Returns true if the HCA may match the entry: it takes one message into the beginning of its
 * buffer, whatever the message's length is. */
static bool is_for_queue(const struct p4_entry *entry)
{
	return entry->search == P4_APPEND && p4_ni_is_matching(entry->pt->ni) &&
	       (entry->options & PTL_ME_OP_PUT) && (entry->options & PTL_ME_USE_ONCE) &&
	       !(entry->options & (PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE | PTL_IOVEC)) &&
	       (entry->uid == PTL_UID_ANY || entry->uid == geteuid());
}

/* Returns the rank of the entry's source in the context, or TQ_ANY_SOURCE: a source whose address
 * isn't known yet is compared by match(). */
static int source_of(struct p4_entry *entry)
{
	struct p4_ni *ni = entry->pt->ni;
	struct p4_peer *peer = NULL;
	bool ready;
	int rank, rc;

	p4_lock();
	if (p4_ni_is_matching(ni) && !p4_map_is_any(ni, entry->match_id))
		peer = p4_map_peer(ni, entry->match_id, &rc);
	ready = peer && peer->tq;
	p4_unlock();
	if (!ready)
		return TQ_ANY_SOURCE;
	rank = p4_peer_rank(peer, ni, entry->pt->index);
	return rank < 0 ? TQ_ANY_SOURCE : rank;
}

/* Appends to libtupleq's list, or searches the messages that wait. */
static int append_from(struct p4_entry *entry, int source, unsigned flags)
{
	bool matching = p4_ni_is_matching(entry->pt->ni);
	struct tq_buf buf = {.addr = entry->region.start, .len = entry->region.length};
	int rc;

	while ((rc = tq_entry_append(entry->pt->ni->ctx[entry->pt->index], source,
				     matching ? entry->match_bits : 0,
				     matching ? entry->ignore_bits : UINT64_MAX,
				     flags & TQ_ENTRY_QUEUE ? &buf : NULL, flags, entry,
				     &entry->id)) == -EAGAIN)
		p4_endpoint_progress();
	return rc;
}

static int append_priority(struct p4_entry *entry)
{
	int source = source_of(entry);
	unsigned flags = entry->search ? TQ_ENTRY_SEARCH : 0;
	int rc;

	if (source != TQ_ANY_SOURCE && is_for_queue(entry))
		flags |= TQ_ENTRY_QUEUE;
	rc = append_from(entry, source, flags);
	/* An entry for a process that has failed is appended nevertheless, for what has arrived. */
	if (rc == -EIO && source != TQ_ANY_SOURCE)
		rc = append_from(entry, TQ_ANY_SOURCE, flags & ~TQ_ENTRY_QUEUE);
	return rc < 0 ? PTL_NO_SPACE : PTL_OK;
}

static void count_search(struct p4_entry *entry)
{
	struct p4_ct *ct = p4_handle_get(entry->ct, P4_CT);

	/* A search that may find several messages always ends with a failure: the last one. */
	if (ct && (entry->options & PTL_ME_EVENT_CT_OVERFLOW) &&
	    (!entry->nfound || !(entry->options & PTL_ME_USE_ONCE)))
		p4_ct_add(ct, 0, 1);
	if (!entry->nfound && !(entry->options & PTL_ME_EVENT_COMM_DISABLE))
		p4_entry_event(entry, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
}

int p4_entry_append(struct p4_entry *entry)
{
	int rc = PTL_OK;

	/* Without the lock: because of `held`, no other thread looks at the state. */
	if (entry->search == P4_APPEND)
		entry->state = P4_ENTRY_LINKED;
	if (entry->list == PTL_OVERFLOW_LIST) {
		p4_lock();
		DL_APPEND(entry->pt->overflow, entry);
		p4_entry_post_link(entry);
	} else {
		rc = append_priority(entry);
		p4_lock();
		if (rc)
			p4_entry_leave(entry, P4_ENTRY_REMOVED);
		else if (entry->state == P4_ENTRY_LINKED)
			p4_entry_post_link(entry);
		if (entry->search && !rc)
			count_search(entry);
	}
	entry->held = false;
	p4_entry_try_free(entry);
	p4_unlock_run();
	return rc;
}

/* ---- unlinking ---- */

static bool is_idle(void *arg)
{
	const struct p4_entry *entry = arg;
	bool idle;

	p4_lock();
	idle = !entry->nbusy;
	p4_unlock();
	return idle;
}

/* Takes the entry out of its list. Returns false if a message has done that. */
static bool take_out(struct p4_entry *entry)
{
	struct tq_ctx *ctx = entry->pt->ni->ctx[entry->pt->index];
	int error = 0;

	if (entry->list == PTL_PRIORITY_LIST) {
		while ((error = tq_entry_remove(ctx, entry->id)) == -EAGAIN)
			p4_endpoint_progress();
	}
	return !error;
}

int p4_entry_unlink(ptl_handle_me_t handle, bool wait)
{
	struct p4_entry *entry;
	int rc = PTL_OK;

	p4_lock();
	entry = p4_handle_get(handle, P4_ENTRY);
	/* An interface that has ended takes its objects along. */
	if (!entry || entry->pt->ni->closing)
		rc = PTL_ARG_INVALID;
	else if (entry->nheaders || entry->held || entry->state != P4_ENTRY_LINKED)
		rc = PTL_IN_USE;
	if (rc) {
		p4_unlock();
		return rc;
	}
	entry->held = true;
	if (entry->list == PTL_OVERFLOW_LIST)
		p4_entry_leave(entry, P4_ENTRY_REMOVED);
	p4_unlock();
	if (!take_out(entry))
		rc = PTL_IN_USE;
	p4_lock();
	if (!rc)
		p4_entry_leave(entry, P4_ENTRY_REMOVED);
	p4_unlock();
	if (!rc && wait)
		p4_wait_for_end(is_idle, entry);
	p4_lock();
	entry->held = false;
	p4_entry_try_free(entry);
	p4_unlock_run();
	return rc;
}

/* ---- the user's functions ---- */

/* Appends an entry, or searches with it; `handle` is NULL for a search. */
static int enter(ptl_handle_ni_t ni_handle, ptl_pt_index_t index, bool matching, const ptl_me_t *me,
		 ptl_list_t list, enum p4_search search, void *user_ptr, ptl_handle_me_t *handle)
{
	struct p4_entry *entry = NULL;
	struct p4_pt *pt;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	pt = p4_pt_of(ni_handle, index);
	if (pt && p4_ni_is_matching(pt->ni) == matching && me && (handle || search != P4_APPEND))
		rc = p4_entry_make(pt, me, list, search, user_ptr, &entry);
	if (!rc && handle)
		*handle = entry->handle;
	p4_unlock();
	return rc ? rc : p4_entry_append(entry);
}

static ptl_me_t me_of_le(const ptl_le_t *le)
{
	return (ptl_me_t){.start = le->start,
			  .length = le->length,
			  .ct_handle = le->ct_handle,
			  .uid = le->uid,
			  .options = le->options};
}

static int search_of(ptl_search_op_t op)
{
	return op == PTL_SEARCH_ONLY ? P4_SEARCH_ONLY : P4_SEARCH_DELETE;
}

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
		ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle)
{
	return enter(ni_handle, pt_index, true, me, ptl_list, P4_APPEND, user_ptr, me_handle);
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
		ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle)
{
	ptl_me_t me;

	if (!le)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	me = me_of_le(le);
	return enter(ni_handle, pt_index, false, &me, ptl_list, P4_APPEND, user_ptr, le_handle);
}

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
		ptl_search_op_t ptl_search_op, void *user_ptr)
{
	if (ptl_search_op > PTL_SEARCH_DELETE)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	return enter(ni_handle, pt_index, true, me, PTL_PRIORITY_LIST, search_of(ptl_search_op),
		     user_ptr, NULL);
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
		ptl_search_op_t ptl_search_op, void *user_ptr)
{
	ptl_me_t me;

	if (!le || ptl_search_op > PTL_SEARCH_DELETE)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	me = me_of_le(le);
	return enter(ni_handle, pt_index, false, &me, PTL_PRIORITY_LIST, search_of(ptl_search_op),
		     user_ptr, NULL);
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	/* The user may free the memory as soon as this returns. */
	return p4_is_init() ? p4_entry_unlink(me_handle, true) : PTL_NO_INIT;
}

int PtlLEUnlink(ptl_handle_le_t le_handle)
{
	return PtlMEUnlink(le_handle);
}
