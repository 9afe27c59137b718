/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/channel/control.h"
#include "net/channel/inbox.h"
#include "net/channel/peer_memory.h"
#include "net/channel/rdma.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/lane_qp.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/oob.h"
#include "net/target.h"

/* Stops the peer from reading this process's memory, tells the peer that the link has failed, ends
 * the link's requests, and retires the hold lanes whose messages wait for a receive of the peer. */
static void tear_down(struct tq_net *net, struct tq_link *link)
{
	struct tq_lane *lane, *tmp;

	tq_outbox_cut(link);
	/* A peer that was told may give the ring to another process, so nothing is written there
	 * from here on. */
	tq_outbox_leave(link);
	tq_link_cut(net, link);
	tq_connect_requests_drop(net, link);
	DL_FOREACH_SAFE(link->node->hold, lane, tmp) {
		if (lane->taken && lane->user == link)
			tq_lane_retire(net, lane);
	}
}

void tq_links_tear_down(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	struct tq_link *link;

	/* Others may fail with a link. */
	while ((link = connections->failing)) {
		LL_DELETE2(connections->failing, link, contact->failed_next);
		LL_PREPEND2(connections->broken, link, contact->failed_next);
		net->ndatagrams--;
		tear_down(net, link);
	}
}

void tq_link_report_failure(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	const char *why = contact->why ? contact->why : "A connection failed.";
	/* A peer that closed cleanly is news only if messages were lost. */
	bool news = !tq_link_is_closing(link, TQ_THERE) || tq_link_waits(link);
	enum tq_log_level level = news && !contact->user_knows ? TQ_LOG_ERROR : TQ_LOG_DEBUG;

	contact->logged = true;
	net->failures += news;
	if (contact->fate != TQ_FATE_DIED) {
		tq_log(net->job, level, "%s%s", why, tq_fate_text(link));
		return;
	}
	TQ_COUNT(net->stats, deaths);
	tq_log(net->job, level, "%s has died: its process ended without closing its connections.",
	       tq_link_name(link));
	tq_log(net->job, TQ_LOG_DEBUG, "%s", why);
}

bool tq_link_is_logged(const struct tq_link *link)
{
	return link->contact->logged;
}

/* A goodbye is repeated at this interval, in case it was lost. */
#define BYE_INTERVAL (20 * TQ_MS)
/* A process that leaves waits so long for BYE_ACK, a dozen repetitions: a peer that computes
 * answers only at its next call, and no job's end waits longer for that. So a process that hears no
 * goodbye for as long knows that the other one has left. */
#define BYE_LIMIT (250 * TQ_MS)

static tq_timer_fire gone;

/* Sends BYE_ACK, after which nothing more is sent to the link's process. */
static void send_bye_ack(struct tq_net *net, struct tq_link *link)
{
	struct tq_oob_hdr ack = tq_oob_hdr(net, link, TQ_OOB_BYE_ACK, 0);

	/* Sends that the peer has not received are about to end with an error. */
	if (tq_link_waits(link))
		tq_outbox_cut(link);
	tq_outbox_leave(link);
	tq_link_set_quiet(net, link, TQ_HERE);
	tq_oob_send(net, link, &ack, sizeof(ack));
}

void tq_link_on_bye(struct tq_net *net, const struct tq_oob_hdr *datagram)
{
	struct tq_link *link = tq_link_by_nonce(net, tq_get64(datagram->from));

	if (!link)
		return;
	/* Messages that the process has sent before its goodbye come first. */
	tq_inbox_finish(net, link);
	if (datagram->type == TQ_OOB_BYE_ACK) {
		tq_link_set_quiet(net, link, TQ_THERE);
		/* The process may leave as well, and need not wait for this one. */
		if (tq_link_is_closing(link, TQ_HERE) && !tq_link_is_quiet(link, TQ_HERE))
			send_bye_ack(net, link);
		return;
	}
	tq_link_close(net, link, TQ_THERE);
	tq_timer_arm(net, &link->contact->gone_timer, tq_now() + BYE_LIMIT, gone, link);
	net->connections->bye_acks_due += !link->contact->owes_bye_ack;
	link->contact->owes_bye_ack = true;
}

static const char not_received[] = "it has closed and not received what was sent to it";

void tq_links_send_bye_acks(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (link->contact->owes_bye_ack) {
			send_bye_ack(net, link);
			link->contact->owes_bye_ack = false;
			if (tq_link_waits(link))
				tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
		}
	}
	net->connections->bye_acks_due = 0;
}

/* Fails the link of a process that has not repeated its goodbye for so long: it is gone, and what
 * waits for it would do so for ever. */
static void gone(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;

	(void)now;
	if (link->backlog || tq_link_waits(link))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
	else
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s has left.", tq_link_name(link));
}

static bool may_still_send(const struct tq_link *link)
{
	return tq_link_can_receive(link) && !tq_link_has_failed(link) &&
	       !tq_link_is_quiet(link, TQ_THERE);
}

static bool is_awaited(const struct tq_link *link)
{
	return tq_link_is_closing(link, TQ_HERE) && may_still_send(link);
}

/* Says goodbye, until that is answered: datagrams get lost, and there may be fewer buffers for them
 * than processes to say goodbye to. The wait for the answer starts when the first one is sent. */
static void say_bye(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;
	struct tq_contact *contact = link->contact;
	struct tq_oob_hdr bye = tq_oob_hdr(net, link, TQ_OOB_BYE, 0);
	bool sent;

	if (tq_link_has_failed(link) ||
	    !(contact->owes_bye || (is_awaited(link) && now < contact->leave_until)))
		return;
	sent = tq_oob_send(net, link, &bye, sizeof(bye));
	if (sent && contact->owes_bye) {
		contact->owes_bye = false;
		contact->leave_until = now + BYE_LIMIT;
	}
	tq_timer_arm(net, &contact->bye_timer, sent ? now + BYE_INTERVAL : now, say_bye, link);
}

