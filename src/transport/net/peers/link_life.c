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
#include "net/peers/link_life.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/adapter/xrcd.h"
#include "net/peers/link.h"
#include "net/peers/oob.h"

/* The longest an inquiry takes, and the intervals at which mates are asked, whose answers may get
 * lost, or the file is looked at, which is a system call only. */
#define PATIENCE      (250 * TQ_MS)
#define ASK_INTERVAL  (20 * TQ_MS)
#define LOOK_INTERVAL (1 * TQ_MS)

/* Processes of the peer's node that are asked at a time. */
#define ASKED_AT_A_TIME 4

/* Finds out whether the link's process can be watched from here. To be called when the link is
 * made.
 */
static void watch(const struct tq_net *net, struct tq_link *link)
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

/* Starts the inquiry: the link has failed, and that may be because its process has died. */
static void inquire(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	uint64_t now = tq_now();

	contact->fate = TQ_FATE_INQUIRED;
	contact->fate_until = now + PATIENCE;
	tq_timer_arm(net, &contact->fate_timer, now, look, link);
}

/* Ends an inquiry with its answer. Does nothing if no inquiry is under way. */
static void decide(struct tq_net *net, struct tq_link *link, enum tq_fate fate)
{
	if (link->contact->fate != TQ_FATE_INQUIRED)
		return;
	link->contact->fate = fate;
	tq_timer_stop(net, &link->contact->fate_timer);
}

void tq_fate_conclude(struct tq_net *net, struct tq_link *link)
{
	decide(net, link, link->contact->watched ? TQ_FATE_LIVES : TQ_FATE_UNKNOWN);
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
		decide(net, link, TQ_FATE_DIED);
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
		decide(net, about, TQ_FATE_DIED);
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
	watch(net, link);
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

/* The time after which a CUT without an answer is repeated first, longer than most processes take
 * to answer. */
#define FIRST_CUT_BACKOFF (20 * TQ_MS)

/* ---- cutting off ---- */

static tq_timer_fire cut_due;

static void send_cut(struct tq_net *net, struct tq_link *link)
{
	struct tq_oob_hdr cut = tq_oob_hdr(net, link, TQ_OOB_CUT, link->contact->culprit);

	tq_oob_send(net, link, &cut, sizeof(cut));
}

/* Tells the link's process, until it answers. A process that has died doesn't. */
static void say_cut(struct tq_net *net, struct tq_link *link, uint64_t now)
{
	struct tq_contact *contact = link->contact;

	send_cut(net, link);
	tq_timer_arm(net, &contact->cut_timer, now + contact->cut_backoff, cut_due, link);
	contact->cut_backoff = tq_oob_next_backoff(contact->cut_backoff);
}

void tq_link_cut(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	uint64_t now = tq_now();

	if (tq_link_is_closing(link, TQ_THERE) || contact->cut_until)
		return;
	/* A process that sends nothing more waits for nothing, and only takes note. */
	if (tq_link_is_quiet(link, TQ_THERE)) {
		send_cut(net, link);
		return;
	}
	contact->cut_until = now + (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;
	contact->cut_backoff = FIRST_CUT_BACKOFF;
	net->ndatagrams++;
	say_cut(net, link, now);
}

void tq_link_cut_end(struct tq_net *net, struct tq_link *link)
{
	if (!link->contact->cut_until)
		return;
	link->contact->cut_until = 0;
	tq_timer_stop(net, &link->contact->cut_timer);
	net->ndatagrams--;
}

static void cut_due(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;

	if (now >= link->contact->cut_until)
		tq_link_cut_end(net, link);
	else
		say_cut(net, link, now);
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

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return;
	tq_link_mark_failed(net, link);
	if (how == TQ_FAIL_LOST && !tq_link_is_closing(link, TQ_THERE))
		inquire(net, link);
	va_start(args, format);
	link->contact->why = sentence(link, how, format, args);
	va_end(args);
	net->ndatagrams++; /* the CUT that is due, until tq_links_tear_down() sends it */
	LL_PREPEND2(net->connections->failing, link, contact->failed_next);
}

/* ---- what others cut off ---- */

static void cut_off(struct tq_net *net, struct tq_link *link, struct tq_link *culprit)
{
	if (!culprit || culprit == link) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s has cut the connection: it failed there.", tq_link_name(link));
	} else {
		/* Other processes of that node will say the same. */
		link->contact->user_knows = tq_link_has_failed(culprit) || culprit->contact->blamed;
		culprit->contact->blamed = true;
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s has cut the connection: it failed there with that to %s.",
			     tq_link_name(link), tq_link_name(culprit));
	}
}

void tq_link_on_cut(struct tq_net *net, const struct tq_oob_hdr *datagram)
{
	struct tq_link *link = tq_link_by_nonce(net, tq_get64(datagram->from));
	struct tq_oob_hdr ack;

	if (!link)
		return;
	decide(net, link, TQ_FATE_LIVES);
	if (datagram->type == TQ_OOB_CUT_ACK) {
		tq_link_cut_end(net, link);
		return;
	}
	ack = tq_oob_hdr(net, link, TQ_OOB_CUT_ACK, 0);
	tq_oob_send(net, link, &ack, sizeof(ack));
	tq_link_set_quiet(net, link, TQ_THERE);
	if (!tq_link_has_failed(link) && !tq_link_is_closing(link, TQ_HERE))
		cut_off(net, link, tq_link_by_nonce(net, tq_get64(datagram->txid)));
}
