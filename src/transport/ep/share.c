/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for other parts of a process than the one that opened an endpoint: finding the
 * endpoint, its peers' nodes and connections, keys of buffers, and writing into peers' memory. The
 * calls for registrations and for operations on peers' memory. */
#include "ep/share.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "ep/objects.h"
#include "ep/progress.h"
#include "net/adapter/address.h"
#include "net/adapter/mem.h"
#include "net/channel/peer_memory.h"
#include "net/connections.h"
#include "net/lanes/lane_connect.h"
#include "net/links.h"
#include "net/peers/link.h"
#include "proto/common/ctx.h"
#include "proto/common/objects.h"
#include "proto/rma.h"

static struct tq_ep *open_eps; /* list, the oldest first */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

void tq_share_open(struct tq_ep *ep)
{
	pthread_mutex_lock(&open_lock);
	DL_APPEND(open_eps, ep);
	pthread_mutex_unlock(&open_lock);
}

void tq_share_close(struct tq_ep *ep)
{
	pthread_mutex_lock(&open_lock);
	DL_DELETE(open_eps, ep);
	pthread_mutex_unlock(&open_lock);
}

struct tq_ep *tq_find(uint64_t key)
{
	struct tq_ep *ep;

	pthread_mutex_lock(&open_lock);
	for (ep = open_eps; ep; ep = ep->next) {
		if (ep->job.key == key && ep->pid == getpid())
			break;
	}
	pthread_mutex_unlock(&open_lock);
	return ep;
}

struct tq_peer *tq_peer_find(struct tq_ep *ep, const void *address, size_t len)
{
	struct tq_peer *peer;

	tq_lock(&ep->lock);
	peer = tq_link_peer(&ep->net, address, len);
	tq_unlock(&ep->lock);
	return peer;
}

int tq_address_node(const void *bytes, size_t len, struct tq_node_id *node)
{
	const struct tq_address *address = bytes;

	static_assert(sizeof(node->bytes) == sizeof(address->gid) + sizeof(address->domain),
		      "all of it");
	if (!tq_address_is_valid(bytes, len))
		return -EPROTO;
	memcpy(node->bytes, address->gid, sizeof(address->gid));
	memcpy(node->bytes + sizeof(address->gid), &address->domain, sizeof(address->domain));
	return 0;
}

int tq_key_get(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_key *key)
{
	struct tq_reg *reg;

	if (!len)
		return -EINVAL;
	tq_lock(&ep->lock);
	reg = tq_mem_reg_get(&ep->net, addr, len, write, &key->cookie);
	tq_unlock(&ep->lock);
	if (!reg)
		return -ENOMEM;
	key->key = reg->rkey;
	key->registration = reg;
	return 0;
}

void tq_key_put(struct tq_ep *ep, const struct tq_key *key)
{
	tq_lock(&ep->lock);
	tq_mem_reg_put(&ep->net, key->registration, key->cookie);
	tq_unlock(&ep->lock);
}

void tq_peer_connect(struct tq_peer *peer)
{
	struct tq_ep *ep = tq_ep_of(peer->core);

	tq_lock(&ep->lock);
	tq_lane_request(&ep->net, peer->link, TQ_LANE_CONTROL);
	tq_ep_unlock(ep);
}

void tq_peer_give_up(struct tq_peer *peer, const char *why)
{
	struct tq_ep *ep = tq_ep_of(peer->core);

	tq_lock(&ep->lock);
	tq_peer_fail(peer, why);
	tq_ep_unlock(ep);
}

int tq_peer_error(struct tq_peer *peer)
{
	struct tq_ep *ep = tq_ep_of(peer->core);
	const struct tq_link *link = peer->link;
	int error = 0;

	tq_lock(&ep->lock);
	if (tq_link_is_logged(link))
		error = -EIO;
	else if (tq_link_is_closing(link, TQ_THERE))
		error = -ESHUTDOWN;
	tq_unlock(&ep->lock);
	return error;
}

