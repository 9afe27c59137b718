/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/link_fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/peers/contact.h"
#include "net/peers/fate.h"
#include "net/peers/link.h"
#include "net/peers/oob.h"

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
		tq_fate_inquire(net, link);
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
	tq_fate_decide(net, link, TQ_FATE_LIVES);
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
