/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service thread answers connection requests and recalls while the application isn't in the
 * library, grants and sends messages that found no hold lane, and sends what the application
 * regards as sent: messages and puts that wait for room, and the data of copied messages. The
 * thread sleeps on the completion channel. Three kinds of completions wake it: those of solicited
 * messages, which need an answer from the library and not from the application; those of sends,
 * while work goes on when sends complete; and those of sends that have failed.
 *
 * The protocol runs in its service mode then: user data are not touched (but buffers of
 * TQ_SEND_BUFFERED are read), and ended requests stay in the list for the application's next
 * tq_progress().
 *
 * With a duty (tq_thread_progress()) the thread does all that tq_progress() does, and no service
 * mode is needed. With TQ_THREAD_ALL everything wakes it. With TQ_THREAD_SERVED the same wakes it
 * as without a duty, where what a peer may wait for is solicited.
 */
#include "ep/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "ep/objects.h"
#include "ep/progress.h"
#include "net/channel/inbox.h"
#include "net/connections.h"
#include "net/net.h"
#include "proto/common/objects.h"

/* The least stack of the thread. A choice: 16 times what was seen in use. */
#define SERVICE_STACK ((size_t)256 << 10)

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

/* The time in which an application that is in the library would have called tq_progress()
 * again. */
#define BUSY_PROBE (50 * US)

/* While the application makes progress, it sees everything first: the thread then pauses for
 * BUSY_PROBE, and for twice as long each time, however many wake-ups there would be. An application
 * that computes in between leaves the library soon. */
#define BUSY_PAUSE_MAX (1 * MS)

/* The longest pause while sends are waited for. */
#define SENDS_PAUSE_MAX (32 * MS)

/* Rounds of polls after which others get the lock. */
#define ROUNDS 8

/* Polls everything for ROUNDS rounds at most, and sets *next to the time when more is due (ns from
 * now). Returns the number of events. Called with the lock. */
static int serve(struct tq_ep *ep, uint64_t *next)
{
	int n, rounds = 0, total = 0;

	ep->core.service = ep->net.service = !tq_ep_thread_completes(ep);
	do {
		/* A completion of a send may have woken the thread, with others in front of it. */
		ep->net.scq.look = true;
		n = tq_net_poll(&ep->net, TQ_EP_BUDGET);
		n += tq_core_poll(&ep->core);
		n += tq_connections_poll(&ep->net);
		total += n;
	} while (n > 0 && ++rounds < ROUNDS && !tq_ep_service_copies(ep));
	/* Long copies are made in parts, and messages may come as fast as they are handled: others
	 * get the lock in between. */
	*next = n > 0 || tq_ep_service_copies(ep) ? 0 : tq_connections_next(&ep->net);
	ep->core.service = ep->net.service = false;
	return total;
}

/* Serves once more, after `events` events in this wake-up, and decides when the thread looks again
 * by itself. Returns this time (ns from now). Called with the lock. */
static uint64_t serve_last(struct tq_ep *ep, int events)
{
	struct tq_service *service = ep->service;
	uint64_t now = tq_now(), next;

	events += serve(ep, &next);
	if (!tq_ep_awaits_sends(ep))
		service->sends_pause = 0;
	else if (events || !service->sends_pause)
		service->sends_pause = TQ_EP_SENDS_PAUSE;
	else if (service->sends_pause < SENDS_PAUSE_MAX)
		service->sends_pause *= 2;
	if (service->sends_pause && next > service->sends_pause)
		next = service->sends_pause;
	service->wakes_at = next == UINT64_MAX ? UINT64_MAX : now + next;
	return next;
}

/* Makes completions that come from now on make the channel readable, and senders to rings send a
 * datagram. Returns 0, or -errno. Called with the lock. */
static int arm(struct tq_ep *ep)
{
	bool all = ep->service->duty == TQ_THREAD_ALL;
	int error = ibv_req_notify_cq(ep->net.rcq.cq, !all);

	tq_inbox_sleep(&ep->net, all);
	/* Sends aren't solicited; but the completion of one that has failed makes an event.
	 * Messages that were posted behind it are to be posted again. */
	if (!error)
		error = ibv_req_notify_cq(ep->net.scq.cq, !all && !tq_ep_awaits_sends(ep));
	return -error;
}

static void ack_events(struct tq_ep *ep)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(ep->net.channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

/* Sleeps until there is something to do (if `woken`), or `ns` are over. Returns true if the
 * thread is to stop. */
static bool wait_for(struct tq_ep *ep, bool woken, uint64_t ns)
{
	struct tq_service *service = ep->service;
	struct pollfd fds[2] = {
		{.fd = service->wake, .events = POLLIN},
		{.fd = ep->net.channel->fd, .events = POLLIN},
	};
	struct timespec timeout = {(time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS))};
	eventfd_t n;

	ppoll(fds, woken ? 2 : 0, ns == UINT64_MAX ? NULL : &timeout, NULL);
	if (fds[0].revents)
		eventfd_read(service->wake, &n);
	return atomic_load(&service->stop);
}

