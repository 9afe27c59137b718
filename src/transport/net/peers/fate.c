/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection may have failed because the peer's process has died. The adapter can't tell, but
 * these can:
 *
 *  - the file of the XRC domain (xrcd.c), in which each process has marked itself. The kernel takes
 *    the mark away when the process ends, however it ends. Processes of other nodes may share the
 *    file, too: another port of this host, say.
 *  - a mate of the peer: another process of its node, which is asked by datagram, and looks at that
 *    file.
 *  - the peer itself, whose service thread acknowledges that its connection is cut.
 *
 * The answer takes a moment: a process that is killed loses its queues before its mark, or its mark
 * before its queues. Until then the failure isn't reported (tq_connections_report()): the sentence
 * in the log gives the cause, and comes before any request ends with the failure.
 */
#include "net/peers/fate.h"

#include "base/clock.h"
#include "net/adapter/xrcd.h"
#include "net/peers/link.h"
#include "net/peers/node.h"
#include "net/peers/oob.h"

/* The longest an inquiry takes, and the intervals at which mates are asked, whose answers may get
 * lost, or the file is looked at, which is a system call only. */
#define PATIENCE      (250 * TQ_MS)
#define ASK_INTERVAL  (20 * TQ_MS)
#define LOOK_INTERVAL (1 * TQ_MS)

/* Processes of the peer's node that are asked at a time. */
#define ASKED_AT_A_TIME 4

void tq_fate_watch(const struct tq_net *net, struct tq_link *link)
{
	link->contact->watched =
		link->node->key.domain == net->domain && tq_xrcd_has_mark(net, link->nonce) == 1;
}

bool tq_fate_has_died(const struct tq_net *net, const struct tq_link *link)
{
	/* A network's file system that fails to answer is no proof. */
	return link->contact->watched && tq_xrcd_has_mark(net, link->nonce) == 0;
}

static tq_timer_fire look;

void tq_fate_inquire(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	uint64_t now = tq_now();

	contact->fate = TQ_FATE_INQUIRED;
	contact->fate_until = now + PATIENCE;
	tq_timer_arm(net, &contact->fate_timer, now, look, link);
}

void tq_fate_decide(struct tq_net *net, struct tq_link *link, enum tq_fate fate)
{
	if (link->contact->fate != TQ_FATE_INQUIRED)
		return;
	link->contact->fate = fate;
	tq_timer_stop(net, &link->contact->fate_timer);
}

void tq_fate_conclude(struct tq_net *net, struct tq_link *link)
{
	tq_fate_decide(net, link, link->contact->watched ? TQ_FATE_LIVES : TQ_FATE_UNKNOWN);
}

/* Asks some processes of the link's node, other ones each time. */
static void ask_mates(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	struct tq_link *mate, *tmp;
	uint32_t i = 0, asked = 0;

	HASH_ITER(hh, net->connections->links, mate, tmp) {
		struct tq_oob_hdr ask;

		if (mate == link || mate->node != link->node || tq_link_has_failed(mate) ||
		    tq_link_is_closing(mate, TQ_THERE) || i++ < contact->mates_asked)
			continue;
		ask = tq_oob_hdr(net, mate, TQ_OOB_ASK, link->nonce);
		tq_oob_send(net, mate, &ask, sizeof(ask));
		if (++asked == ASKED_AT_A_TIME)
			break;
	}
	contact->mates_asked = asked == ASKED_AT_A_TIME ? contact->mates_asked + asked : 0;
}

/* Looks for the mark of the link's process, and asks other processes of its node where that can't
 * be seen from here. */
static void look(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;
	const struct tq_contact *contact = link->contact;

	if (tq_fate_has_died(net, link)) {
		tq_fate_decide(net, link, TQ_FATE_DIED);
		return;
	}
	if (now >= contact->fate_until) {
		tq_fate_conclude(net, link);
		return;
	}
	if (!contact->watched)
		ask_mates(net, link);
	tq_timer_arm(net, &link->contact->fate_timer,
		     now + (contact->watched ? LOOK_INTERVAL : ASK_INTERVAL), look, link);
}

bool tq_fate_is_open(const struct tq_link *link)
{
	return link->contact->fate == TQ_FATE_INQUIRED;
}

/* Answers a process that asks whether another one of this node is still there. Where that isn't
 * known, no answer is sent. */
static void answer(struct tq_net *net, const struct tq_link *asker, uint64_t nonce)
{
	const struct tq_link *about = tq_link_by_nonce(net, nonce);
	struct tq_oob_hdr reply = tq_oob_hdr(net, asker, TQ_OOB_FATE, nonce);

	if (!about || !about->contact->watched)
		return;
	reply.status = tq_fate_has_died(net, about) ? TQ_OOB_GONE : TQ_OOB_OK;
	tq_oob_send(net, asker, &reply, sizeof(reply));
}

/* Takes the answer of a process of the same node. A process that is still marked may be about to
 * end: only its end is final. */
static void take_answer(struct tq_net *net, const struct tq_link *mate,
			const struct tq_oob_hdr *datagram)
{
	struct tq_link *about = tq_link_by_nonce(net, tq_get64(datagram->txid));

	if (about && about->node == mate->node && datagram->status == TQ_OOB_GONE)
		tq_fate_decide(net, about, TQ_FATE_DIED);
}

void tq_fate_on_datagram(struct tq_net *net, const struct tq_oob_hdr *datagram)
{
	const struct tq_link *link = tq_link_by_nonce(net, tq_get64(datagram->from));

	if (!link)
		TQ_COUNT(net->stats, dropped);
	else if (datagram->type == TQ_OOB_ASK)
		answer(net, link, tq_get64(datagram->txid));
	else
		take_answer(net, link, datagram);
}

const char *tq_fate_text(const struct tq_link *link)
{
	const struct tq_contact *contact = link->contact;

	switch (contact->fate) {
	case TQ_FATE_LIVES:
		if (contact->denied)
			return " Its process is still there, but that memory isn't registered "
			       "there (any more), or not with that right: was it freed before all "
			       "had ended their operations on it, or is the address or the key "
			       "wrong?";
		return " Its process is still there: look at the ports on both sides (ibstat), at "
		       "their error counters (perfquery) and in the hosts' kernel logs.";
	case TQ_FATE_UNKNOWN:
		return contact->refused
			       ? " Its process has probably died: look for what it said last, "
				 "and in its host's kernel log."
			       : " Its process or its host may have died, or the network "
				 "between: look for what it said last, at the ports on both "
				 "sides (ibstat) and at their error counters (perfquery).";
	default:
		return "";
	}
}
