/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint, which the library's user holds. One lock guards the protocol and the network
 * below; callbacks are called without it.
 */
#ifndef TQ_EP_EP_H
#define TQ_EP_EP_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include <tupleq/look_up.h>

#include "base/lock.h"
#include "ep/service.h"
#include "net/objects.h"
#include "proto/core.h"
#include "proto/req.h"

struct tq_ep {
	struct tq_lock lock;
	/* Polls since other work than completions was last done; TQ_EP_QUIET forces the next. */
	unsigned polls_since_work;
	struct tq_core core;
	struct tq_net net;
	/* Requests whose complete() has been called; they are freed when the lock is taken
	 * anyway. */
	_Atomic(struct tq_req *) completed_list;
	/*
	 * Ended requests of contexts with match bits. One thread at a time (`calling_done`: there
	 * is one) calls done() for them, until there are no more.
	 */
	struct tq_req *arrivals, **arrivals_tail;
	bool calling_done;
	bool ended_waits; /* requests that have ended wait until the log has said what failed */
	/* Calls of tq_progress(), and posts that polled, which tell the service thread that the
	 * application makes progress. */
	_Atomic uint64_t progress;
	struct tq_service *service; /* NULL: no thread */
	struct tq_stats stats;
	struct tq_params params;
	struct tq_job job; /* its strings are the endpoint's */
	struct tq_mr_cache cache;
	tq_found *found; /* NULL: nobody looks up */
	void *found_arg;
	struct tq_ep_peer *peers;  /* list */
	pid_t pid;                 /* a child that was forked must not touch the endpoint */
	struct tq_ep *next, *prev; /* share.c */
};

/* Completions that are handled at most in one go. A choice: other threads wait for the lock
 * meanwhile, and each go looks at other work once. */
#define TQ_EP_BUDGET 64
/* Other work than completions is looked at after each poll that found some, and after TQ_EP_QUIET
 * polls that found none. */
#define TQ_EP_QUIET 64

/*
 * Copies data that the service thread took in, before anything is polled or received that came
 * later, because messages of one sender become visible in the order in which they were sent. MPI
 * asks for less, but users rely on that order. Returns how much was done. Called with the lock.
 */
static inline int tq_ep_copy(struct tq_ep *ep)
{
	return tq_core_has_copies(&ep->core) ? tq_core_poll(&ep->core) : 0;
}

static inline struct tq_ep *tq_ep_of(struct tq_core *core)
{
	return (struct tq_ep *)((char *)core - offsetof(struct tq_ep, core));
}

/* Returns true if work goes on when sends complete, or when the peer has room again: RECALLED is
 * due then, or a message, a write or more of what the bulk lane takes can be posted. */
static inline bool tq_ep_awaits_sends(const struct tq_ep *ep)
{
	return tq_core_awaits_sends(&ep->core) || ep->net.bulk_busy || ep->net.waiting ||
	       ep->net.putting || (ep->net.owing && ep->net.credit_waits);
}

/* Returns true if the service thread is to go on with copies. */
static inline bool tq_ep_service_copies(const struct tq_ep *ep)
{
	return ep->service->completes && tq_core_has_copies(&ep->core);
}

/* Returns true if the service thread sleeps beyond the time at which direct messages that wait are
 * looked after. */
static inline bool tq_ep_service_reminds(const struct tq_ep *ep)
{
	return ep->core.reminds && ep->net.remind_timer.due < ep->service->wakes_at;
}

/* Returns true if there are requests or look-ups that have ended, and the service thread is to
 * complete them. */
static inline bool tq_ep_service_completes(struct tq_ep *ep)
{
	return ep->service->completes &&
	       ((tq_core_has_ended(&ep->core) && !ep->ended_waits) ||
		atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed));
}

/* Wakes the service thread, before the lock is released, if there is work that the application
 * may not come back for soon. */
static inline void tq_service_hint(struct tq_ep *ep)
{
	if (!ep->service)
		return;
	if ((!ep->service->sends_pause && tq_ep_awaits_sends(ep)) ||
	    (ep->service->wakes_at == UINT64_MAX && ep->net.ndatagrams) ||
	    tq_ep_service_reminds(ep) || tq_ep_service_copies(ep) || tq_ep_service_completes(ep))
		tq_service_wake(ep);
}

static inline void tq_ep_unlock(struct tq_ep *ep)
{
	tq_service_hint(ep);
	tq_unlock(&ep->lock);
}

#endif
