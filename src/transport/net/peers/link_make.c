/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/link_make.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "net/peers/contact.h"
#include "net/peers/fate.h"
#include "net/peers/link.h"
#include "net/peers/node.h"

/* Processes that have asked and are no peers. */
#define MAX_UNNAMED 4096
static_assert(sizeof(struct tq_link) + sizeof(struct tq_contact) + sizeof(struct tq_node) <= 1536,
	      "they take 6 MiB at most");

int tq_link_make(struct tq_net *net, const struct tq_address *address, struct tq_link **made)
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
	link->contact->address = *address;
	link->ud_qpn = tq_get32(address->ud_qpn);
	link->ud_qkey = tq_get32(address->ud_qkey);
	link->nonce = tq_get64(address->nonce);
	link->number_here = tq_handle_new(&net->connections->numbers, link);
	if (!link->number_here)
		goto free_contact;
	link->node = tq_node_get(net, address);
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
	tq_handle_free(&net->connections->numbers, link->number_here);
free_contact:
	free(link->contact);
free_link:
	free(link);
	return -ENOMEM;
}

struct tq_link *tq_link_make_unnamed(struct tq_net *net, const struct tq_address *address)
{
	struct tq_address checked;
	struct tq_link *link;

	if (net->connections->nunnamed >= MAX_UNNAMED ||
	    tq_address_check(net, address, sizeof(*address), &checked) ||
	    tq_link_make(net, &checked, &link))
		return NULL;
	return link;
}
