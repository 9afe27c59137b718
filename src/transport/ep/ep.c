/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint: opening and closing, peers. */
#include "ep/objects.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "ep/progress.h"
#include "ep/service.h"
#include "ep/share.h"
#include "net/adapter/choose.h"
#include "net/adapter/mem.h"
#include "net/adapter/srq.h"
#include "net/channel/control.h"
#include "net/channel/rdma.h"
#include "net/connections.h"
#include "net/links.h"
#include "net/net.h"
#include "net/peers/link.h"
#include "proto/common/objects.h"
#include "proto/core.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* A peer, and the memory of its name. */
struct tq_ep_peer {
	struct tq_peer peer;
	struct tq_ep_peer *next, *prev;
	char name[];
};

static void lock(struct tq_ep *ep)
{
	tq_lock(&ep->lock);
}

static void unlock(struct tq_ep *ep)
{
	tq_ep_unlock(ep);
}

/* ---- opening ---- */

static int copy_job(struct tq_ep *ep, const struct tq_job *job)
{
	ep->job = *job;
	ep->job.dir = strdup(job->dir ? job->dir : "/tmp");
	ep->job.name = strdup(job->name ? job->name : "a process");
	return ep->job.dir && ep->job.name ? 0 : -ENOMEM;
}

static void ep_free(struct tq_ep *ep)
{
	struct tq_ep_peer *ep_peer, *next;

	DL_FOREACH_SAFE(ep->peers, ep_peer, next)
		free(ep_peer);
	free((char *)ep->job.dir);
	free((char *)ep->job.name);
	free(ep);
}

static void init_net(struct tq_ep *ep, const struct tq_mr_cache *cache)
{
	struct tq_net *net = &ep->net;

	if (cache)
		ep->cache = *cache;
	net->lock = &ep->lock;
	net->core = &ep->core;
	net->stats = &ep->stats;
	net->params = &ep->params;
	net->job = &ep->job;
	net->cache = cache ? &ep->cache : NULL;
	net->xrcd_fd = -1;
}

int tq_ports(const struct tq_params *params, const struct tq_job *job, struct tq_port *ports,
	     unsigned room)
{
	struct tq_net *net = calloc(1, sizeof(*net));
	int rc;

	if (!net)
		return -ENOMEM;
	net->params = params;
	net->job = job;
	rc = tq_device_list(net, ports, room);
	free(net);
	return rc;
}

int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **opened)
{
	struct tq_ep *ep = calloc(1, sizeof(*ep));
	int error;

	if (!ep)
		return -ENOMEM;
	ep->pid = getpid();
	ep->arrivals_tail = &ep->arrivals;
	ep->params = *params;
	error = copy_job(ep, job);
	if (error)
		goto free_ep;
	init_net(ep, cache);
	/* With the lock, as the cache may be asked for room. */
	tq_lock(&ep->lock);
	error = tq_net_open(&ep->net);
	tq_unlock(&ep->lock);
	if (error)
		goto free_ep;
	tq_core_init(&ep->core, &tq_net_ops, &ep->net, &ep->net.limits, &ep->params, &ep->stats);
	ep->core.lock = &ep->lock;
	ep->core.send_pending = ep->job.send_pending;
	if (ep->params.service_thread) {
		error = tq_service_start(ep);
		if (error)
			goto close_net;
	}
	tq_share_open(ep);
	*opened = ep;
	return 0;
close_net:
	tq_core_destroy(&ep->core);
	tq_net_close(&ep->net);
free_ep:
	ep_free(ep);
	return error;
}

const void *tq_address(const struct tq_ep *ep, size_t *len)
{
	return tq_connections_address((struct tq_net *)&ep->net, len);
}

const char *tq_device_text(const struct tq_ep *ep)
{
	return ep->net.dev.text;
}

uint64_t tq_counter(const struct tq_ep *ep, unsigned i)
{
	return tq_stats_value(&ep->stats, i);
}

uint64_t tq_counter_high(const struct tq_ep *ep, unsigned i)
{
	return tq_stats_high(&ep->stats, i);
}

/* ---- closing ---- */

/* Quiesces all lanes. Returns true if all messages are delivered. */
static bool quiesce(struct tq_ep *ep)
{
	/* This comes first, because the protocol waits for the completions that it forces. */
	bool control = tq_control_quiesce(&ep->net);

	return control && tq_rdma_is_idle(&ep->net) && tq_core_is_idle(&ep->core) &&
	       tq_connections_are_settled(&ep->net);
}

int tq_flush(struct tq_ep *ep)
{
	uint64_t failures;
	int rc;

	if (getpid() != ep->pid)
		return -EPERM;
	lock(ep);
	failures = ep->net.failures;
	while (!quiesce(ep))
		tq_ep_progress(ep);
	rc = ep->net.failures == failures ? 0 : -EIO;
	unlock(ep);
	return rc;
}

/* Makes progress while goodbyes are sent and answered. This poll looks for the ends of datagrams,
 * and other work than completions is done with it, because timers repeat goodbyes. */
static void progress_leaving(struct tq_ep *ep)
{
	ep->net.scq.look = true;
	ep->polls_since_work = TQ_EP_QUIET;
	tq_ep_progress(ep);
}

