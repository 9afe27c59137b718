/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"

struct tf_peer *tf_peer_get(struct tf_domain *domain, const struct tq_locator *locator)
{
	struct tf_peer *peer;

	pthread_mutex_lock(&domain->lock);
	HASH_FIND(hh, domain->peers, locator, sizeof(*locator), peer);
	if (!peer) {
		peer = calloc(1, sizeof(*peer));
		if (peer) {
			peer->domain = domain;
			peer->locator = *locator;
			HASH_ADD(hh, domain->peers, locator, sizeof(peer->locator), peer);
		}
	}
	pthread_mutex_unlock(&domain->lock);
	return peer;
}

int tf_peer_ready(struct tf_peer *peer, struct tq_peer **tq)
{
	int error;

	*tq = atomic_load_explicit(&peer->tq, memory_order_acquire);
	if (*tq)
		return 0;
	error = atomic_exchange(&peer->error, 0);
	if (error)
		return error;
	if (!atomic_exchange(&peer->asked, true)) {
		error = tq_look_up(peer->domain->tq, &peer->locator);
		if (error) {
			atomic_store(&peer->asked, false);
			return error == -EINVAL ? -FI_EHOSTUNREACH : error;
		}
	}
	tf_domain_progress(peer->domain);
	*tq = atomic_load_explicit(&peer->tq, memory_order_acquire);
	return *tq ? 0 : -FI_EAGAIN;
}

void tf_peer_renew(struct tf_peer *peer)
{
	struct tq_peer *tq = atomic_load(&peer->tq);

	if (tq && tq_peer_error(tq))
		atomic_compare_exchange_strong(&peer->tq, &tq, NULL);
}

void tf_peer_found(void *arg, const struct tq_locator *locator, const void *address, size_t len,
		   int error)
{
	struct tf_peer *peer = tf_peer_get(arg, locator);
	struct tq_peer *tq = NULL;
	char name[48];

	if (!peer)
		return; /* is asked, or asks, again */
	snprintf(name, sizeof(name), "process %x:%x", locator->port, locator->number);
	if (!error)
		error = tq_peer_add(peer->domain->tq, address, len, name, &tq);
	/* Another thread's result, or the process is there, but its connection has failed. */
	if (error == -EEXIST)
		tq = tq_peer_find(peer->domain->tq, address, len);
	if (tq) {
		atomic_store_explicit(&peer->tq, tq, memory_order_release);
		/* A process that is looked up, or looks up, will be sent something. */
		tq_peer_connect(tq);
	} else {
		atomic_store(&peer->error, error == -ETIMEDOUT ? -FI_EHOSTUNREACH : error);
	}
	atomic_store(&peer->asked, false);
}

void tf_peers_free(struct tf_domain *domain)
{
	struct tf_peer *peer, *tmp;

	HASH_ITER(hh, domain->peers, peer, tmp) {
		HASH_DEL(domain->peers, peer);
		free(peer);
	}
}
