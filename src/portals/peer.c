/* SPDX-License-Identifier: BSD-3-Clause */
#include "peer.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "lib.h"
#include "log.h"
#include "ni.h"

struct p4_peer *p4_peers;

struct p4_peer *p4_peer_get(uint32_t nid, uint32_t pid)
{
	struct p4_peer_key key = {nid, pid};
	struct p4_peer *peer;

	p4_assert_held();
	HASH_FIND(hh, p4_peers, &key, sizeof(key), peer);
	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->tag = P4_TAG_PEER;
	peer->key = key;
	HASH_ADD(hh, p4_peers, key, sizeof(peer->key), peer);
	return peer;
}

bool p4_peer_is_sender(uint32_t nid, uint32_t pid, const struct tq_envelope *envelope)
{
	struct tq_locator locator;

	return !tq_peer_locator(envelope->peer, &locator) && locator.port == nid &&
	       locator.number == pid;
}

/* Appends an entry that takes no message, because no answer has such bits: libtupleq ends the entry
 * when the connection to the process fails. */
static void watch(struct p4_peer *peer, struct p4_ni *ni, int rank)
{
	bool watched;

	p4_lock();
	watched = peer->watched[ni->index];
	peer->watched[ni->index] = true;
	p4_unlock();
	if (!watched &&
	    tq_entry_append(ni->ctx[P4_REPLY], rank, UINT64_MAX, 0, NULL, 0, peer, NULL) < 0)
		p4_log(TQ_LOG_WARN, "The end of process %#x:%u can't be watched for.",
		       peer->key.nid, peer->key.pid);
}

int p4_peer_rank(struct p4_peer *peer, struct p4_ni *ni, unsigned pt)
{
	struct p4_ranks *ranks;
	int rank;

	p4_lock();
	ranks = peer->ranks[ni->index];
	if (!ranks)
		ranks = peer->ranks[ni->index] = calloc(1, sizeof(*ranks));
	rank = ranks ? ranks->plus_one[pt] - 1 : -ENOMEM;
	p4_unlock();
	if (rank != -1)
		return rank;
	rank = tq_ctx_join(ni->ctx[pt], peer->tq);
	if (rank < 0)
		return rank;
	p4_lock();
	ranks->plus_one[pt] = rank + 1;
	p4_unlock();
	if (pt == P4_REPLY)
		watch(peer, ni, rank);
	return rank;
}

bool p4_peer_put_off(struct p4_peer *peer, struct p4_work *work)
{
	bool put_off;

	p4_lock();
	put_off = !peer->tq;
	if (put_off) {
		work->next = NULL;
		LL_APPEND(peer->responses, work);
	}
	p4_unlock();
	return put_off;
}

void p4_peers_leave(const struct p4_ni *ni)
{
	struct p4_peer *peer;

	p4_assert_held();
	for (peer = p4_peers; peer; peer = peer->hh.next) {
		free(peer->ranks[ni->index]);
		peer->ranks[ni->index] = NULL;
		peer->watched[ni->index] = false;
	}
}
