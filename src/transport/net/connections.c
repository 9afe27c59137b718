/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections as a whole: opening, what is due, closing. */
#include "net/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often the clock is read to see whether peers are to be checked. */
#define CHECK_POLLS 1024

uint64_t tq_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * TQ_MS + (uint64_t)t.tv_nsec;
}

int tq_connections_open(struct tq_net *net)
{
	struct tq_connections *connections = calloc(1, sizeof(*connections));
	uint32_t qpn, qkey;
	int error;

	net->connections = connections;
	if (!connections)
		return -ENOMEM;
	connections->numbers.stats = net->stats;
	connections->nonce = tq_random();
	connections->txid = tq_random();
	connections->due = UINT64_MAX;
	error = tq_oob_open(net, connections->nonce);
	if (error) {
		free(connections);
		net->connections = NULL;
		return error;
	}
	tq_xrcd_mark(net, connections->nonce);
	tq_oob_names(net, &qpn, &qkey);
	tq_address_fill(net, qpn, qkey, connections->nonce, &connections->address);
	return 0;
}

const void *tq_connections_address(struct tq_net *net, size_t *len)
{
	*len = sizeof(net->connections->address);
	return &net->connections->address;
}

static void failed_free(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_node *node = lane->node;

	DL_DELETE(net->connections->failed, lane);
	tq_lane_destroy(net, lane);
	tq_node_put(net, node);
}

void tq_connections_close(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	struct tq_node *node, *tmp;
	struct tq_lane *lane, *next;
	struct tq_link *link, *other;

	if (!connections)
		return;
	HASH_ITER(hh, connections->links, link, other)
		tq_requests_drop(net, link);
	HASH_ITER(hh, net->nodes, node, tmp)
		tq_node_retire_lanes(net, node);
	/* Completions of what is still in them will not be polled. */
	DL_FOREACH_SAFE(connections->failed, lane, next)
		failed_free(net, lane);
	tq_targets_drop(net, NULL);
	tq_links_free(net);
	tq_oob_close(net);
	tq_handles_destroy(&connections->numbers);
	free(connections);
	net->connections = NULL;
}

/* ---- polling ---- */

static bool has_expired(const struct tq_net *net, const struct tq_request *rq, uint64_t now)
{
	uint64_t limit = (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;

	return now > rq->heard && rq->silent + now - rq->heard >= limit;
}

static void expire(struct tq_net *net, struct tq_link *link)
{
	int error = link->node->ah_error;

	if (error)
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s can't be reached: for %d s its address could not be resolved: "
			     "%s%s.",
			     tq_link_name(link), (int)net->params->connect_timeout, strerror(error),
			     net->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET
				     ? " (is it in this subnet, and does it answer a ping? "
				       "gid_index names another)"
				     : "");
	else
		tq_link_fail(net, link, TQ_FAIL_LOST,
			     "%s has not answered a connection request for %d s: it is gone, or "
			     "does not call this library and its service thread is off.",
			     tq_link_name(link), (int)net->params->connect_timeout);
}

/* Sends again what is due, unless its process has died: the first answer may have been lost. */
static void poll_request(struct tq_net *net, struct tq_request *rq, uint64_t now)
{
	if (has_expired(net, rq, now))
		expire(net, rq->link);
	else if (tq_fate_has_died(net, rq->link))
		tq_link_fail(net, rq->link, TQ_FAIL_LOST,
			     "%s does not answer a connection request.", tq_link_name(rq->link));
	else
		tq_request_again(net, rq);
}

static int poll_requests(struct tq_net *net, uint64_t now)
{
	struct tq_request *rq, *tmp;
	int n = 0;

	net->connections->due = UINT64_MAX;
	HASH_ITER(hh, net->connections->requests, rq, tmp) {
		if (rq->sent && !tq_link_has_failed(rq->link) &&
		    (rq->due <= now || has_expired(net, rq, now))) {
			poll_request(net, rq, now);
			n++;
		}
		if (rq->sent && rq->due < net->connections->due)
			net->connections->due = rq->due;
	}
	return n;
}

void tq_link_say_why(struct tq_net *net, const struct tq_link *link)
{
	const struct tq_contact *c = link->contact;
	const char *why = c->why ? c->why : "A connection failed.";
	/* Of one that has said goodbye it is none, unless something is lost. */
	bool news = !tq_link_is_closing(link, TQ_THERE) || tq_link_waits(link);
	enum tq_log_level level = news && !c->reported ? TQ_LOG_ERROR : TQ_LOG_DEBUG;

	net->failures += news;
	if (c->fate != TQ_FATE_DIED) {
		tq_log(net->job, level, "%s%s", why, tq_fate_text(link));
		return;
	}
	TQ_COUNT(net->stats, deaths);
	tq_log(net->job, level, "%s has died: its process ended without closing its connections.",
	       tq_link_name(link));
	tq_log(net->job, TQ_LOG_DEBUG, "%s", why);
}

