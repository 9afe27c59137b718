/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress: completions, other work that is due, and ended requests on their way to the user. */
#include "ep/progress.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ep/objects.h"
#include "net/adapter/cq.h"
#include "net/adapter/srq.h"
#include "net/channel/control.h"
#include "net/connections.h"
#include "net/net.h"
#include "net/peers/link.h"
#include "net/peers/look_up.h"
#include "proto/common/objects.h"
#include "proto/receiver/entry.h"
#include "proto/rma.h"

int tq_locator(const struct tq_ep *ep, struct tq_locator *locator)
{
	return tq_look_up_locator(&ep->net.connections->address, locator);
}

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator)
{
	/* The address stays as it is while the peer is there. */
	return tq_look_up_locator(&peer->link->contact->address, locator);
}

void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg)
{
	tq_lock(&ep->lock);
	ep->found_arg = arg;
	ep->found = found;
	tq_look_up_enable(&ep->net);
	tq_unlock(&ep->lock);
}

int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator)
{
	int rc;

	tq_lock(&ep->lock);
	rc = tq_look_up_start(&ep->net, locator);
	tq_ep_unlock(ep);
	return rc;
}

bool tq_ep_call_found(struct tq_ep *ep)
{
	struct tq_look_up_result *result, *next;

	if (!atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed))
		return false;
	tq_lock(&ep->lock);
	result = tq_look_up_results(&ep->net);
	tq_unlock(&ep->lock);
	for (; result; result = next) {
		next = result->next;
		ep->found(ep->found_arg, &result->locator, result->error ? NULL : &result->address,
			  sizeof(result->address), result->error);
		free(result);
	}
	return true;
}

void tq_ep_release_completed(struct tq_ep *ep)
{
	struct tq_req *req, *next;

	if (!atomic_load_explicit(&ep->completed_list, memory_order_relaxed))
		return;
	for (req = atomic_exchange_explicit(&ep->completed_list, NULL, memory_order_acquire); req;
	     req = next) {
		next = req->next;
		tq_core_release(req);
	}
}

/* Calls complete() or done() for each request of a list, which isn't empty, and leaves the requests
 * to tq_ep_release_completed(). Called without the lock; several threads may do so, each with its
 * own list. */
static void complete_all(struct tq_ep *ep, struct tq_req *list)
{
	struct tq_req *req, *last = list;

	for (req = list; req; req = req->next) {
		if (req->kind < TQ_REQ_RMA)
			ep->job.complete(req->user, &req->status);
		else if (req->kind == TQ_REQ_RMA)
			tq_core_rma_call_done(req);
		else
			tq_core_entry_call_done(req);
		last = req;
	}
	last->next = atomic_load_explicit(&ep->completed_list, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&ep->completed_list, &last->next, list,
						      memory_order_release, memory_order_relaxed))
		;
}

/*
 * Other work than completions is done after each poll that found some, and now and then. But when
 * a request has ended its owner comes first, because the owner is likely to wait for just that.
 * Each poll that puts other work off for this reason counts for many, so that no more than four do
 * in a row.
 */
int tq_ep_poll(struct tq_ep *ep)
{
	int events = tq_ep_copy(ep) + tq_net_events_soon(&ep->net, TQ_EP_BUDGET);

	if (++ep->polls_since_work < TQ_EP_QUIET && !tq_srqs_has_withdrawn(&ep->net)) {
		if (events == 0)
			return 0;
		if (tq_core_has_ended(&ep->core)) {
			ep->polls_since_work += TQ_EP_QUIET / 4;
			return events;
		}
	}
	ep->polls_since_work = 0;
	tq_ep_release_completed(ep);
	events += tq_net_work(&ep->net);
	return events + tq_core_poll(&ep->core);
}

