/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on processes, from their start until the process has answered or failed. */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "lib.h"
#include "log.h"
#include "op.h"

/* Has the next p4_unlock_run() send the answers that were put off. */
static void defer_responses(struct p4_peer *peer)
{
	struct p4_work *work;

	p4_assert_held();
	while ((work = peer->responses)) {
		peer->responses = work->next;
		p4_defer(work, work->run);
	}
}

/* Starts operations that have waited, in their order. Called without the lock. */
static void start_waiting(struct p4_peer *peer)
{
	struct p4_op *op;

	for (;;) {
		p4_lock();
		op = peer->waiting;
		if (!op) {
			if (peer->state == P4_PEER_ASKED)
				peer->state = P4_PEER_READY;
			p4_unlock();
			return;
		}
		DL_DELETE2(peer->waiting, op, peer_prev, peer_next);
		p4_unlock();
		p4_op_send(op);
	}
}

/* Ends operations that have waited for a process that wasn't found, and has not connected either.
 * The next operation looks it up again. Called without the lock. */
static void fail_waiting(struct p4_peer *peer)
{
	struct p4_op *failed = NULL, *op;

	p4_lock();
	if (!peer->tq) {
		failed = peer->waiting;
		peer->waiting = NULL;
		peer->state = P4_PEER_NEW;
	}
	p4_unlock();
	while ((op = failed)) {
		DL_DELETE2(failed, op, peer_prev, peer_next);
		p4_op_fail(op);
	}
}

static void on_found(void *arg, const struct tq_locator *locator, const void *address, size_t len,
		     int error)
{
	struct p4_peer *peer;
	struct tq_peer *tq = NULL;
	char name[48];

	(void)arg;
	p4_lock();
	peer = p4_peer_get(locator->port, locator->number);
	p4_unlock();
	if (!peer)
		return; /* is asked, or asks, again */
	snprintf(name, sizeof(name), "process %#x:%u", peer->key.nid, peer->key.pid);
	if (!error)
		error = tq_peer_add(p4_endpoint(), address, len, name, &tq);
	if (error == -EEXIST)
		return; /* another thread's result */
	if (!tq) {
		fail_waiting(peer);
		return;
	}
	p4_lock();
	peer->tq = tq;
	/* Operations may be started from now on, after those that wait. */
	peer->state = P4_PEER_ASKED;
	defer_responses(peer);
	p4_unlock_run();
	/* A process that is looked up, or looks up, will be sent something, if only answers. */
	tq_peer_connect(tq);
	start_waiting(peer);
}

static void look_up(const struct p4_peer *peer)
{
	struct tq_locator locator = {peer->key.nid, peer->key.pid};

	if (tq_look_up(p4_endpoint(), &locator))
		on_found(NULL, &locator, NULL, 0, -EINVAL);
}

void p4_peer_look_up(struct p4_peer *peer)
{
	bool ask;

	p4_lock();
	ask = peer->state == P4_PEER_NEW;
	if (ask)
		peer->state = P4_PEER_ASKED;
	p4_unlock();
	if (ask)
		look_up(peer);
}

void p4_peer_start(struct p4_peer *peer, struct p4_op *op)
{
	bool ask = false;
	enum p4_peer_state state;

	p4_lock();
	state = peer->state;
	if (state == P4_PEER_NEW || state == P4_PEER_ASKED) {
		ask = state == P4_PEER_NEW;
		peer->state = P4_PEER_ASKED;
		DL_APPEND2(peer->waiting, op, peer_prev, peer_next);
	}
	p4_unlock();
	if (state == P4_PEER_READY)
		p4_op_send(op);
	else if (state == P4_PEER_FAILED)
		p4_op_fail(op);
	else if (ask)
		look_up(peer);
}

void p4_peer_fail(struct p4_peer *peer)
{
	struct p4_op *op;

	p4_assert_held();
	peer->state = P4_PEER_FAILED;
	while ((op = peer->answers))
		p4_op_fail_answer(op);
}

static void check(void)
{
	struct p4_peer *peer;

	p4_lock();
	for (peer = p4_peers; peer; peer = peer->hh.next) {
		struct tq_peer *tq = peer->tq;
		bool closed;

		if (!peer->answers || !tq)
			continue;
		/* Peers stay until the endpoint is closed. */
		p4_unlock();
		closed = tq_peer_error(tq) == -ESHUTDOWN;
		p4_lock();
		if (!closed)
			continue;
		p4_log(TQ_LOG_WARN,
		       "Process %#x:%u has closed its interfaces before it answered all that was "
		       "sent to it.",
		       peer->key.nid, peer->key.pid);
		p4_peer_fail(peer);
	}
	p4_unlock_run();
}

const struct p4_endpoint_ops p4_peer_ops = {on_found, check};

void p4_peers_destroy(void)
{
	struct p4_peer *peer, *tmp;
	struct p4_op *op;

	p4_assert_held();
	HASH_ITER(hh, p4_peers, peer, tmp) {
		while ((op = peer->waiting)) {
			DL_DELETE2(peer->waiting, op, peer_prev, peer_next);
			p4_op_free(op);
		}
		while (peer->answers)
			p4_op_free(peer->answers);
		HASH_DEL(p4_peers, peer);
		for (unsigned i = 0; i < P4_NIS; i++)
			free(peer->ranks[i]);
		free(peer);
	}
}