/* Records how far the application's calls of tq_progress() have come. Returns true if there were
 * some since the last record. */
static bool record_progress(struct tq_ep *ep)
{
	uint64_t now = atomic_load_explicit(&ep->progress, memory_order_relaxed);
	bool busy = now != ep->service->seen;

	ep->service->seen = now;
	return busy;
}

/* Waits a moment if the application makes progress itself. Returns true if the thread is
 * to stop. */
static bool let_application_first(struct tq_ep *ep)
{
	struct tq_service *service = ep->service;

	if (!record_progress(ep))
		return false;
	if (wait_for(ep, false, BUSY_PROBE))
		return true;
	if (!record_progress(ep)) {
		service->pause = 0;
		return false;
	}
	service->pause = service->pause ? 2 * service->pause : BUSY_PROBE;
	if (service->pause > BUSY_PAUSE_MAX)
		service->pause = BUSY_PAUSE_MAX;
	return wait_for(ep, false, service->pause);
}

/* Completes requests, if that is the thread's task. Called with the lock, returns without it.
 * Returns true if there were some. */
static bool complete_unlock(struct tq_ep *ep)
{
	bool ended;

	if (!tq_ep_thread_completes(ep)) {
		tq_unlock(&ep->lock);
		return false;
	}
	pthread_mutex_lock(&ep->service->calls);
	tq_ep_release_completed(ep);
	ended = tq_ep_complete_unlock(ep);
	ended |= tq_ep_call_found(ep);
	pthread_mutex_unlock(&ep->service->calls);
	return ended;
}

static void *run(void *arg)
{
	struct tq_ep *ep = arg;
	bool broken = false, ended;
	uint64_t next;
	int events;

	for (;;) {
		ack_events(ep);
		tq_lock(&ep->lock);
		TQ_COUNT(&ep->stats, service_wakeups);
		events = serve(ep, &next);
		if (!broken && !ep->net.broken_reason && arm(ep)) {
			broken = true;
			tq_log(&ep->job, TQ_LOG_WARN,
			       "The service thread can't wait for completions: recalls are "
			       "answered, and messages that wait for room or a hold lane sent, "
			       "only "
			       "while the program is in the library.");
		}
		/* Completions between the last look and the arming need not make an event. */
		next = serve_last(ep, events);
		ended = complete_unlock(ep);
		tq_lock_let_pass(&ep->lock);
		/* An operation that a user's function has started may have ended already. */
		if (wait_for(ep, true, ended ? 0 : next) || let_application_first(ep))
			return NULL;
	}
}

/* Creates the thread with enough stack, also for the functions of the user, however little the
 * program chose for all threads (pthread_setattr_default_np(), ulimit -s). */
static int create_thread(pthread_t *thread, struct tq_ep *ep)
{
	pthread_attr_t attr;
	size_t size = 0;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &size);
	if (size < SERVICE_STACK)
		pthread_attr_setstacksize(&attr, SERVICE_STACK);
	error = pthread_create(thread, &attr, run, ep);
	pthread_attr_destroy(&attr);
	return error;
}

int tq_service_start(struct tq_ep *ep)
{
	struct tq_service *service = calloc(1, sizeof(*service));
	const char *limit = "open files (ulimit -n)";
	sigset_t all, old;
	int error;

	if (!service)
		return -ENOMEM;
	service->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->wake < 0) {
		error = errno;
		goto free_service;
	}
	service->wakes_at = UINT64_MAX;
	pthread_mutex_init(&service->calls, NULL);
	ep->service = service;
	limit = "processes (ulimit -u)";
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = create_thread(&service->thread, ep);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		goto close_wake;
	pthread_setname_np(service->thread, "tupleq-service");
	return 0;
close_wake:
	pthread_mutex_destroy(&service->calls);
	close(service->wake);
free_service:
	free(service);
	ep->service = NULL;
	tq_log(&ep->job, TQ_LOG_ERROR,
	       "The service thread can't be started: %s. Raise the limit of %s, or set "
	       "service_thread to 0: then recalls are answered, and messages that wait for room "
	       "sent, only while the program is in the library.",
	       strerror(error), limit);
	return -error;
}

int tq_thread_progress(struct tq_ep *ep, enum tq_thread_duty duty)
{
	struct tq_service *service = ep->service;

	if (getpid() != ep->pid)
		return -EPERM;
	if (!service)
		return -ENOTSUP;
	tq_lock(&ep->lock);
	service->duty = duty;
	tq_ep_wake_service(ep);
	tq_ep_unlock(ep);
	if (duty == TQ_THREAD_OWN && !pthread_equal(pthread_self(), service->thread)) {
		pthread_mutex_lock(&service->calls);
		pthread_mutex_unlock(&service->calls);
	}
	return 0;
}

void tq_service_stop(struct tq_ep *ep)
{
	struct tq_service *service = ep->service;

	if (!service)
		return;
	atomic_store(&service->stop, true);
	eventfd_write(service->wake, 1);
	pthread_join(service->thread, NULL);
	close(service->wake);
	pthread_mutex_destroy(&service->calls);
	free(service);
	ep->service = NULL;
}
