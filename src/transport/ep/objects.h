/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint, which the library's user holds. One lock guards the protocol and the network
 * below; callbacks are called without it.
 */
#ifndef TQ_EP_OBJECTS_H
#define TQ_EP_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tupleq/look_up.h>

#include "base/lock.h"
#include "net/adapter/objects.h"
#include "net/channel/rdma.h"
#include "proto/common/objects.h"
#include "proto/core.h"

/* The service thread (service.c). */
struct tq_service {
	pthread_t thread;
	pthread_mutex_t calls; /* the thread holds it while it calls the user's functions */
	int wake;              /* eventfd */
	_Atomic bool stop;
	uint64_t wakes_at; /* under the lock: the time (ns) at which the thread looks again by
			      itself; UINT64_MAX: it won't; 0: it was woken */
	enum tq_thread_duty duty; /* under the lock: tq_thread_progress() */
	uint64_t seen;            /* the thread's: value of tq_ep.progress */
	uint64_t pause;           /* the thread's: its last pause (ns) for an application that makes
				     progress; 0: none */
	uint64_t sends_pause; /* under the lock: its pause (ns) while sends are waited for; 0: none
				 are, and it wasn't woken */
};

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

/* The service thread's first pause (ns) while sends are waited for, or room at a peer; it is twice
 * as long after each wake-up in which nothing has happened. Completions and CREDIT wake the thread,
 * but for completions that came before the queue was armed, and credit that came with a message
 * that wasn't solicited. */
#define TQ_EP_SENDS_PAUSE UINT64_C(1000000)

static inline struct tq_ep *tq_ep_of(struct tq_core *core)
{
	return (struct tq_ep *)((char *)core - offsetof(struct tq_ep, core));
}

/* ---- the end of a turn with the lock: what is left to do is the service thread's, if there is one
 * ---- */

/* Wakes the thread, which exists, so that it looks at once for what is to be done. Called with the
 * lock. */
void tq_ep_wake_service(struct tq_ep *ep);
/* Wakes the thread, which exists, if there is work that the application may not come back for soon.
 * Called with the lock, before that is released. */
void tq_ep_hint_service(struct tq_ep *ep);

/* Returns true if work goes on when sends complete, or when the peer has room again: RECALLED is
 * due then, or a message, a write or more of what the bulk lane takes can be posted; or, with
 * TQ_THREAD_SERVED, a read or a write has ended, of which the peer is told. */
static inline bool tq_ep_awaits_sends(const struct tq_ep *ep)
{
	return (ep->service->duty == TQ_THREAD_SERVED && !tq_rdma_is_idle(&ep->net)) ||
	       tq_core_awaits_sends(&ep->core) || ep->net.bulk_busy || ep->net.waiting ||
	       ep->net.putting || (ep->net.owing && ep->net.credit_waits);
}

/* Returns true if the service thread completes requests. */
static inline bool tq_ep_thread_completes(const struct tq_ep *ep)
{
	return ep->service->duty != TQ_THREAD_OWN;
}

/* Returns true if the end of each request, or of one that has ended, wakes the service thread. */
static inline bool tq_ep_thread_awaits_end(const struct tq_ep *ep)
{
	return ep->service->duty == TQ_THREAD_ALL || ep->core.served;
}

/* Returns true if the service thread is to go on with copies. */
static inline bool tq_ep_service_copies(const struct tq_ep *ep)
{
	return tq_ep_thread_completes(ep) && tq_core_has_copies(&ep->core);
}

/* Returns true if requests or look-ups that have ended, copies, or operations that end may be the
 * service thread's. */
static inline bool tq_ep_thread_may_complete(const struct tq_ep *ep)
{
	return tq_ep_thread_awaits_end(ep) || !tq_rdma_is_idle(&ep->net) ||
	       tq_core_has_copies(&ep->core) ||
	       atomic_load_explicit(&ep->net.found_waiting, memory_order_relaxed);
}

/* Returns true if there may be something for the service thread to do. Mostly there isn't, which
 * this function finds out with few instructions: each call comes here. */
static inline bool tq_ep_has_service(const struct tq_ep *ep)
{
	const struct tq_core *core = &ep->core;
	const struct tq_net *net = &ep->net;

	if (!ep->service)
		return false;
	if (tq_ep_thread_completes(ep) && tq_ep_thread_may_complete(ep))
		return true;
	return (core->nrecalling | core->ngranted | core->nunwatched | net->ndatagrams |
		core->reminds) ||
	       net->bulk_busy || net->waiting || net->putting || net->owing;
}

static inline void tq_ep_unlock(struct tq_ep *ep)
{
	if (tq_ep_has_service(ep))
		tq_ep_hint_service(ep);
	tq_unlock(&ep->lock);
}

#endif
