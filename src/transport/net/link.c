/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: making, finding and freeing them, their states, and how they fail. */
#include "net/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/connections.h"

/* Processes that ask before they are peers; each costs half a KiB. */
#define MAX_UNNAMED 4096

/* ---- states ---- */

static const char *const state_names[TQ_LINK_STATES] = {
	[TQ_LINK_NEW] = "NEW",         [TQ_LINK_UP] = "UP",         [TQ_LINK_QUIET] = "QUIET",
	[TQ_LINK_CLOSING] = "CLOSING", [TQ_LINK_CLOSED] = "CLOSED", [TQ_LINK_FAILED] = "FAILED",
};

#define BIT(state) (1u << TQ_LINK_##state)

static const uint16_t next_states[TQ_LINK_STATES] = {
	[TQ_LINK_NEW] = BIT(UP) | BIT(QUIET) | BIT(CLOSING) | BIT(FAILED),
	[TQ_LINK_UP] = BIT(QUIET) | BIT(CLOSING) | BIT(FAILED),
	[TQ_LINK_QUIET] = BIT(CLOSED) | BIT(FAILED),
	[TQ_LINK_CLOSING] = BIT(CLOSED) | BIT(FAILED),
	[TQ_LINK_CLOSED] = BIT(FAILED),
};

static const struct tq_states states[TQ_LINK_ENDS] = {
	[TQ_HERE] = {"link", state_names, next_states},
	[TQ_THERE] = {"link's peer", state_names, next_states},
};

static void set(struct tq_net *net, struct tq_link *link, enum tq_link_end end,
		enum tq_link_state to)
{
	tq_states_change(&states[end], net->trace, link, link->state[end], to);
	link->state[end] = to;
}

void tq_link_up(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] == TQ_LINK_NEW)
		set(net, link, end, TQ_LINK_UP);
}

void tq_link_close(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] < TQ_LINK_QUIET)
		set(net, link, end, TQ_LINK_CLOSING);
	else if (link->state[end] == TQ_LINK_QUIET)
		set(net, link, end, TQ_LINK_CLOSED);
}

void tq_link_quiet(struct tq_net *net, struct tq_link *link, enum tq_link_end end)
{
	if (link->state[end] < TQ_LINK_QUIET)
		set(net, link, end, TQ_LINK_QUIET);
	else if (link->state[end] == TQ_LINK_CLOSING)
		set(net, link, end, TQ_LINK_CLOSED);
}

/* ---- failing ---- */

static char *sentence(const struct tq_link *link, enum tq_fail how, const char *format,
		      va_list args)
{
	char why[512];
	int n = 0;

	if (how == TQ_FAIL_GIVEN_UP)
		n = snprintf(why, sizeof(why),
			     "The connection to %s was given up: ", tq_link_name(link));
	if (n >= (int)sizeof(why))
		return NULL;
	vsnprintf(why + n, sizeof(why) - (size_t)n, format, args);
	n = (int)strlen(why);
	if (how == TQ_FAIL_GIVEN_UP && n + 1 < (int)sizeof(why))
		memcpy(why + n, ".", 2);
	return strdup(why);
}

void tq_link_fail(struct tq_net *net, struct tq_link *link, enum tq_fail how, const char *format,
		  ...)
{
	va_list args;

	if (tq_link_has_failed(link))
		return;
	set(net, link, TQ_HERE, TQ_LINK_FAILED);
	if (how == TQ_FAIL_LOST && !tq_link_is_closing(link, TQ_THERE))
		tq_fate_inquire(link, tq_now());
	va_start(args, format);
	link->contact->why = sentence(link, how, format, args);
	va_end(args);
	tq_link_cut(net, link);
	LL_PREPEND2(net->connections->failing, link, contact->next_failed);
}

/* Ends what the link has asked for, and what would wait for ever for a receive of its process. */
static void tear_down(struct tq_net *net, struct tq_link *link)
{
	struct tq_lane *lane, *tmp;

	tq_requests_drop(net, link);
	DL_FOREACH_SAFE(link->node->hold, lane, tmp) {
		if (lane->taken && lane->user == link)
			tq_lane_retire(net, lane);
	}
}

void tq_links_tear_down(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	struct tq_link *link;

	/* With one link others may fail. */
	while ((link = connections->failing)) {
		LL_DELETE2(connections->failing, link, contact->next_failed);
		LL_PREPEND2(connections->broken, link, contact->next_failed);
		tear_down(net, link);
	}
}

/* ---- finding ---- */

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
	return link->name ? link->name : "a process that is not a peer yet";
}

/* ---- making ---- */

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
	link->node = tq_node_get(net, a);
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
		const char *name, struct tq_link **added)
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
	link->name = name;
	net->connections->nunnamed--;
	TQ_LEVEL(net->stats, unnamed, -1);
	TQ_LEVEL(net->stats, peers, 1);
	*added = link;
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
	DL_FOREACH(net->connections->failed, lane) {
		if (lane->user == link)
			lane->user = NULL;
	}
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
	tq_node_put(net, node);
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
		tq_node_put(net, node);
	}
}