int tq_put(struct tq_peer *peer, const void *data, size_t len, uint64_t addr, uint32_t key)
{
	struct tq_ep *ep = tq_ep_of(peer->core);
	int rc;

	if (len > TQ_PUT_MAX)
		return -EINVAL;
	tq_lock(&ep->lock);
	tq_ep_make_room(ep);
	rc = tq_put_start(&ep->net, peer->link, data, (uint32_t)len, addr, key);
	/* The log has yet to say what failed: as for a write that waits when the connection fails,
	 * tq_peer_error() reports the failure after that. */
	if (rc == -EIO && !tq_link_is_logged(peer->link))
		rc = 0;
	tq_ep_unlock(ep);
	return rc;
}

/* ---- registrations ---- */

int tq_mr_register(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_mr **mr)
{
	return tq_mem_register(&ep->net, addr, len, TQ_ACCESS_READ | (write ? TQ_ACCESS_WRITE : 0),
			       mr);
}

int tq_mr_expose(struct tq_ep *ep, void *addr, size_t len, unsigned access, struct tq_mr **mr)
{
	int rc;

	if (access & ~(TQ_ACCESS_READ | TQ_ACCESS_WRITE | TQ_ACCESS_ATOMIC))
		return -EINVAL;
	if (access & TQ_ACCESS_ATOMIC && !ep->net.limits.has_atomics)
		return -EOPNOTSUPP;
	/* Without the lock first: there is room mostly. */
	rc = tq_mem_register(&ep->net, addr, len, access, mr);
	if (rc != -ENOMEM)
		return rc;
	tq_lock(&ep->lock);
	rc = tq_mem_expose(&ep->net, addr, len, access, mr);
	tq_unlock(&ep->lock);
	return rc;
}

uint32_t tq_mr_key(const struct tq_mr *mr)
{
	return tq_mem_key(mr);
}

void tq_mr_count_outdated(struct tq_mr *mr)
{
	tq_mem_count_outdated(mr);
}

void tq_mr_abandon(struct tq_ep *ep, struct tq_mr *mr)
{
	tq_lock(&ep->lock);
	tq_mem_abandon(&ep->net, mr);
	tq_unlock(&ep->lock);
}

void tq_mr_deregister(struct tq_mr *mr)
{
	tq_mem_deregister(mr);
}

/* ---- operations on peers' memory ---- */

enum tq_atomics tq_rma_atomics(const struct tq_ep *ep)
{
	switch (ep->net.dev.attr.atomic_cap) {
	case IBV_ATOMIC_GLOB:
		return TQ_ATOMICS_ALL;
	case IBV_ATOMIC_HCA:
		return TQ_ATOMICS_ADAPTER;
	default:
		return TQ_ATOMICS_NONE;
	}
}

int tq_rma(struct tq_peer *peer, const struct tq_rma *rma)
{
	struct tq_ep *ep = tq_ep_of(peer->core);
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_rma(peer, rma, tq_mem_reg_of(rma->mr));
	tq_ep_unlock(ep);
	return rc;
}

/* Returns true if nothing is under way. Operations of a peer whose connection has failed end when
 * the log has said why. Operations in the list of ended requests still wait for their done(). */
static bool is_flushed(const struct tq_ep *ep, const struct tq_peer *peer)
{
	if (tq_core_has_ended(&ep->core))
		return false;
	if (!peer)
		return !ep->core.nrma && tq_connections_are_settled(&ep->net);
	return !peer->nrma && (peer->failed || !tq_link_has_failed(peer->link));
}

int tq_rma_flush(struct tq_ep *ep, struct tq_peer *peer)
{
	uint64_t failures;
	int rc;

	if (getpid() != ep->pid)
		return -EPERM;
	tq_lock(&ep->lock);
	failures = ep->net.failures;
	while (!is_flushed(ep, peer))
		tq_ep_progress(ep);
	rc = peer ? peer->failed : ep->net.failures == failures ? 0 : -EIO;
	tq_ep_unlock(ep);
	return rc;
}