/* Shows the service thread that the application makes progress. Only holders of the lock write. */
static void count_progress(struct tq_ep *ep)
{
	atomic_store_explicit(&ep->progress,
			      atomic_load_explicit(&ep->progress, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void tq_ep_poll_posted(struct tq_ep *ep)
{
	/* A caller that only posts never polls: finished sends are reaped here, or the queue
	 * looks full. */
	if (ep->net.scq.look && tq_cq_poll_sends(&ep->net, TQ_EP_BUDGET))
		ep->polls_since_work = TQ_EP_QUIET;
	/* The caller would not see the credit that comes back, either. */
	if (!tq_control_waits(&ep->net) && !ep->net.putting)
		return;
	/* A post completes no requests, which may be the thread's task. */
	if (!ep->service || !tq_ep_thread_completes(ep))
		count_progress(ep);
	tq_ep_poll(ep);
}

/* Takes the list of requests that have ended; NULL: none. Until the log has said which connections
 * have failed, the requests that ended with -EIO stay. */
static struct tq_req *take_ended(struct tq_ep *ep)
{
	struct tq_req *list;

	if (!tq_core_has_ended(&ep->core))
		return NULL;
	/* The log says what failed, and why, before the user's request ends. */
	if (!tq_connections_are_settled(&ep->net))
		tq_connections_report(&ep->net);
	list = tq_connections_are_settled(&ep->net) ? tq_core_ended(&ep->core)
						    : tq_core_ended_unfailed(&ep->core);
	ep->ended_waits = tq_core_has_ended(&ep->core);
	return list;
}

/* Leaves the ended requests of contexts with match bits to the thread that is calling done().
 * Returns the others. */
static struct tq_req *leave_arrivals(struct tq_ep *ep, struct tq_req *list)
{
	struct tq_req *req, *next, *others = NULL, **tail = &others;

	for (req = list; req; req = next) {
		struct tq_req ***end = req->kind == TQ_REQ_ENTRY ? &ep->arrivals_tail : &tail;

		next = req->next;
		req->next = NULL;
		**end = req;
		*end = &req->next;
	}
	return others;
}

/* Calls done() for the requests that other threads have left meanwhile. Returns false if there were
 * none: then this thread is no longer the one that calls done(). */
static bool complete_left(struct tq_ep *ep)
{
	struct tq_req *list;

	tq_lock(&ep->lock);
	list = ep->arrivals;
	ep->arrivals = NULL;
	ep->arrivals_tail = &ep->arrivals;
	if (!list)
		ep->calling_done = false;
	tq_ep_unlock(ep);
	if (list)
		complete_all(ep, list);
	return list;
}

bool tq_ep_complete_unlock(struct tq_ep *ep)
{
	struct tq_req *list = take_ended(ep);
	bool calls = false;

	if (list && ep->core.has_bits) {
		if (ep->calling_done)
			list = leave_arrivals(ep, list);
		else
			ep->calling_done = calls = true;
	}
	tq_ep_unlock(ep);
	if (!list)
		return false;
	complete_all(ep, list);
	while (calls)
		calls = complete_left(ep);
	return true;
}

int tq_ep_begin_progress(struct tq_ep *ep)
{
	count_progress(ep);
	return tq_ep_poll(ep);
}

/* Calls complete() and done() for what has ended, if something has. Called with the lock, returns
 * without it. */
static void end_unlock(struct tq_ep *ep)
{
	if (tq_core_has_ended(&ep->core))
		tq_ep_complete_unlock(ep);
	else
		tq_ep_unlock(ep);
}

void tq_ep_end_progress(struct tq_ep *ep)
{
	end_unlock(ep);
	tq_ep_call_found(ep);
	tq_lock_let_pass(&ep->lock);
}

int tq_progress(struct tq_ep *ep)
{
	int events;

	if (!tq_trylock(&ep->lock)) {
		/* The holder makes progress, and may be waiting for this core. */
		sched_yield();
		return 0;
	}
	events = tq_ep_begin_progress(ep);
	tq_ep_end_progress(ep);
	return events;
}

void tq_ep_progress(struct tq_ep *ep)
{
	int events = tq_ep_begin_progress(ep);

	end_unlock(ep);
	/* The process that is waited for may need this core. */
	if (events <= 0)
		sched_yield();
	tq_lock(&ep->lock);
}
