/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a connection failed: has the peer's process died? The adapter can't tell. These can:
 *
 *  - the file of the XRC domain (xrcd.c), in which each process has marked itself. The kernel takes
 *    the mark away when the process ends, however it ends. Processes of other nodes may share the
 *    file, too: another port of this host, say.
 *  - another process of the peer's node, which is asked by datagram, and looks at that file.
 *  - the peer itself, whose service thread acknowledges that its connection is cut.
 *
 * The answer takes a moment: a process that is killed loses its queues before its mark, or the
 * other way round. Until then the failure isn't reported (tq_connections_report()), so that the
 * sentence in the log, which comes before any request ends with the failure, gives the cause.
 */
#include "net/fate.h"

#include "base/clock.h"
#include "net/link.h"
#include "net/node.h"
#include "net/oob.h"
#include "net/xrcd.h"

#define PATIENCE     (250 * TQ_MS)
#define ASK_INTERVAL (20 * TQ_MS)
#define LOOK_AGAIN   (1 * TQ_MS)

/* Mates of the peer that are asked at a time. */
#define ASKED_AT_A_TIME 4

void tq_fate_watch(const struct tq_net *net, struct tq_link *link)
{
	link->contact->watched =
		link->node->key.domain == net->domain && tq_xrcd_has_mark(net, link->nonce) == 1;
}

bool tq_fate_has_died(const struct tq_net *net, const struct tq_link *link)
{
	/* A file system that fails to answer, as one of a network may, is no proof. */
	return link->contact->watched && tq_xrcd_has_mark(net, link->nonce) == 0;
}

void tq_fate_inquire(struct tq_link *link, uint64_t now)
{
	struct tq_contact *c = link->contact;

	c->fate = TQ_FATE_INQUIRED;
	c->fate_until = now + PATIENCE;
	c->fate_due = now;
}

void tq_fate_is(struct tq_link *link, enum tq_fate fate)
{
	if (link->contact->fate == TQ_FATE_INQUIRED)
		link->contact->fate = fate;
}

/* Asks some processes of the link's node, others each time. */
static void ask_mates(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *c = link->contact;
	struct tq_link *mate, *tmp;
	uint32_t i = 0, asked = 0;

	HASH_ITER(hh, net->connections->links, mate, tmp) {
		struct tq_oob_hdr ask;

		if (mate == link || mate->node != link->node || tq_link_has_failed(mate) ||
		    tq_link_is_closing(mate, TQ_THERE) || i++ < c->mates_asked)
			continue;
		ask = tq_oob_hdr(net, mate, TQ_OOB_ASK, link->nonce);
		tq_oob_send(net, mate, &ask, sizeof(ask));
		if (++asked == ASKED_AT_A_TIME)
			break;
	}
	c->mates_asked = asked == ASKED_AT_A_TIME ? c->mates_asked + asked : 0;
}

bool tq_fate_is_open(struct tq_net *net, struct tq_link *link, uint64_t now)
{
	struct tq_contact *c = link->contact;

	if (c->fate != TQ_FATE_INQUIRED)
		return false;
	if (tq_fate_has_died(net, link)) {
		c->fate = TQ_FATE_DIED;
	} else if (now >= c->fate_until || net->broken_reason) {
		c->fate = c->watched ? TQ_FATE_LIVES : TQ_FATE_UNKNOWN;
	} else if (now >= c->fate_due) {
		c->fate_due = now + ASK_INTERVAL;
		if (!c->watched)
			ask_mates(net, link);
	}
	return c->fate == TQ_FATE_INQUIRED;
}

uint64_t tq_fate_due(const struct tq_link *link, uint64_t now)
{
	const struct tq_contact *c = link->contact;

	return c->watched || c->fate_due <= now ? now + LOOK_AGAIN : c->fate_due;
}

/* A process asks whether another one of this node is still there. Where that isn't known, there is
 * no answer. */
static void answer(struct tq_net *net, const struct tq_link *asker, uint64_t nonce)
{
	const struct tq_link *about = tq_link_by_nonce(net, nonce);
	struct tq_oob_hdr told = tq_oob_hdr(net, asker, TQ_OOB_TOLD, nonce);

	if (!about || !about->contact->watched)
		return;
	told.status = tq_fate_has_died(net, about) ? TQ_OOB_GONE : TQ_OOB_OK;
	tq_oob_send(net, asker, &told, sizeof(told));
}

/* A process that is still marked may be about to end: only its end is final. */
static void told(struct tq_net *net, const struct tq_link *mate, const struct tq_oob_hdr *h)
{
	struct tq_link *about = tq_link_by_nonce(net, tq_get64(h->txid));

	if (about && about->node == mate->node && h->status == TQ_OOB_GONE)
		tq_fate_is(about, TQ_FATE_DIED);
}

void tq_on_fate(struct tq_net *net, const struct tq_oob_hdr *h)
{
	const struct tq_link *link = tq_link_by_nonce(net, tq_get64(h->from));

	if (!link)
		TQ_COUNT(net->stats, dropped);
	else if (h->type == TQ_OOB_ASK)
		answer(net, link, tq_get64(h->txid));
	else
		told(net, link, h);
}

const char *tq_fate_text(const struct tq_link *link)
{
	const struct tq_contact *c = link->contact;

	switch (c->fate) {
	case TQ_FATE_LIVES:
		if (c->denied)
			return " Its process is still there, but that memory isn't registered "
			       "there (any more), or not with that right: was it freed before all "
			       "had ended their operations on it, or is the address or the key "
			       "wrong?";
		return " Its process is still there: look at the ports on both sides (ibstat), at "
		       "their error counters (perfquery) and in the hosts' kernel logs.";
	case TQ_FATE_UNKNOWN:
		return c->refused ? " Its process has probably died: look for what it said last, "
				    "and in its host's kernel log."
				  : " Its process or its host may have died, or the network "
				    "between: look for what it said last, at the ports on both "
				    "sides (ibstat) and at their error counters (perfquery).";
	default:
		return "";
	}
}
