/* SPDX-License-Identifier: BSD-3-Clause */
#include "md.h"

#include <stdlib.h>

#include "ct.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "ni.h"
#include "wait.h"

void p4_md_count(const struct p4_md *md, unsigned count, ptl_size_t bytes, ptl_ni_fail_t fail)
{
	struct p4_ct *ct = p4_handle_get(md->ct, P4_CT);

	if (!ct || !(md->options & count))
		return;
	if (fail)
		p4_ct_add(ct, 0, 1);
	else
		p4_ct_add(ct, md->options & PTL_MD_EVENT_CT_BYTES ? bytes : 1, 0);
}

void p4_md_event(const struct p4_md *md, const ptl_event_t *event, unsigned count, ptl_size_t bytes)
{
	struct p4_eq *eq = p4_handle_get(md->eq, P4_EQ);

	p4_assert_held();
	if (eq && !(!event->ni_fail_type && (md->options & PTL_MD_EVENT_SUCCESS_DISABLE)) &&
	    !(event->type == PTL_EVENT_SEND && (md->options & PTL_MD_EVENT_SEND_DISABLE) &&
	      !event->ni_fail_type))
		p4_eq_post(eq, event, false);
	p4_md_count(md, count, bytes, event->ni_fail_type);
}

/* ---- the user's functions ---- */

static int bind(struct p4_ni *ni, const ptl_md_t *init, struct p4_md *md)
{
	bool ok = true;

	if (init->options & ~(PTL_MD_OPTIONS_MASK | PTL_IOVEC))
		return PTL_ARG_INVALID;
	p4_eq_of(ni, init->eq_handle, &ok);
	p4_ct_of(ni, init->ct_handle, &ok);
	if (!ok)
		return PTL_ARG_INVALID;
	md->ni = ni;
	md->options = init->options;
	md->eq = init->eq_handle;
	md->ct = init->ct_handle;
	return p4_region_init(&md->region, init->start, init->length, init->options,
			      ni->limits.max_iovecs);
}

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle)
{
	struct p4_ni *ni;
	struct p4_md *made;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (!ni || !md || !md_handle)
		goto unlock;
	rc = PTL_NO_SPACE;
	made = ni->nmds < ni->limits.max_mds ? calloc(1, sizeof(*made)) : NULL;
	if (!made)
		goto unlock;
	rc = bind(ni, md, made);
	if (rc) {
		free(made);
		goto unlock;
	}
	made->handle = p4_handle_new(P4_MD, made);
	if (made->handle == PTL_INVALID_HANDLE) {
		p4_region_fini(&made->region);
		free(made);
		rc = PTL_NO_SPACE;
		goto unlock;
	}
	ni->nmds++;
	*md_handle = made->handle;
unlock:
	p4_unlock();
	return rc;
}

void p4_md_destroy(struct p4_md *md)
{
	md->ni->nmds--;
	p4_handle_free(md->handle);
	p4_region_fini(&md->region);
	free(md);
}

/* The time (ms) that PtlMDRelease() waits for operations under way, because those that have reached
 * their target end soon. A choice: far longer than an answer takes, and short for a user who is
 * told PTL_IN_USE because the target is slow. */
#define RELEASE_MS 100

static bool is_idle(void *arg)
{
	const ptl_handle_md_t *handle = arg;
	const struct p4_md *md;
	bool idle;

	p4_lock();
	md = p4_handle_get(*handle, P4_MD);
	idle = !md || !md->nops;
	p4_unlock();
	return idle;
}

int PtlMDRelease(ptl_handle_md_t md_handle)
{
	struct p4_md *md;
	int rc = PTL_ARG_INVALID;

	if (!p4_is_init())
		return PTL_NO_INIT;
	p4_wait(is_idle, &md_handle, RELEASE_MS);
	p4_lock();
	md = p4_handle_get(md_handle, P4_MD);
	if (md && md->nops) {
		rc = PTL_IN_USE;
	} else if (md) {
		p4_md_destroy(md);
		rc = PTL_OK;
	}
	p4_unlock();
	return rc;
}
