/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/adapter/address.h"
#include "net/adapter/objects.h"

/* The interval between attempts to resolve an address, in which the kernel asks the network. The
 * caller waits for the kernel's answer, so attempts are rare; connect_timeout ends them. */
#define AH_INTERVAL (1000 * TQ_MS)

struct tq_node *tq_node_get(struct tq_net *net, const struct tq_address *address)
{
	struct tq_node_key key = {.domain = tq_get64(address->domain)};
	struct tq_node *node;

	memcpy(key.gid.raw, address->gid, sizeof(key.gid.raw));
	HASH_FIND(hh, net->nodes, &key, sizeof(key), node);
	if (node)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->key = key;
	node->lid = tq_get16(address->lid);
	node->mtu = address->mtu < (uint8_t)net->dev.mtu ? address->mtu : (uint8_t)net->dev.mtu;
	HASH_ADD(hh, net->nodes, key, sizeof(node->key), node);
	TQ_LEVEL(net->stats, nodes, 1);
	return node;
}

void tq_node_put(struct tq_net *net, struct tq_node *node)
{
	if (node->nlinks || node->nlanes)
		return;
	HASH_DEL(net->nodes, node);
	TQ_LEVEL(net->stats, nodes, -1);
	if (node->ah)
		ibv_destroy_ah(node->ah);
	free(node);
}

/* On RoCE the kernel asks the network for the address, and waits for the answer. */
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

/* ---- states ---- */

static const char *const state_names[TQ_LINK_STATES] = {
	[TQ_LINK_NEW] = "NEW",         [TQ_LINK_CONNECTING] = "CONNECTING",
	[TQ_LINK_UP] = "UP",           [TQ_LINK_QUIET] = "QUIET",
	[TQ_LINK_CLOSING] = "CLOSING", [TQ_LINK_CLOSED] = "CLOSED",
	[TQ_LINK_FAILED] = "FAILED",
};

#define BIT(state) (1u << TQ_LINK_##state)

static const uint16_t next_states[TQ_LINK_STATES] = {
	[TQ_LINK_NEW] = BIT(CONNECTING) | BIT(UP) | BIT(QUIET) | BIT(CLOSING) | BIT(FAILED),
	[TQ_LINK_CONNECTING] = BIT(UP) | BIT(QUIET) | BIT(CLOSING) | BIT(FAILED),
	[TQ_LINK_UP] = BIT(QUIET) | BIT(CLOSING) | BIT(FAILED),
	[TQ_LINK_QUIET] = BIT(CLOSED) | BIT(FAILED),
	[TQ_LINK_CLOSING] = BIT(CLOSED) | BIT(FAILED),
	[TQ_LINK_CLOSED] = BIT(FAILED),
};

static const struct tq_states states[TQ_LINK_ENDS] = {
	[TQ_HERE] = {"link", state_names, next_states},
	[TQ_THERE] = {"link's peer", state_names, next_states},
};

static void set_state(struct tq_net *net, struct tq_link *link, enum tq_link_end end,
		      enum tq_link_state to)
{
	tq_states_change(&states[end], net->trace, link, link->state[end], to);
	link->state[end] = to;
}

void tq_link_connect(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] == TQ_LINK_NEW)
		set_state(net, link, end, TQ_LINK_CONNECTING);
}

void tq_link_set_up(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] < TQ_LINK_UP)
		set_state(net, link, end, TQ_LINK_UP);
}

void tq_link_close(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] < TQ_LINK_QUIET)
		set_state(net, link, end, TQ_LINK_CLOSING);
	else if (link->state[end] == TQ_LINK_QUIET)
		set_state(net, link, end, TQ_LINK_CLOSED);
}

void tq_link_set_quiet(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] < TQ_LINK_QUIET)
		set_state(net, link, end, TQ_LINK_QUIET);
	else if (link->state[end] == TQ_LINK_CLOSING)
		set_state(net, link, end, TQ_LINK_CLOSED);
}

void tq_link_mark_failed(struct tq_net *net, struct tq_link *link)
{
	set_state(net, link, TQ_HERE, TQ_LINK_FAILED);
}

bool tq_link_waits(const struct tq_link *link)
{
	return link->peer && tq_core_awaits_answer(link->peer);
}

/* ---- finding ---- */

struct tq_link *tq_link_by_nonce(struct tq_net *net, uint64_t nonce)
{
	struct tq_link *link;

	HASH_FIND(hh, net->connections->links, &nonce, sizeof(nonce), link);
	return link;
}

struct tq_link *tq_link_find(struct tq_net *net, uint32_t number)
{
	return tq_handle_get(&net->connections->numbers, number);
}

const char *tq_link_name(const struct tq_link *link)
{
	return link->name ? link->name : "a process that is not a peer yet";
}
