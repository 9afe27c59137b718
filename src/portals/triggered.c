/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's functions for triggered changes of counting events and of lists. */
#include <stddef.h>
#include <stdlib.h>

#include "ct.h"
#include "entry.h"
#include "handles.h"
#include "ni.h"

/* A change that a counting event triggers. */
struct change {
	struct p4_trigger trigger;
	void (*apply)(struct change *change); /* called without the lock */
	struct p4_ni *ni;
	ptl_handle_any_t handle; /* of the counting event or entry to be changed */
	ptl_ct_event_t value;
	struct p4_entry *entry; /* to be appended */
};

static void change_ct(const struct change *change, bool set)
{
	const ptl_ct_event_t *value = &change->value;
	struct p4_ct *ct;

	p4_lock();
	ct = p4_handle_get(change->handle, P4_CT);
	if (ct && set)
		p4_ct_set(ct, value->success, value->failure);
	else
		p4_ct_add(ct, value->success, value->failure);
	p4_unlock();
}

static void increment_ct(struct change *change)
{
	change_ct(change, false);
}

static void set_ct(struct change *change)
{
	change_ct(change, true);
}

static void append(struct change *change)
{
	p4_entry_append(change->entry);
}

static void unlink_entry(struct change *change)
{
	/* The thread may be the one that is to report the end of the entry's messages. */
	p4_entry_unlink(change->handle, false);
}

static void run(struct p4_work *work)
{
	struct change *change =
		(struct change *)((char *)work - offsetof(struct change, trigger.work));
	struct p4_ni *ni = change->ni;

	change->apply(change);
	free(change);
	p4_ct_end_start(ni);
}

static void drop(struct p4_trigger *trigger)
{
	struct change *change =
		(struct change *)((char *)trigger - offsetof(struct change, trigger));
	struct p4_entry *entry = change->entry;

	if (entry) {
		p4_entry_leave(entry, P4_ENTRY_REMOVED);
		entry->held = false;
		p4_entry_try_free(entry);
	}
	free(change);
}

/* Makes a change that the counting event triggers. Returns a code of Portals. The caller holds the
 * lock. */
static int make(struct p4_ni *ni, const struct change *like, ptl_handle_ct_t trigger,
		ptl_size_t threshold, struct p4_ct **ct, struct change **made)
{
	int rc = p4_ct_find_trigger(ni, trigger, threshold, ct);

	if (rc)
		return rc;
	*made = malloc(sizeof(**made));
	if (!*made)
		return PTL_NO_SPACE;
	**made = *like;
	(*made)->ni = ni;
	(*made)->trigger.work.run = run;
	(*made)->trigger.drop = drop;
	return PTL_OK;
}

static int trigger_ct(const struct change *like, ptl_handle_ct_t trig_ct_handle,
		      ptl_size_t threshold)
{
	struct p4_ct *ct, *trigger;
	struct change *change;
	int rc;

	if (!p4_enter())
		return PTL_NO_INIT;
	ct = p4_handle_get(like->handle, P4_CT);
	rc = ct ? make(ct->ni, like, trig_ct_handle, threshold, &trigger, &change)
		: PTL_ARG_INVALID;
	if (!rc)
		p4_ct_trigger(trigger, &change->trigger, threshold);
	p4_unlock_run();
	return rc;
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t value,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct change like = {.apply = increment_ct, .handle = ct_handle, .value = value};

	if (value.success && value.failure)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	return trigger_ct(&like, trig_ct_handle, threshold);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct change like = {.apply = set_ct, .handle = ct_handle, .value = new_ct};

	return trigger_ct(&like, trig_ct_handle, threshold);
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t *me,
			 ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
			 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct change like = {.apply = append};
	struct change *change;
	struct p4_ct *trigger;
	struct p4_pt *pt;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	pt = p4_pt_of(ni_handle, pt_index);
	if (!pt || !p4_ni_is_matching(pt->ni) || !me || !me_handle)
		goto unlock;
	rc = make(pt->ni, &like, trig_ct_handle, threshold, &trigger, &change);
	if (rc)
		goto unlock;
	rc = p4_entry_make(pt, me, ptl_list, P4_APPEND, user_ptr, &change->entry);
	if (rc) {
		free(change);
		goto unlock;
	}
	*me_handle = change->entry->handle;
	p4_ct_trigger(trigger, &change->trigger, threshold);
unlock:
	p4_unlock_run();
	return rc;
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
			 ptl_size_t threshold)
{
	const struct change like = {.apply = unlink_entry, .handle = me_handle};
	struct p4_entry *entry;
	struct change *change;
	struct p4_ct *trigger;
	int rc;

	if (!p4_enter())
		return PTL_NO_INIT;
	entry = p4_handle_get(me_handle, P4_ENTRY);
	rc = entry ? make(entry->pt->ni, &like, trig_ct_handle, threshold, &trigger, &change)
		   : PTL_ARG_INVALID;
	if (!rc)
		p4_ct_trigger(trigger, &change->trigger, threshold);
	p4_unlock_run();
	return rc;
}
