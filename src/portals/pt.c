/* SPDX-License-Identifier: BSD-3-Clause */
#include "pt.h"

#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "ni.h"
#include "wait.h"

void p4_pt_event(const struct p4_pt *pt, const ptl_event_t *event)
{
	struct p4_eq *eq = p4_handle_get(pt->eq, P4_EQ);

	p4_assert_held();
	/* With flow control no event is lost: those of messages that the HCA has matched come
	 * without a look at the queue before. */
	if (eq)
		p4_eq_post(eq, event, pt->options & PTL_PT_FLOWCTRL);
}

static void post_disabled(struct p4_pt *pt)
{
	ptl_event_t event = {
		.type = PTL_EVENT_PT_DISABLED,
		.pt_index = pt->index,
		.ni_fail_type = PTL_NI_PT_DISABLED,
	};

	pt->disabled_event = false;
	p4_pt_event(pt, &event);
}

void p4_pt_exhausted(struct p4_pt *pt)
{
	p4_assert_held();
	if (!pt->enabled)
		return;
	pt->enabled = false;
	pt->disabled_event = true;
	if (!pt->nbusy)
		post_disabled(pt);
}

void p4_pt_release(struct p4_pt *pt)
{
	p4_assert_held();
	pt->nbusy--;
	if (!pt->nbusy && pt->disabled_event)
		post_disabled(pt);
	p4_notify();
}

/* ---- the user's functions ---- */

/* Returns a free portal table entry, or NULL and *rc. */
static struct p4_pt *find_free(struct p4_ni *ni, ptl_pt_index_t wanted, int *rc)
{
	if (wanted != PTL_PT_ANY) {
		*rc = wanted > (ptl_pt_index_t)ni->limits.max_pt_index ? PTL_ARG_INVALID
								       : PTL_PT_IN_USE;
		return *rc == PTL_PT_IN_USE && !ni->pts[wanted].allocated ? &ni->pts[wanted] : NULL;
	}
	*rc = PTL_PT_FULL;
	for (int i = 0; i <= ni->limits.max_pt_index; i++) {
		if (!ni->pts[i].allocated)
			return &ni->pts[i];
	}
	return NULL;
}

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	       ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index)
{
	struct p4_ni *ni;
	struct p4_pt *pt;
	struct p4_eq *eq;
	bool ok = true;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !pt_index || options & ~PTL_PT_ALLOC_OPTIONS_MASK)
		goto unlock;
	eq = p4_eq_of(ni, eq_handle, &ok);
	if (!ok)
		goto unlock;
	if ((options & PTL_PT_FLOWCTRL) && !eq) {
		rc = PTL_PT_EQ_NEEDED;
		goto unlock;
	}
	pt = find_free(ni, pt_index_req, &rc);
	if (!pt)
		goto unlock;
	*pt = (struct p4_pt){
		.ni = ni,
		.index = pt->index,
		.allocated = true,
		.enabled = !(options & PTL_PT_ALLOC_DISABLED),
		.options = options,
		.eq = eq_handle,
	};
	*pt_index = pt->index;
	rc = PTL_OK;
unlock:
	p4_unlock();
	return rc;
}

/* Locks, and returns the portal table entry if it is allocated; without the lock NULL, and *rc. */
static struct p4_pt *enter(ptl_handle_ni_t ni_handle, ptl_pt_index_t index, int *rc)
{
	struct p4_ni *ni;

	*rc = PTL_NO_INIT;
	if (!p4_enter())
		return NULL;
	ni = p4_ni_of(ni_handle);
	if (ni && index < P4_PTS && ni->pts[index].allocated)
		return &ni->pts[index];
	p4_unlock();
	*rc = PTL_ARG_INVALID;
	return NULL;
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	int rc;
	struct p4_pt *pt = enter(ni_handle, pt_index, &rc);

	if (!pt)
		return rc;
	if (pt->nentries[PTL_PRIORITY_LIST] || pt->nentries[PTL_OVERFLOW_LIST] || pt->nheaders)
		rc = PTL_PT_IN_USE;
	else
		rc = PTL_OK;
	if (!rc)
		pt->allocated = pt->enabled = false;
	p4_unlock();
	return rc;
}

static bool is_idle(void *arg)
{
	const struct p4_pt *pt = arg;
	bool idle;

	p4_lock();
	idle = !pt->nbusy;
	p4_unlock();
	return idle;
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	int rc;
	struct p4_pt *pt = enter(ni_handle, pt_index, &rc);

	if (!pt)
		return rc;
	pt->enabled = false;
	p4_unlock();
	rc = p4_wait(is_idle, pt, PTL_TIME_FOREVER);
	return rc == PTL_ABORTED ? PTL_FAIL : rc;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	int rc;
	struct p4_pt *pt = enter(ni_handle, pt_index, &rc);

	if (!pt)
		return rc;
	pt->enabled = true;
	p4_unlock();
	return PTL_OK;
}
