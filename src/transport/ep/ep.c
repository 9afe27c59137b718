/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint: opening and closing, peers, progress, and the lock around each call. */
#include "ep/ep.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	struct tq_ep_peer *p, *next;

	DL_FOREACH_SAFE(ep->peers, p, next)
		free(p);
	free((char *)ep->job.dir);
	free((char *)ep->job.name);
	free(ep);
}

static void init_net(struct tq_ep *ep, const struct tq_mr_cache *cache)
{
	struct tq_net *net = &ep->net;

	if (cache)
		ep->cache = *cache;
	net->core = &ep->core;
	net->stats = &ep->stats;
	net->params = &ep->params;
	net->job = &ep->job;
	net->cache = cache ? &ep->cache : NULL;
	net->xrcd_fd = -1;
}

int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **opened)
{
	struct tq_ep *ep = calloc(1, sizeof(*ep));
	int error;

	if (!ep)
		return -ENOMEM;
	ep->pid = getpid();
	ep->params = *params;
	error = copy_job(ep, job);
	if (error)
		goto free_ep;
	init_net(ep, cache);
	error = tq_net_open(&ep->net);
	if (error)
		goto free_ep;
	tq_core_init(&ep->core, &tq_net_ops, &ep->net, &ep->net.limits, &ep->params, &ep->stats);
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
	return tq_conn_address((struct tq_net *)&ep->net, len);
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

int tq_mr_register(struct tq_ep *ep, void *addr, size_t len, struct tq_mr **mr)
{
	return tq_mem_register(&ep->net, addr, len, mr);
}

/* ---- progress ---- */

/* Called with the lock, when the user is to be told of errors: the log has said before what failed.
 */
static void say_why(struct tq_ep *ep)
{
	tq_conn_report(&ep->net);
}

static int started(struct tq_ep *ep, int rc)
{
	if (rc == -EIO)
		say_why(ep);
	return rc;
}

/* The requests that complete() was called for go back. Called with the lock. */
static void release_told(struct tq_ep *ep)
{
	struct tq_req *req, *next;

	if (!atomic_load_explicit(&ep->told, memory_order_relaxed))
		return;
	for (req = atomic_exchange_explicit(&ep->told, NULL, memory_order_acquire); req;
	     req = next) {
		next = req->next;
		tq_core_release(req);
	}
}

/* Called without the lock; several threads may be at it, each with a list of its own. */
static void tell(struct tq_ep *ep, struct tq_req *list)
{
	struct tq_req *req, *last = list;

	for (req = list; req; req = req->next) {
		ep->job.complete(req->user, &req->status);
		last = req;
	}
	last->next = atomic_load_explicit(&ep->told, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&ep->told, &last->next, list,
						      memory_order_release, memory_order_relaxed))
		;
}

static int poll_cq(struct tq_ep *ep, int (*poll)(struct tq_net *net, int budget))
{
	uint64_t began = tq_core_polls(&ep->core);
	int events = poll(&ep->net, TQ_EP_BUDGET);

	/* What other polls leave in the queue was complete, too. */
	if (ep->net.scq.drained)
		tq_core_polled(&ep->core, began);
	return events;
}

/*
 * Called with the lock. What is due besides completions is done after each poll that found some,
 * and now and then; but when a request has ended its owner is told first, who is likely to wait for
 * just that.
 */
static int poll_all(struct tq_ep *ep)
{
	int events = poll_cq(ep, tq_cq_poll);

	if (++ep->quiet < TQ_EP_QUIET && !tq_srqs_withdrawn(&ep->net)) {
		if (events == 0)
			return 0;
		if (ep->core.ended) {
			ep->quiet += TQ_EP_QUIET / 4;
			return events;
		}
	}
	ep->quiet = 0;
	release_told(ep);
	return events + tq_net_work(&ep->net) + tq_core_poll(&ep->core);
}

