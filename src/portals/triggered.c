/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's functions for triggered changes of counting events and of lists. */
#include <stdlib.h>

#include "ct.h"
#include "entry.h"
#include "handles.h"
#include "initiator.h"
#include "ni.h"

/* Makes an operation that the counting event triggers. Returns a code of Portals. The caller holds
 * the lock. */
static int make(struct p4_ni *ni, const struct p4_op *like, ptl_handle_ct_t trigger,
		ptl_size_t threshold, struct p4_ct **ct, struct p4_op **made)
{
	int rc = p4_ct_find_trigger(ni, trigger, threshold, ct);

	if (rc)
		return rc;
	*made = malloc(sizeof(**made));
	if (!*made)
		return PTL_NO_SPACE;
	**made = *like;
	(*made)->ni = ni;
	(*made)->cookie = PTL_INVALID_HANDLE;
	return PTL_OK;
}

static int change(const struct p4_op *like, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	struct p4_ct *ct, *trigger;
	struct p4_op *op;
	int rc;

	if (!p4_enter())
		return PTL_NO_INIT;
	ct = p4_handle_get(like->ct, P4_CT);
	rc = ct ? make(ct->ni, like, trig_ct_handle, threshold, &trigger, &op) : PTL_ARG_INVALID;
	if (!rc)
		p4_ct_trigger(trigger, op, threshold);
	p4_unlock_run();
	return rc;
}

int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct p4_op op = {.kind = P4_CT_INC, .ct = ct_handle, .value = increment};

	if (increment.success && increment.failure)
		return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
	return change(&op, trig_ct_handle, threshold);
}

int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	const struct p4_op op = {.kind = P4_CT_SET, .ct = ct_handle, .value = new_ct};

	return change(&op, trig_ct_handle, threshold);
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t *me,
			 ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
			 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	struct p4_op like = {.kind = P4_ME_APPEND}, *op;
	struct p4_ct *trigger;
	struct p4_pt *pt;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	pt = p4_pt_of(ni_handle, pt_index);
	if (!pt || !p4_ni_is_matching(pt->ni) || !me || !me_handle)
		goto unlock;
	rc = make(pt->ni, &like, trig_ct_handle, threshold, &trigger, &op);
	if (rc)
		goto unlock;
	rc = p4_entry_make(pt, me, ptl_list, P4_APPEND, user_ptr, &op->entry);
	if (rc) {
		free(op);
		goto unlock;
	}
	*me_handle = op->entry->handle;
	p4_ct_trigger(trigger, op, threshold);
unlock:
	p4_unlock_run();
	return rc;
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
			 ptl_size_t threshold)
{
	struct p4_op like = {.kind = P4_ME_UNLINK, .handle = me_handle}, *op;
	struct p4_entry *entry;
	struct p4_ct *trigger;
	int rc;

	if (!p4_enter())
		return PTL_NO_INIT;
	entry = p4_handle_get(me_handle, P4_ENTRY);
	rc = entry ? make(entry->pt->ni, &like, trig_ct_handle, threshold, &trigger, &op)
		   : PTL_ARG_INVALID;
	if (!rc)
		p4_ct_trigger(trigger, op, threshold);
	p4_unlock_run();
	return rc;
}
