/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/link_peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/channel/control.h"
#include "net/channel/put.h"
#include "net/channel/rdma.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/request.h"
#include "net/link_end.h"
#include "net/peers/contact.h"
#include "net/peers/link_fail.h"
#include "net/peers/link_make.h"
#include "net/peers/node.h"
#include "net/target.h"

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
	tq_requests_drop(net, link);
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
