/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <string.h>

#include "active.h"
#include "arith/arith.h"
#include "ep.h"
#include "mr.h"

/* ---- events ---- */

/* Returns the endpoint with a number, with a reference to it; NULL if there is none (any more). */
static struct tf_ep *find_ep(struct tf_domain *domain, uint32_t number)
{
	struct tf_contexts *contexts;
	struct tf_ep *ep;

	pthread_mutex_lock(&domain->lock);
	HASH_FIND(hh, domain->contexts, &number, sizeof(number), contexts);
	ep = contexts ? atomic_load(&contexts->ep) : NULL;
	if (ep)
		atomic_fetch_add(&ep->refs, 1);
	pthread_mutex_unlock(&domain->lock);
	return ep;
}

/* Reports an operation of a peer that has ended. */
static int tell(struct tf_domain *domain, const struct tf_request *request)
{
	bool read = request->flags & TF_REQUEST_READ, data = request->flags & TF_REQUEST_DATA;
	struct tf_ep *ep = find_ep(domain, request->endpoint);
	const struct tf_completion completion = {
		.entry = {.flags = (request->flags & TF_REQUEST_ATOM ? FI_ATOMIC : FI_RMA) |
				   FI_REMOTE_CQ_DATA | (read ? FI_REMOTE_READ : FI_REMOTE_WRITE),
			  .len = request->length,
			  .data = request->data},
		.source = FI_ADDR_NOTAVAIL,
	};

	pthread_mutex_lock(&domain->lock);
	tf_mr_count(domain, request->key, read);
	pthread_mutex_unlock(&domain->lock);
	if (!ep)
		return 0; /* was closed */
	if (data)
		tf_ep_report(ep, &ep->rx, &completion);
	tf_ep_count(ep, read ? TF_COUNT_REMOTE_READ : TF_COUNT_REMOTE_WRITE);
	tf_ep_release(ep);
	return 0;
}

/* ---- atomic operations ---- */

/* Returns true if an operation has items to compare with behind its own. */
static bool compares(unsigned op)
{
	return op >= ARITH_CSWAP;
}

/* In a switch on the size of an item: moves one of that type with one instruction. */
#define MOVES(type, move, at, item, order)                         \
	case sizeof(type):                                         \
		move((type *)(void *)(at), (type *)(item), order); \
		return;

/* Returns the size of an item, or 0 if one instruction can't move it to or from there. */
static size_t at_once(const char *at, size_t size)
{
	return size <= sizeof(uint64_t) && (uintptr_t)at % size == 0 ? size : 0;
}

/* Loads an item, which the user's threads may be changing: whole, if one instruction can do that.
 */
static void load(char *at, void *item, size_t size)
{
	switch (at_once(at, size)) {
		MOVES(uint8_t, __atomic_load, at, item, __ATOMIC_ACQUIRE)
		MOVES(uint16_t, __atomic_load, at, item, __ATOMIC_ACQUIRE)
		MOVES(uint32_t, __atomic_load, at, item, __ATOMIC_ACQUIRE)
		MOVES(uint64_t, __atomic_load, at, item, __ATOMIC_ACQUIRE)
	default:
		memcpy(item, at, size);
	}
}

/* Stores an item, for which the user's threads may be waiting, in the same way. A thread that sees
 * the item also sees what was stored earlier. */
static void store(char *at, void *item, size_t size)
{
	switch (at_once(at, size)) {
		MOVES(uint8_t, __atomic_store, at, item, __ATOMIC_RELEASE)
		MOVES(uint16_t, __atomic_store, at, item, __ATOMIC_RELEASE)
		MOVES(uint32_t, __atomic_store, at, item, __ATOMIC_RELEASE)
		MOVES(uint64_t, __atomic_store, at, item, __ATOMIC_RELEASE)
	default:
		memcpy(at, item, size);
	}
}

/* Changes one item after the other. The old ones replace those of `data`. The user's memory may
 * have any alignment. */
static void change(char *memory, const struct tf_request *request, char *data, size_t size)
{
	const char *operand = compares(request->op) ? data + size * request->count : NULL;

	for (uint32_t i = 0; i < request->count; i++) {
		char *at = memory + i * size, *own = data + i * size;
		union arith_item item, old;

		load(at, &item, size);
		old = item;
		arith_apply(&item, own, operand ? operand + i * size : NULL, request->op,
			    request->type);
		if (request->op != ARITH_READ)
			store(at, &item, size);
		memcpy(own, &old, size);
	}
}

/* Returns the rights that an operation needs. */
static uint64_t rights(const struct tf_request *request)
{
	return (request->op == ARITH_READ ? 0 : FI_REMOTE_WRITE) |
	       (request->flags & TF_REQUEST_FETCH ? FI_REMOTE_READ : 0);
}

static int carry_out(struct tf_domain *domain, const struct tf_request *request, void *data,
		     size_t *len)
{
	size_t size = arith_size(request->type), items = size * request->count;
	int error = -FI_EINVAL;
	struct tf_mr *mr;

	if (!arith_is_valid(request->op, request->type) || items > TF_ATOMIC_MAX ||
	    *len != (compares(request->op) ? 2 * items : items))
		return error;
	pthread_mutex_lock(&domain->lock);
	mr = tf_mr_find(domain, request->key, request->addr, items, rights(request), &error);
	if (mr)
		change((char *)(uintptr_t)request->addr, request, data, size);
	pthread_mutex_unlock(&domain->lock);
	*len = request->flags & TF_REQUEST_FETCH ? items : 0;
	return error;
}

int tf_target(struct tf_domain *domain, const struct tf_request *request, void *data, size_t *len)
{
	switch (request->kind) {
	case TF_REQUEST_EVENT:
		*len = 0;
		return tell(domain, request);
	case TF_REQUEST_ATOMIC:
		return carry_out(domain, request, data, len);
	}
	return -FI_EINVAL;
}