/* Called with the lock, returns without it. */
static int progress_unlock(struct tq_ep *ep)
{
	struct tq_req *ended = NULL;
	int events;

	/* Only holders of the lock write. */
	atomic_store_explicit(&ep->progress,
			      atomic_load_explicit(&ep->progress, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	events = poll_all(ep);
	if (ep->core.ended) {
		say_why(ep);
		ended = tq_core_ended(&ep->core);
	}
	unlock(ep);
	if (ended)
		tell(ep, ended);
	return events;
}

int tq_progress(struct tq_ep *ep)
{
	if (!tq_trylock(&ep->lock))
		return 0;
	return progress_unlock(ep);
}

/* Called and returns with the lock. */
static void progress_again(struct tq_ep *ep)
{
	/* Who is waited for may need this core. */
	if (progress_unlock(ep) <= 0)
		sched_yield();
	lock(ep);
}

static bool all_delivered(struct tq_ep *ep)
{
	/* First, as it has completions reported that the protocol waits for. */
	bool control = tq_control_idle(&ep->net);

	return control && tq_rdma_idle(&ep->net) && tq_core_idle(&ep->core);
}

int tq_flush(struct tq_ep *ep)
{
	uint64_t failures;
	int rc;

	if (getpid() != ep->pid)
		return -EPERM;
	lock(ep);
	failures = ep->net.failures;
	while (!all_delivered(ep))
		progress_again(ep);
	rc = ep->net.failures == failures ? 0 : -EIO;
	unlock(ep);
	return rc;
}

void tq_close(struct tq_ep *ep)
{
	struct tq_req *ended;

	if (getpid() != ep->pid)
		return; /* the parent's queues and memory of the device */
	tq_share_close(ep);
	lock(ep);
	while (!all_delivered(ep))
		progress_again(ep);
	/* A late CREDIT to a queue that is gone would break the sender's lane, which others of this
	 * node may still need. */
	tq_conn_leave(&ep->net);
	while (!tq_conn_left(&ep->net) || tq_srqs_withdrawn(&ep->net))
		progress_again(ep);
	unlock(ep);
	tq_service_stop(ep);
	/* What the thread saw end. */
	ended = tq_core_ended(&ep->core);
	if (ended)
		tell(ep, ended);
	release_told(ep);
	/* The protocol gives back what it has of the network; no completion is looked at any more.
	 */
	tq_core_destroy(&ep->core);
	tq_net_close(&ep->net);
	ep_free(ep);
}

/* ---- peers ---- */

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **added)
{
	size_t size = strlen(name ? name : "") + 1;
	struct tq_ep_peer *p = calloc(1, sizeof(*p) + size);
	struct tq_link *link;
	int error;

	if (!p)
		return -ENOMEM;
	memcpy(p->name, name ? name : "", size);
	lock(ep);
	tq_core_peer_init(&ep->core, &p->peer);
	p->peer.name = p->name;
	error = tq_link_add(&ep->net, address, len, &p->peer, &link);
	if (!error) {
		p->peer.link = link;
		DL_APPEND(ep->peers, p);
	}
	unlock(ep);
	if (error) {
		free(p);
		return error;
	}
	*added = &p->peer;
	return 0;
}

/* Into their buffers the HCA writes. */
static bool is_reading(const struct tq_pair *pair)
{
	const struct tq_rreq *r;

	DL_FOREACH2(pair->active, r, pnext) {
		if (r->state == TQ_RREQ_READING)
			return true;
	}
	return false;
}

/* Sends to other peers may wait for long, and for what the caller does next. */
static bool peer_is_idle(struct tq_ep *ep, const struct tq_peer *peer)
{
	const struct tq_pair *pair;
	bool control = tq_link_idle(&ep->net, peer->link);

	for (pair = peer->pairs; pair; pair = pair->pnext) {
		if (pair->sreqs || is_reading(pair))
			return false;
	}
	return control;
}

void tq_peer_remove(struct tq_peer *peer)
{
	struct tq_ep_peer *p = container_of(peer, struct tq_ep_peer, peer);
	struct tq_ep *ep = tq_ep_of(peer->core);

	lock(ep);
	while (!peer_is_idle(ep, peer))
		progress_again(ep);
	tq_link_leave(&ep->net, peer->link);
	while (!tq_link_left(peer->link))
		progress_again(ep);
	tq_core_peer_fini(&ep->core, peer);
	tq_link_remove(&ep->net, peer->link);
	DL_DELETE(ep->peers, p);
	unlock(ep);
	free(p);
}

/* ---- contexts ---- */

int tq_ctx_add(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers, int rank,
	       unsigned flags, struct tq_ctx **ctx)
{
	int rc;

	lock(ep);
	rc = tq_core_ctx_add(&ep->core, id, peers, npeers, rank, flags, ctx);
	unlock(ep);
	return rc;
}

void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);

	lock(ep);
	tq_core_ctx_set_flags(ctx, flags);
	unlock(ep);
}

