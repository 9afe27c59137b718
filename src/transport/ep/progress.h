/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of an endpoint, and the results of look-ups on the way to the user. */
#ifndef TQ_EP_PROGRESS_H
#define TQ_EP_PROGRESS_H

#include "ep/objects.h"

/* Calls found() for the results of look-ups. Returns true if there were some. Called without the
 * lock. */
bool tq_ep_call_found(struct tq_ep *ep);

/*
 * Copies data that the service thread took in, before anything is polled or received that came
 * later, because messages of one sender become visible in the order in which they were sent. MPI
 * asks for less, but users rely on that order. Returns how much was done. Called with the lock.
 */
static inline int tq_ep_copy(struct tq_ep *ep)
{
	return tq_core_has_copies(&ep->core) ? tq_core_poll(&ep->core) : 0;
}

/* Polls for completions, and now and then for what else is due. Returns the number of events.
 * Called with the lock. */
int tq_ep_poll(struct tq_ep *ep);
/* Reaps finished sends, and goes on with control messages and puts that wait. */
void tq_ep_poll_posted(struct tq_ep *ep);
/* Polls before a send or a put if need be, for callers that only post and never poll. */
static inline void tq_ep_make_room(struct tq_ep *ep)
{
	if (ep->net.scq.look || ep->net.waiting || ep->net.putting)
		tq_ep_poll_posted(ep);
}
/* Calls complete() and done() for the requests that have ended. Called with the lock, returns
 * without it. Returns true if it has called any. */
bool tq_ep_complete_unlock(struct tq_ep *ep);
/* Begin and end a call that makes progress. The first function polls, with the lock, and returns
 * the number of events; the second one calls the callbacks, and returns without the lock. */
int tq_ep_begin_progress(struct tq_ep *ep);
void tq_ep_end_progress(struct tq_ep *ep);
/* Makes progress, callbacks included. Called with the lock, which it releases meanwhile. */
void tq_ep_progress(struct tq_ep *ep);
/* Frees the requests that complete() or done() was called for. Called with the lock. */
void tq_ep_release_completed(struct tq_ep *ep);

#endif