void tq_close(struct tq_ep *ep)
{
	if (getpid() != ep->pid)
		return; /* queues and memory of the device are the parent's */
	tq_share_close(ep);
	lock(ep);
	while (!quiesce(ep))
		tq_ep_progress(ep);
	/* A late CREDIT to a queue that is gone would break the sender's lane, which other
	 * processes of this node may still need. */
	tq_links_leave(&ep->net);
	while (!tq_links_have_left(&ep->net) || tq_srqs_has_withdrawn(&ep->net) ||
	       !tq_connections_are_settled(&ep->net))
		progress_leaving(ep);
	unlock(ep);
	tq_service_stop(ep);
	/* The thread may have seen requests end. */
	lock(ep);
	tq_ep_complete_unlock(ep);
	lock(ep);
	tq_ep_release_completed(ep);
	/* The protocol gives its objects of the network back; no completion is looked at any
	 * more. */
	tq_core_destroy(&ep->core);
	tq_net_close(&ep->net);
	tq_unlock(&ep->lock);
	ep_free(ep);
}

/* ---- peers ---- */

static bool is_own(const struct tq_ep *ep, const void *address, size_t len)
{
	size_t own_len;
	const void *own = tq_address(ep, &own_len);

	return len == own_len && !memcmp(address, own, len);
}

/* Fails a new peer if its process had asked for a connection that has failed. The link's failure
 * was reported while it had no peer, and isn't reported again. */
static void fail_if_reported(struct tq_ep *ep, struct tq_peer *peer)
{
	if (!tq_link_is_logged(peer->link))
		return;
	tq_log(&ep->job, TQ_LOG_ERROR,
	       "The connection to %s failed before that process was added as a peer.",
	       tq_link_name(peer->link));
	tq_core_on_peer_failed(&ep->core, peer);
}

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **added)
{
	size_t size = strlen(name ? name : "") + 1;
	struct tq_ep_peer *ep_peer = calloc(1, sizeof(*ep_peer) + size);
	struct tq_link *link;
	int error;

	if (!ep_peer)
		return -ENOMEM;
	memcpy(ep_peer->name, name ? name : "", size);
	lock(ep);
	ep_peer->peer.self = is_own(ep, address, len);
	error = tq_link_add(&ep->net, address, len, &ep_peer->peer, ep_peer->name, &link);
	if (error)
		goto free_peer;
	error = tq_core_peer_init(&ep->core, &ep_peer->peer, link, link->node);
	if (error)
		goto remove_link;
	fail_if_reported(ep, &ep_peer->peer);
	DL_APPEND(ep->peers, ep_peer);
	unlock(ep);
	*added = &ep_peer->peer;
	return 0;
remove_link:
	tq_link_remove(&ep->net, link);
free_peer:
	unlock(ep);
	free(ep_peer);
	return error;
}

/* Quiesces the lanes of the peer's node. Returns true if nothing is under way to or from the peer.
 * Sends to other peers don't count: they may wait for long, and for what the caller does next. */
static bool quiesce_peer(struct tq_ep *ep, const struct tq_peer *peer)
{
	/* This comes first, because the protocol waits for the completions that it forces. */
	bool control = tq_control_quiesce_link(&ep->net, peer->link);

	return control && tq_core_peer_is_idle(peer);
}

/* Quiesces the lanes of all peers' nodes at the same time. Returns true if no peer has anything
 * under way. */
static bool quiesce_peers(struct tq_ep *ep, struct tq_peer *const peers[], size_t n)
{
	bool idle = true;

	for (size_t i = 0; i < n; i++)
		idle &= quiesce_peer(ep, peers[i]);
	return idle;
}

static bool have_all_left(const struct tq_ep *ep, struct tq_peer *const peers[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!tq_link_has_left(&ep->net, peers[i]->link))
			return false;
	}
	return true;
}

/* Gives up the connections to peers, which have left, that the adapter still reads from. Returns
 * true if there are none. A message that came before a peer's BYE_ACK may have started a read, and
 * so may a copy that failed. */
static bool end_reads(struct tq_ep *ep, struct tq_peer *const peers[], size_t n)
{
	bool ended = true;

	/* Copies data that the service thread has left. */
	while (tq_core_has_copies(&ep->core))
		tq_core_poll(&ep->core);
	for (size_t i = 0; i < n; i++) {
		if (tq_core_peer_is_idle(peers[i]))
			continue;
		tq_link_abandon(&ep->net, peers[i]->link);
		ended = false;
	}
	return ended;
}

static void peer_free(struct tq_ep *ep, struct tq_peer *peer)
{
	struct tq_ep_peer *ep_peer = container_of(peer, struct tq_ep_peer, peer);

	if (tq_core_peer_fini(&ep->core, peer))
		tq_log(&ep->job, TQ_LOG_DEBUG, "%s was removed before a receive from it had ended.",
		       tq_link_name(peer->link));
	tq_link_remove(&ep->net, peer->link);
	DL_DELETE(ep->peers, ep_peer);
	free(ep_peer);
}

void tq_peers_remove(struct tq_peer *const peers[], size_t n)
{
	struct tq_ep *ep;

	if (!n)
		return;
	ep = tq_ep_of(peers[0]->core);
	lock(ep);
	while (!quiesce_peers(ep, peers, n))
		tq_ep_progress(ep);
	/* All goodbyes go before the first answer is awaited: each answer takes until its
	 * process gets a core. */
	for (size_t i = 0; i < n; i++)
		tq_link_leave(&ep->net, peers[i]->link);
	while (!have_all_left(ep, peers, n) || !end_reads(ep, peers, n))
		progress_leaving(ep);
	for (size_t i = 0; i < n; i++)
		peer_free(ep, peers[i]);
	unlock(ep);
}

void tq_peer_remove(struct tq_peer *peer)
{
	tq_peers_remove(&peer, 1);
}
