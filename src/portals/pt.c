/* SPDX-License-Identifier: BSD-3-Clause */
#include "pt.h"

#include <stddef.h>

#include <tupleq/match.h>

#include "endpoint.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "ni.h"
#include "wait.h"

struct p4_pt *p4_pt_of(ptl_handle_ni_t ni_handle, ptl_pt_index_t index)
{
	struct p4_ni *ni = p4_ni_of(ni_handle);

	p4_assert_held();
	return ni && index < P4_PTS && ni->pts[index].allocated ? &ni->pts[index] : NULL;
}

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

/* Takes the entries of a disabled portal table entry out of the HCA's queues. */
static void close_context(struct p4_work *work)
{
	struct p4_pt *pt = (struct p4_pt *)((char *)work - offsetof(struct p4_pt, work));

	tq_ctx_set_flags(pt->ni->ctx[pt->index], TQ_CTX_CLOSED);
	p4_lock();
	pt->closing = false;
	p4_unlock();
	p4_wait_notify();
}

static bool is_closed(void *arg)
{
	const struct p4_pt *pt = arg;
	bool closed;

	p4_lock();
	closed = !pt->closing;
	p4_unlock();
	return closed;
}

/* Enables the entry. Until then match() and unexpected() refuse what comes. Called without the
 * lock. */
static void open_context(struct p4_pt *pt)
{
	tq_ctx_set_flags(pt->ni->ctx[pt->index], 0);
	p4_lock();
	pt->enabled = true;
	p4_unlock();
}

/* Disables the entry: match() takes nothing any more, and p4_unlock_run() closes the context, so
 * that the HCA matches nothing there either. */
static void disable(struct p4_pt *pt)
{
	pt->enabled = false;
	if (pt->closing)
		return;
	pt->closing = true;
	p4_defer(&pt->work, close_context);
}

void p4_pt_disable_exhausted(struct p4_pt *pt)
{
	p4_assert_held();
	if (!pt->enabled)
		return;
	disable(pt);
	pt->disabled_event = true;
	if (!pt->nbusy)
		post_disabled(pt);
}

void p4_pt_release(struct p4_pt *pt, bool taken)
{
	p4_assert_held();
	pt->nbusy--;
	if (taken)
		pt->ntaken--;
	if (!pt->nbusy && pt->disabled_event)
		post_disabled(pt);
	p4_wait_notify();
}

/* ---- the user's functions ---- */

/* Returns true if PtlPTAlloc() may take the entry. An entry that was freed may still have to be
 * closed in libtupleq, and the messages that it has taken post events until they end. */
static bool is_free(const struct p4_pt *pt)
{
	return !pt->allocated && !pt->closing && !pt->ntaken;
}

/* Returns a free portal table entry; or sets *rc, and returns NULL. */
static struct p4_pt *find_free(struct p4_ni *ni, ptl_pt_index_t wanted, int *rc)
{
	if (wanted != PTL_PT_ANY) {
		*rc = wanted > (ptl_pt_index_t)ni->limits.max_pt_index ? PTL_ARG_INVALID
								       : PTL_PT_IN_USE;
		return *rc == PTL_PT_IN_USE && is_free(&ni->pts[wanted]) ? &ni->pts[wanted] : NULL;
	}
	*rc = PTL_PT_FULL;
	for (int i = 0; i <= ni->limits.max_pt_index; i++) {
		if (is_free(&ni->pts[i]))
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
		.options = options,
		.eq = eq_handle,
		.nbusy = pt->nbusy, /* messages that are being refused */
	};
	*pt_index = pt->index;
	p4_unlock();
	if (options & PTL_PT_ALLOC_DISABLED)
		tq_ctx_set_flags(ni->ctx[pt->index], TQ_CTX_CLOSED);
	else
		open_context(pt);
	return PTL_OK;
unlock:
	p4_unlock();
	return rc;
}

/* Locks, and returns the portal table entry if it is allocated. Otherwise sets *rc, and returns
 * NULL without the lock. */
static struct p4_pt *enter(ptl_handle_ni_t ni_handle, ptl_pt_index_t index, int *rc)
{
	struct p4_pt *pt;

	*rc = PTL_NO_INIT;
	if (!p4_enter())
		return NULL;
	pt = p4_pt_of(ni_handle, index);
	if (!pt) {
		p4_unlock();
		*rc = PTL_ARG_INVALID;
	}
	return pt;
}

/* Returns true if no message that an entry has taken is under way. */
static bool is_idle(void *arg)
{
	const struct p4_pt *pt = arg;
	bool idle;

	p4_lock();
	idle = !pt->ntaken;
	p4_unlock();
	return idle;
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
	p4_unlock_run();
	if (rc)
		return rc;
	/* PtlPTAlloc() may use it again. */
	p4_wait_for_end(is_closed, pt);
	p4_wait_for_end(is_idle, pt);
	return PTL_OK;
}

static bool has_no_queues(void *arg)
{
	const struct p4_pt *pt = arg;

	return !tq_ctx_has_queues(pt->ni->ctx[pt->index]);
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	int rc;
	struct p4_pt *pt = enter(ni_handle, pt_index, &rc);

	if (!pt)
		return rc;
	disable(pt);
	p4_unlock_run();
	rc = p4_wait(is_closed, pt, PTL_TIME_FOREVER);
	if (!rc)
		rc = p4_wait(has_no_queues, pt, PTL_TIME_FOREVER);
	if (!rc)
		rc = p4_wait(is_idle, pt, PTL_TIME_FOREVER);
	return rc == PTL_ABORTED ? PTL_FAIL : rc;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index)
{
	int rc;
	struct p4_pt *pt = enter(ni_handle, pt_index, &rc);

	if (!pt)
		return rc;
	if (pt->enabled) {
		p4_unlock();
		return PTL_OK;
	}
	p4_unlock_run();
	rc = p4_wait(is_closed, pt, PTL_TIME_FOREVER);
	if (rc)
		return PTL_FAIL;
	open_context(pt);
	return PTL_OK;
}
