/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's functions that begin and end the use of the library, and of its interfaces. */
#include <stdlib.h>

#include "answer.h"
#include "arrival.h"
#include "ct.h"
#include "endpoint.h"
#include "entry.h"
#include "eq.h"
#include "handles.h"
#include "lib.h"
#include "log.h"
#include "map.h"
#include "md.h"
#include "ni.h"
#include "peer.h"
#include "target.h"
#include "wait.h"
#include "wire.h"

/* ---- interfaces ---- */

/* Contexts of libtupleq: the interface's kind and the portal table entry. */
#define CTX_ID(index, pt) (0x50340000u | (index) << 8 | (pt))

static const ptl_ni_limits_t most = {
	.max_entries = 1 << 20,
	.max_unexpected_headers = 1 << 16,
	.max_mds = 1 << 20,
	.max_cts = 1 << 20,
	.max_eqs = 1 << 20,
	.max_pt_index = P4_PTS - 1,
	.max_iovecs = 1 << 16,
	.max_list_size = 1 << 20,
	.max_triggered_ops = 1 << 13,
	.max_msg_size = PTL_SIZE_MAX >> 1,
	.max_atomic_size = P4_ATOMIC_MAX,
	.max_fetch_atomic_size = P4_ATOMIC_MAX,
	/* Less than goes eagerly (eager_max), so that only a message that finds no control buffer
	 * at its target is read, and may be overtaken (README.md). */
	.max_waw_ordered_size = 1 << 13,
	.max_war_ordered_size = 1 << 13,
	.max_volatile_size = 4096,
	.features = 0,
};

/* All interfaces, by kind. Opening and closing are one after the other, under `changing`. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct p4_ni *nis[P4_NIS];
/* Closed interfaces: messages that have arrived for them may end later. Under the lock. */
static struct p4_ni *closed;

static int at_most(int desired, int max)
{
	return desired < 0 ? 0 : desired < max ? desired : max;
}

static ptl_size_t at_most_size(ptl_size_t desired, ptl_size_t max)
{
	return desired < max ? desired : max;
}

static void set_limits(ptl_ni_limits_t *limits, const ptl_ni_limits_t *desired)
{
	*limits = most;
	if (!desired)
		return;
#define LIMIT(name) limits->name = at_most(desired->name, most.name)
	LIMIT(max_entries);
	LIMIT(max_unexpected_headers);
	LIMIT(max_mds);
	LIMIT(max_cts);
	LIMIT(max_eqs);
	LIMIT(max_pt_index);
	LIMIT(max_iovecs);
	LIMIT(max_list_size);
	LIMIT(max_triggered_ops);
#undef LIMIT
#define SIZE(name) limits->name = at_most_size(desired->name, most.name)
	SIZE(max_msg_size);
	SIZE(max_atomic_size);
	SIZE(max_fetch_atomic_size);
	SIZE(max_waw_ordered_size);
	SIZE(max_war_ordered_size);
	SIZE(max_volatile_size);
#undef SIZE
}

static void remove_contexts(struct p4_ni *ni)
{
	for (unsigned i = 0; i <= P4_PTS; i++) {
		if (ni->ctx[i])
			tq_ctx_remove(ni->ctx[i]);
	}
}

/* Makes a context for each portal table entry, which is closed until PtlPTAlloc(), and one for
 * answers. */
static int add_contexts(struct p4_ni *ni)
{
	struct tq_ep *ep = p4_endpoint();
	int error = 0;

	for (unsigned i = 0; !error && i < P4_PTS; i++) {
		ni->pts[i] = (struct p4_pt){.ni = ni, .index = i};
		error = tq_ctx_add_bits(ep, CTX_ID(ni->index, i), NULL, 0, 0, TQ_CTX_OPEN,
					sizeof(struct p4_wire_request), &p4_target_ops, &ni->pts[i],
					&ni->ctx[i]);
	}
	if (!error)
		error = tq_ctx_add_bits(ep, CTX_ID(ni->index, P4_REPLY), NULL, 0, 0, TQ_CTX_OPEN,
					sizeof(struct p4_wire_response), &p4_answer_ops, ni,
					&ni->ctx[P4_REPLY]);
	if (!error) {
		error = tq_entry_append(ni->ctx[P4_REPLY], TQ_ANY_SOURCE, 0, 0, NULL, 0,
					p4_answer_entry(), NULL);
		error = error < 0 ? error : 0;
	}
	if (error)
		remove_contexts(ni);
	return error ? PTL_NO_SPACE : PTL_OK;
}

/* Frees an object that the user has not freed. */
static void destroy_object(enum p4_kind kind, void *object)
{
	switch (kind) {
	case P4_EQ:
		p4_eq_destroy(object);
		break;
	case P4_CT:
		p4_ct_destroy(object);
		break;
	case P4_MD:
		p4_md_destroy(object);
		break;
	case P4_ENTRY:
		p4_entry_destroy(object);
		break;
	case P4_NI:
	case P4_OP:
		break;
	}
}

/* Frees the interfaces that were closed, with their objects, after the endpoint. */
static void destroy_closed(void)
{
	static const enum p4_kind order[] = {P4_CT, P4_MD, P4_ENTRY, P4_EQ};
	struct p4_ni *ni;

	p4_assert_held();
	/* All interfaces are closed, so all objects are theirs. Triggered operations, which
	 * counting events own, refer to the others. */
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		p4_handles_each(order[i], destroy_object);
	while ((ni = closed)) {
		closed = ni->next;
		p4_arrivals_destroy(ni);
		p4_map_destroy(ni->map);
		free(ni);
	}
}

