/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint: what the library's user holds. One lock guards the protocol and the network below;
 * callbacks are called without it.
 */
#ifndef TQ_EP_EP_H
#define TQ_EP_EP_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/lock.h"
#include "ep/service.h"
#include "net/net.h"
#include "proto/core.h"

struct tq_ep {
	struct tq_lock lock;
	/* Polls since all was looked at, more or less. */
	unsigned quiet;
	struct tq_core core;
	struct tq_net net;
	/* Requests whose complete() has been called; they are released when the lock is taken
	 * anyway. */
	_Atomic(struct tq_req *) completed_list;
	/* Calls of tq_progress(): the service thread sees by it whether the application looks after
	 * things itself. */
	_Atomic uint64_t progress;
	struct tq_service *service; /* NULL: no thread */
	struct tq_stats stats;
	struct tq_params params;
	struct tq_job job; /* its strings are ours */
	struct tq_mr_cache cache;
	struct tq_ep_peer *peers;  /* list */
	pid_t pid;                 /* a child that was forked must not touch the endpoint */
	struct tq_ep *next, *prev; /* share.c */
};

/* Most completions that are handled in a go, so that the lock is free now and then. */
#define TQ_EP_BUDGET 64
/* What is not a completion is looked at after each poll that found one, and after so many that
 * found none. */
#define TQ_EP_QUIET 64

/*
 * Copies what the service thread took in, which came before what is polled or received now: that
 * must not be there first. MPI allows it, but osc/pt2pt doesn't look whether the answer has come
 * when it has the acknowledgement that was sent after it.
 */
static inline int tq_ep_copy(struct tq_ep *ep)
{
	return tq_core_has_copies(&ep->core) ? tq_core_poll(&ep->core) : 0;
}

static inline struct tq_ep *tq_ep_of(struct tq_core *core)
{
	return (struct tq_ep *)((char *)core - offsetof(struct tq_ep, core));
}

/* Does something go on when sends complete? RECALLED is due then, or there is room for a grant, or
 * for more of what the bulk lane takes. */
static inline bool tq_ep_awaits_sends(const struct tq_ep *ep)
{
	return tq_core_awaits_sends(&ep->core) || ep->net.bulk_busy;
}

/* Called with the lock, before it is given away: is there something that the thread must look after
 * if the application doesn't come back soon? */
static inline void tq_service_hint(struct tq_ep *ep)
{
	if (ep->service && !ep->service->timed && (tq_ep_awaits_sends(ep) || ep->net.nrequests))
		tq_service_wake(ep);
}

static inline void tq_ep_unlock(struct tq_ep *ep)
{
	tq_service_hint(ep);
	tq_unlock(&ep->lock);
}

#endif