/* The protocol learns of failures here, outside any operation of struct tq_net_ops. */
int tq_connections_report(struct tq_net *net)
{
	struct tq_link *link, **next = &net->connections->broken;
	uint64_t now;
	int n = 0;

	tq_links_tear_down(net);
	if (!*next)
		return 0;
	now = tq_now();
	while ((link = *next)) {
		struct tq_contact *c = link->contact;

		if (tq_fate_is_open(net, link, now)) {
			next = &c->next_failed;
			continue;
		}
		*next = c->next_failed;
		c->next_failed = NULL;
		tq_link_say_why(net, link);
		if (link->peer)
			tq_core_peer_failed(net->core, link->peer);
		n++;
		tq_links_tear_down(net); /* with it others may have failed */
		next = &net->connections->broken;
	}
	return n;
}

bool tq_connections_settled(const struct tq_net *net)
{
	return !net->connections->failing && !net->connections->broken;
}

static uint64_t next_look(const struct tq_connections *connections, uint64_t now)
{
	const struct tq_link *link;
	uint64_t due = UINT64_MAX;

	LL_FOREACH2(connections->broken, link, contact->next_failed) {
		if (tq_fate_due(link, now) < due)
			due = tq_fate_due(link, now);
	}
	return due;
}

static int report_hold_lanes(struct tq_net *net)
{
	struct tq_link *link = net->connections->wants_hold, *next;
	int n = 0;

	net->connections->hold_freed = false;
	net->connections->wants_hold = NULL; /* who finds none again joins the new list */
	for (; link; link = next, n++) {
		next = link->contact->next_hold;
		link->contact->next_hold = NULL;
		link->contact->wants_hold = false;
		if (!tq_link_has_failed(link) && link->peer)
			tq_core_lane_ready(net->core, link->peer);
	}
	return n;
}

static int free_flushed(struct tq_net *net)
{
	struct tq_lane *lane, *tmp;
	int n = 0;

	DL_FOREACH_SAFE(net->connections->failed, lane, tmp) {
		if (lane->mute)
			tq_lane_flush(net, lane);
		if (lane->awaited || lane->taken)
			continue;
		failed_free(net, lane);
		n++;
	}
	return n;
}

/*
 * A process that has died with nothing under way to it would be waited for in vain. An empty RDMA
 * write takes no receive there, and fails when the control SRQ that it names is gone. To one that
 * isn't connected, but awaited, a connection is asked for, if its service thread can be relied on
 * to answer; unless it can be seen from here that it has ended.
 */
static void check_peer(struct tq_net *net, struct tq_link *link)
{
	struct tq_lane *lane = link->node->control;

	if (tq_link_has_failed(link) || tq_link_is_closing(link, TQ_THERE) ||
	    tq_link_is_closing(link, TQ_HERE))
		return;
	if (!tq_link_is_connected(link)) {
		if (!link->peer || !tq_core_awaits(link->peer))
			return;
		if (tq_fate_has_died(net, link))
			tq_link_fail(net, link, TQ_FAIL_LOST, "%s is waited for, and has ended.",
				     tq_link_name(link));
		else if (net->params->service_thread)
			tq_lane_request(net, link, TQ_LANE_CONTROL);
	} else if (lane && lane->state == TQ_LANE_READY && tq_lane_confirmed(lane, link)) {
		tq_lane_drain(net, lane, link);
	}
}

static void check_peers(struct tq_net *net, uint64_t now)
{
	struct tq_link *link, *tmp;

	net->connections->check_due = now + (uint64_t)net->params->keepalive * TQ_MS;
	HASH_ITER(hh, net->connections->links, link, tmp)
		check_peer(net, link);
}

int tq_connections_poll(struct tq_net *net, uint64_t *next)
{
	struct tq_connections *connections = net->connections;
	int n = 0;

	*next = UINT64_MAX;
	if (net->params->keepalive && ++connections->polls % CHECK_POLLS == 0 &&
	    tq_now() >= connections->check_due)
		check_peers(net, tq_now());
	if (connections->failing || connections->broken)
		n += tq_connections_report(net);
	if (connections->hold_freed)
		n += report_hold_lanes(net);
	if (connections->failed)
		n += free_flushed(net);
	if (connections->nacks_owed && tq_control_idle(net))
		tq_acks_send(net);
	if (connections->requests || connections->leaving || connections->cut ||
	    connections->others_leave || connections->broken) {
		uint64_t now = tq_now();

		if (connections->others_leave && connections->gone_due <= now)
			tq_gone_poll(net, now);
		if (connections->due <= now)
			n += poll_requests(net, now);
		if (connections->leaving && connections->bye_due <= now)
			tq_byes_poll(net, now);
		*next = connections->due;
		tq_cut_poll(net, now, next);
		if (connections->leaving && connections->bye_due < *next)
			*next = connections->bye_due;
		if (connections->broken && next_look(connections, now) < *next)
			*next = next_look(connections, now);
		if (connections->others_leave && connections->gone_due < *next)
			*next = connections->gone_due;
		if (*next != UINT64_MAX)
			*next = *next > now ? *next - now : 0;
	}
	if (connections->failing)
		*next = 0;
	return n;
}