void tq_ctx_remove(struct tq_ctx *ctx)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);

	lock(ep);
	tq_core_ctx_remove(ctx);
	unlock(ep);
}

/* ---- messages ---- */

unsigned tq_max_pieces(const struct tq_ep *ep, uint64_t len)
{
	const struct tq_wire_limits *l = &ep->net.limits;

	if (len <= (uint64_t)ep->params.eager_limit)
		return 0;
	return l->max_sge > l->max_srq_sge ? l->max_sge : l->max_srq_sge;
}

/*
 * A short message that can't go eagerly now goes by RTS, and its copy stays until it is received:
 * perhaps after others that would find no room any more. But a peer that returns credit, or takes
 * the tuple back from its queue, takes it in soon, whatever its user receives.
 */
static bool pays_to_wait(struct tq_ep *ep, struct tq_ctx *ctx, int rank, int32_t tag, uint64_t len)
{
	uint64_t copies = atomic_load_explicit(&ep->stats.copy_bytes, memory_order_relaxed);

	if (copies <= (uint64_t)ep->params.copy_pool / 2 || len > (uint64_t)ep->params.eager_limit)
		return false;
	if (rank < 0 || rank >= ctx->npeers || ctx->peers[rank]->failed)
		return false;
	return tq_core_goes_eager_soon(ctx, rank, tag) || tq_control_moves(ctx->peers[rank]->link);
}

int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	/* Longer ones are not worth a look. */
	if (flags & TQ_SEND_NOW && buf->len > (uint64_t)ep->params.eager_limit)
		return -EAGAIN;
	lock(ep);
	/* One that posts and posts may find a queue full of what is complete. */
	if (ep->net.scq.look && poll_cq(ep, tq_cq_poll_sends))
		ep->quiet = TQ_EP_QUIET;
	/* And it would not see the credit that comes back. */
	if (tq_control_waits(&ep->net))
		poll_all(ep);
	if (flags & TQ_SEND_PATIENT && !(flags & TQ_SEND_SYNC) &&
	    pays_to_wait(ep, ctx, rank, tag, buf->len)) {
		unlock(ep);
		return -EAGAIN;
	}
	rc = started(ep, tq_core_send(ctx, rank, tag, buf, flags, user, req));
	unlock(ep);
	return rc;
}

int tq_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
	    struct tq_req **req, struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	lock(ep);
	rc = started(ep, tq_core_recv(ctx, rank, tag, buf, user, req, status));
	unlock(ep);
	return rc;
}

int tq_cancel(struct tq_req *req)
{
	struct tq_ep *ep = tq_ep_of(req->core);
	int rc;

	lock(ep);
	rc = tq_core_cancel(req);
	unlock(ep);
	return rc;
}

int tq_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_progress(ep);
	lock(ep);
	rc = started(ep, tq_core_probe(ctx, rank, tag, status));
	unlock(ep);
	return rc;
}

int tq_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
	      struct tq_msg **msg)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_progress(ep);
	lock(ep);
	rc = started(ep, tq_core_mprobe(ctx, rank, tag, status, msg));
	unlock(ep);
	return rc;
}

int tq_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
	     struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(tq_msg_core(msg));
	int rc;

	lock(ep);
	rc = started(ep, tq_core_mrecv(msg, buf, user, req, status));
	unlock(ep);
	return rc;
}

int tq_tuple_infos(struct tq_ep *ep, struct tq_tuple_info *info, int n)
{
	int rc;

	lock(ep);
	rc = tq_core_tuple_infos(&ep->core, info, n);
	unlock(ep);
	return rc;
}
