/* SPDX-License-Identifier: BSD-3-Clause */
#include "ni.h"

#include <unistd.h>

#include "ct.h"
#include "endpoint.h"
#include "entry.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "md.h"

struct p4_ni *p4_ni_of(ptl_handle_ni_t handle)
{
	return p4_handle_get(handle, P4_NI);
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status)
{
	struct p4_ni *ni;
	int rc = PTL_ARG_INVALID;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = p4_ni_of(ni_handle);
	if (ni && (unsigned)status_register < PTL_SR_LAST && status) {
		*status = ni->status[status_register];
		rc = PTL_OK;
	}
	p4_unlock();
	return rc;
}

/* Returns the interface of an object, or NULL. */
static struct p4_ni *owner(ptl_handle_any_t handle)
{
	enum p4_kind kind = p4_handle_kind(handle);
	void *object = p4_handle_get(handle, kind);

	if (!object)
		return NULL;
	switch (kind) {
	case P4_NI:
		return object;
	case P4_EQ:
		return ((struct p4_eq *)object)->ni;
	case P4_CT:
		return ((struct p4_ct *)object)->ni;
	case P4_MD:
		return ((struct p4_md *)object)->ni;
	case P4_ENTRY:
		return ((struct p4_entry *)object)->pt->ni;
	case P4_OP:
		break;
	}
	return NULL;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle)
{
	struct p4_ni *ni;

	if (!p4_enter())
		return PTL_NO_INIT;
	ni = owner(handle);
	if (ni && ni_handle)
		*ni_handle = ni->handle;
	p4_unlock();
	return ni && ni_handle ? PTL_OK : PTL_ARG_INVALID;
}

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid)
{
	if (!p4_is_init())
		return PTL_NO_INIT;
	if (!p4_ni_of(ni_handle) || !uid)
		return PTL_ARG_INVALID;
	*uid = geteuid();
	return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id)
{
	struct tq_locator locator = p4_endpoint_locator();

	if (!p4_is_init())
		return PTL_NO_INIT;
	if (!p4_ni_of(ni_handle) || !id)
		return PTL_ARG_INVALID;
	id->phys.nid = locator.port;
	id->phys.pid = locator.number;
	return PTL_OK;
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2)
{
	return handle1 == handle2;
}

int PtlStartBundle(ptl_handle_ni_t ni_handle)
{
	if (!p4_is_init())
		return PTL_NO_INIT;
	return p4_ni_of(ni_handle) ? PTL_OK : PTL_ARG_INVALID;
}

int PtlEndBundle(ptl_handle_ni_t ni_handle)
{
	return PtlStartBundle(ni_handle);
}