void tq_link_leave(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	tq_link_close(net, link, TQ_HERE);
	/* A process whose BYE_ACK is not needed gets a goodbye, too, because it may wait for this
	 * one's BYE_ACK. */
	link->contact->owes_bye = tq_link_can_receive(link) || tq_link_can_send(link);
	tq_timer_arm(net, &link->contact->bye_timer, tq_now(), say_bye, link);
}

static bool has_left(const struct tq_link *link)
{
	const struct tq_contact *contact = link->contact;

	return tq_link_has_failed(link) ||
	       (!contact->owes_bye && (!is_awaited(link) || tq_now() >= contact->leave_until));
}

bool tq_link_has_left(const struct tq_net *net, const struct tq_link *link)
{
	tq_assert_held(net->lock);
	return has_left(link) && tq_oob_is_idle(net);
}

void tq_link_abandon(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return;
	link->contact->user_knows = true;
	tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s was removed.", tq_link_name(link));
}

void tq_links_leave(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	tq_assert_held(net->lock);
	HASH_ITER(hh, net->connections->links, link, tmp)
		tq_link_leave(net, link);
}

bool tq_links_have_left(const struct tq_net *net)
{
	struct tq_link *link, *tmp;

	tq_assert_held(net->lock);
	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (!has_left(link))
			return false;
	}
	return tq_oob_is_idle(net);
}

int tq_link_add(struct tq_net *net, const void *bytes, size_t len, struct tq_peer *peer,
		const char *name, struct tq_link **added)
{
	struct tq_address address;
	struct tq_link *link;
	int error = tq_address_check(net, bytes, len, &address);

	tq_assert_held(net->lock);
	if (error)
		return error;
	link = tq_link_by_nonce(net, tq_get64(address.nonce));
	if (link && memcmp(&link->contact->address, &address, sizeof(address)))
		return -EPROTO;
	if (link && link->peer)
		return -EEXIST;
	if (!link) {
		error = tq_link_make(net, &address, &link);
		if (error)
			return error;
	}
	link->peer = peer;
	link->name = name;
	net->connections->nunnamed--;
	TQ_LEVEL(net->stats, unnamed, -1);
	TQ_LEVEL(net->stats, peers, 1);
	*added = link;
	tq_targets_answer_kept(net, link);
	return 0;
}

struct tq_peer *tq_link_peer(struct tq_net *net, const void *bytes, size_t len)
{
	struct tq_address address;
	struct tq_link *link;

	tq_assert_held(net->lock);
	if (tq_address_check(net, bytes, len, &address))
		return NULL;
	link = tq_link_by_nonce(net, tq_get64(address.nonce));
	return link && !memcmp(&link->contact->address, &address, sizeof(address)) ? link->peer
										   : NULL;
}

/* ---- freeing ---- */

static void unconfirm_all(struct tq_net *net, struct tq_link *link)
{
	struct tq_node *node = link->node;
	struct tq_lane *lane;

	if (node->control)
		tq_lane_unconfirm(node->control, link);
	if (node->bulk)
		tq_lane_unconfirm(node->bulk, link);
	DL_FOREACH(node->hold, lane) {
		tq_lane_unconfirm(lane, link);
		if (lane->user == link)
			lane->user = NULL;
	}
	DL_FOREACH(net->connections->flushing, lane) {
		if (lane->user == link)
			lane->user = NULL;
	}
}

static void link_free(struct tq_net *net, struct tq_link *link)
{
	struct tq_connections *connections = net->connections;
	struct tq_contact *contact = link->contact;
	struct tq_link **place;

	for (place = &connections->broken; *place; place = &(*place)->contact->failed_next) {
		if (*place == link) {
			*place = contact->failed_next;
			tq_link_report_failure(net, link);
			break;
		}
	}
	if (contact->wants_hold)
		LL_DELETE2(connections->wants_hold, link, contact->wants_hold_next);
	tq_link_cut_end(net, link);
	tq_timer_stop(net, &contact->fate_timer);
	tq_timer_stop(net, &contact->bye_timer);
	tq_timer_stop(net, &contact->gone_timer);
	if (link->peer) {
		TQ_LEVEL(net->stats, peers, -1);
	} else {
		connections->nunnamed--;
		TQ_LEVEL(net->stats, unnamed, -1);
	}
	connections->bye_acks_due -= contact->owes_bye_ack;
	HASH_DEL(connections->links, link);
	tq_handle_free(&connections->numbers, link->number_here);
	free(contact->why);
	free(contact);
	free(link);
}

void tq_link_remove(struct tq_net *net, struct tq_link *link)
{
	struct tq_node *node = link->node;

	tq_assert_held(net->lock);
	tq_links_tear_down(net);
	tq_connect_requests_drop(net, link);
	tq_targets_drop(net, link);
	tq_control_forget(net, link);
	tq_rdma_forget(net, link);
	tq_put_forget(net, link);
	unconfirm_all(net, link);
	link_free(net, link);
	if (--node->nlinks == 0)
		tq_lane_retire_all(net, node);
	tq_node_put(net, node);
}

void tq_links_free(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		struct tq_node *node = link->node;

		tq_control_forget(net, link);
		tq_rdma_forget(net, link);
		tq_put_forget(net, link);
		link_free(net, link);
		node->nlinks--;
		tq_node_put(net, node);
	}
}
