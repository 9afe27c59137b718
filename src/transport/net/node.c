/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and links: who is where, and by which name. */
#include "net/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Processes that ask before they are peers; each costs half a KiB. */
#define MAX_UNNAMED 4096

/* How often an address that could not be resolved is tried again. */
#define AH_INTERVAL (1000 * TQ_MS)

struct tq_link *tq_link_by_nonce(struct tq_net *net, uint64_t nonce)
{
	struct tq_link *link;

	HASH_FIND(hh, net->connections->links, &nonce, sizeof(nonce), link);
	return link;
}

struct tq_link *tq_link_find(struct tq_net *net, uint32_t conn)
{
	return tq_handle_get(&net->connections->numbers, conn);
}

const char *tq_link_name(const struct tq_link *link)
{
	return link->peer && link->peer->name ? link->peer->name
					      : "a process that is not a peer yet";
}

static struct tq_node *node_get(struct tq_net *net, const struct tq_address *a)
{
	struct tq_node_key key = {.domain = tq_get64(a->domain)};
	struct tq_node *node;

	memcpy(key.gid.raw, a->gid, sizeof(key.gid.raw));
	HASH_FIND(hh, net->nodes, &key, sizeof(key), node);
	if (node)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->key = key;
	node->lid = tq_get16(a->lid);
	node->mtu = a->mtu < (uint8_t)net->dev.mtu ? a->mtu : (uint8_t)net->dev.mtu;
	HASH_ADD(hh, net->nodes, key, sizeof(node->key), node);
	TQ_LEVEL(net->stats, nodes, 1);
	return node;
}

static void node_put(struct tq_net *net, struct tq_node *node)
{
	if (node->nlinks || node->nlanes)
		return;
	HASH_DEL(net->nodes, node);
	TQ_LEVEL(net->stats, nodes, -1);
	if (node->ah)
		ibv_destroy_ah(node->ah);
	free(node);
}

void tq_node_lane_gone(struct tq_net *net, struct tq_node *node)
{
	node_put(net, node);
}

/* On RoCE the kernel asks the network, and waits for the answer. */
struct ibv_ah *tq_node_ah(struct tq_net *net, struct tq_node *node)
{
	struct ibv_ah_attr path;

	if (node->ah || net->broken_reason || (node->ah_error && tq_now() < node->ah_due))
		return node->ah;
	tq_address_path(net, &node->key.gid, node->lid, &path);
	node->ah = ibv_create_ah(net->dev.pd, &path);
	node->ah_error = node->ah ? 0 : errno;
	node->ah_due = tq_now() + AH_INTERVAL;
	return node->ah;
}

static int link_new(struct tq_net *net, const struct tq_address *a, struct tq_link **made)
{
	struct tq_link *link;

	if (net->broken_reason)
		return -EIO;
	link = calloc(1, sizeof(*link));
	if (!link)
		return -ENOMEM;
	link->contact = calloc(1, sizeof(*link->contact));
	if (!link->contact)
		goto free_link;
	link->contact->address = *a;
	link->ud_qpn = tq_get32(a->ud_qpn);
	link->ud_qkey = tq_get32(a->ud_qkey);
	link->nonce = tq_get64(a->nonce);
	link->here = tq_handle_new(&net->connections->numbers, link);
	if (!link->here)
		goto free_contact;
	link->node = node_get(net, a);
	if (!link->node)
		goto free_number;
	link->node->nlinks++;
	tq_fate_watch(net, link);
	net->connections->nunnamed++;
	TQ_LEVEL(net->stats, unnamed, 1);
	HASH_ADD(hh, net->connections->links, nonce, sizeof(link->nonce), link);
	*made = link;
	return 0;
free_number:
	tq_handle_free(&net->connections->numbers, link->here);
free_contact:
	free(link->contact);
free_link:
	free(link);
	return -ENOMEM;
}

struct tq_link *tq_link_unnamed(struct tq_net *net, const struct tq_address *bytes)
{
	struct tq_address a;
	struct tq_link *link;

	if (net->connections->nunnamed >= MAX_UNNAMED ||
	    tq_address_check(net, bytes, sizeof(*bytes), &a) || link_new(net, &a, &link))
		return NULL;
	return link;
}

int tq_link_add(struct tq_net *net, const void *bytes, size_t len, struct tq_peer *peer,
		struct tq_link **added)
{
	struct tq_address a;
	struct tq_link *link;
	int error = tq_address_check(net, bytes, len, &a);

	if (error)
		return error;
	link = tq_link_by_nonce(net, tq_get64(a.nonce));
	if (link && memcmp(&link->contact->address, &a, sizeof(a)))
		return -EPROTO;
	if (link && link->peer)
		return -EEXIST;
	if (!link) {
		error = link_new(net, &a, &link);
		if (error)
			return error;
	}
	link->peer = peer;
	net->connections->nunnamed--;
	TQ_LEVEL(net->stats, unnamed, -1);
	TQ_LEVEL(net->stats, peers, 1);
	*added = link;
	/* Its answer may let messages come, which the protocol can take only when peer->link is
	 * set. */
	peer->link = link;
	tq_targets_named(net, link);
	return 0;
}

struct tq_peer *tq_link_peer(struct tq_net *net, const void *bytes, size_t len)
{
	struct tq_address a;
	struct tq_link *link;

	if (tq_address_check(net, bytes, len, &a))
		return NULL;
	link = tq_link_by_nonce(net, tq_get64(a.nonce));
	return link && !memcmp(&link->contact->address, &a, sizeof(a)) ? link->peer : NULL;
}

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
	DL_FOREACH(net->connections->failed, lane) {
		if (lane->user == link)
			lane->user = NULL;
	}
}

void tq_node_retire_lanes(struct tq_net *net, struct tq_node *node)
{
	struct tq_lane *lane, *tmp;

	if (node->control)
		tq_lane_retire(net, node->control);
	if (node->bulk)
		tq_lane_retire(net, node->bulk);
	DL_FOREACH_SAFE(node->hold, lane, tmp)
		tq_lane_retire(net, lane);
}

static void link_free(struct tq_net *net, struct tq_link *link)
{
	struct tq_connections *connections = net->connections;
	struct tq_contact *c = link->contact;
	struct tq_link **p;

	for (p = &connections->broken; *p; p = &(*p)->contact->next_failed) {
		if (*p == link) {
			*p = c->next_failed;
			tq_link_say_why(net, link);
			break;
		}
	}
	for (p = &connections->wants_hold; *p; p = &(*p)->contact->next_hold) {
		if (*p == link) {
			*p = c->next_hold;
			break;
		}
	}
	tq_link_cut_end(net, link);
	if (!link->peer)
		connections->nunnamed--;
	TQ_LEVEL(net->stats, unnamed, -!link->peer);
	TQ_LEVEL(net->stats, peers, -(link->peer != NULL));
	connections->nacks_owed -= c->owed_ack;
	HASH_DEL(connections->links, link);
	tq_handle_free(&connections->numbers, link->here);
	free(c->why);
	free(c);
	free(link);
}

void tq_link_remove(struct tq_net *net, struct tq_link *link)
{
	struct tq_node *node = link->node;

	tq_links_tear_down(net);
	tq_requests_drop(net, link);
	tq_targets_drop(net, link);
	tq_control_forget(net, link);
	tq_rdma_forget(net, link);
	tq_put_forget(net, link);
	unconfirm_all(net, link);
	link_free(net, link);
	if (--node->nlinks == 0)
		tq_node_retire_lanes(net, node);
	node_put(net, node);
}

/* At the end: no lane is there any more. */
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
		node_put(net, node);
	}
}