/* Drops the endpoint, and frees what its end leaves behind. */
static void close_endpoint(void)
{
	if (!p4_endpoint_close())
		return;
	p4_lock();
	p4_peers_destroy();
	destroy_closed();
	p4_unlock();
}

static int open_ni(unsigned index, unsigned options, const ptl_ni_limits_t *desired)
{
	struct p4_ni *ni = calloc(1, sizeof(*ni));
	struct p4_peer *self;
	int rc;

	if (!ni)
		return PTL_NO_SPACE;
	ni->index = index;
	ni->options = options;
	set_limits(&ni->limits, desired);
	rc = p4_endpoint_open(&p4_peer_ops);
	if (rc)
		goto free_ni;
	rc = add_contexts(ni);
	if (rc)
		goto close_endpoint;
	p4_lock();
	ni->handle = p4_handle_new(P4_NI, ni);
	self = p4_peer_get(p4_endpoint_locator().port, p4_endpoint_locator().number);
	p4_unlock();
	/* A process often sends to itself, and first. */
	if (self)
		p4_peer_look_up(self);
	if (ni->handle != PTL_INVALID_HANDLE) {
		nis[index] = ni;
		return PTL_OK;
	}
	rc = PTL_NO_SPACE;
	remove_contexts(ni);
close_endpoint:
	close_endpoint();
free_ni:
	free(ni);
	return rc;
}

/* Returns true if nothing uses the interface's contexts. */
static bool is_idle(const struct p4_ni *ni)
{
	p4_assert_held();
	if (ni->nusers)
		return false;
	for (unsigned i = 0; i < P4_PTS; i++) {
		if (ni->pts[i].nbusy || ni->pts[i].closing)
			return false;
	}
	return true;
}

/* Makes progress until nothing uses the interface's contexts. */
static void drain(const struct p4_ni *ni)
{
	bool idle;

	for (;;) {
		p4_lock();
		idle = is_idle(ni);
		p4_unlock_run();
		if (idle)
			return;
		p4_endpoint_progress();
	}
}

static void close_ni(struct p4_ni *ni)
{
	p4_lock();
	nis[ni->index] = NULL;
	ni->closing = true;
	p4_handle_free(ni->handle);
	p4_unlock();
	drain(ni);
	remove_contexts(ni);
	p4_lock();
	p4_peers_leave(ni);
	ni->next = closed;
	closed = ni;
	p4_unlock();
	close_endpoint();
}

static bool is_one_of(unsigned options, unsigned a, unsigned b)
{
	return !(options & a) != !(options & b);
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	      const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle)
{
	unsigned index = (options & PTL_NI_MATCHING ? 1 : 0) | (options & PTL_NI_LOGICAL ? 2 : 0);
	int rc = PTL_OK;

	if (!p4_is_init())
		return PTL_NO_INIT;
	if ((iface != PTL_IFACE_DEFAULT && iface != 0) || !ni_handle ||
	    options & ~PTL_NI_INIT_OPTIONS_MASK ||
	    !is_one_of(options, PTL_NI_MATCHING, PTL_NI_NO_MATCHING) ||
	    !is_one_of(options, PTL_NI_LOGICAL, PTL_NI_PHYSICAL) ||
	    (pid > PTL_PID_MAX && pid != PTL_PID_ANY))
		return PTL_ARG_INVALID;
	pthread_mutex_lock(&changing);
	if (!nis[index])
		rc = open_ni(index, options, desired);
	if (!rc && pid != PTL_PID_ANY && pid != p4_endpoint_locator().number && !nis[index]->refs) {
		p4_log(TQ_LOG_ERROR,
		       "PtlNIInit: a process can't choose its pid, which is the number of a queue "
		       "pair: pass PTL_PID_ANY.");
		close_ni(nis[index]);
		rc = PTL_PID_IN_USE;
	}
	if (!rc) {
		nis[index]->refs++;
		if (actual)
			*actual = nis[index]->limits;
		*ni_handle = nis[index]->handle;
	}
	pthread_mutex_unlock(&changing);
	return rc;
}

int PtlNIFini(ptl_handle_ni_t ni_handle)
{
	struct p4_ni *ni;

	if (!p4_is_init())
		return PTL_NO_INIT;
	pthread_mutex_lock(&changing);
	ni = p4_ni_of(ni_handle);
	if (ni && --ni->refs == 0)
		close_ni(ni);
	pthread_mutex_unlock(&changing);
	return ni ? PTL_OK : PTL_ARG_INVALID;
}

/* ---- the library ---- */

/* Closes the interfaces that are still open. */
static void close_all(void)
{
	pthread_mutex_lock(&changing);
	for (unsigned i = 0; i < P4_NIS; i++) {
		if (nis[i])
			close_ni(nis[i]);
	}
	pthread_mutex_unlock(&changing);
}

/* Makes calls of PtlInit() and PtlFini() wait for each other. Interfaces are closed without the
 * library's lock, and must not be those of a thread that has called PtlInit() meanwhile. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

int PtlInit(void)
{
	pthread_mutex_lock(&counting);
	atomic_fetch_add(&p4_lib.inits, 1);
	pthread_mutex_unlock(&counting);
	return PTL_OK;
}

void PtlFini(void)
{
	pthread_mutex_lock(&counting);
	if (atomic_load(&p4_lib.inits) == 1) {
		close_all();
		p4_lock();
		p4_handles_destroy();
		p4_eqs_destroy();
		p4_cts_destroy();
		p4_unlock();
		atomic_store(&p4_lib.aborted, false);
	}
	if (atomic_load(&p4_lib.inits) > 0)
		atomic_fetch_sub(&p4_lib.inits, 1);
	pthread_mutex_unlock(&counting);
}

void PtlAbort(void)
{
	atomic_store(&p4_lib.aborted, true);
	p4_wait_notify();
}
