/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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
