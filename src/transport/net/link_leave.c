/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/link_leave.h"

#include "base/clock.h"
#include "net/channel/inbox.h"
#include "net/lanes/outbox.h"
#include "net/peers/contact.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"
#include "net/peers/oob.h"

/* A goodbye is repeated at this interval, in case it was lost. */
#define BYE_INTERVAL (20 * TQ_MS)
/* A process that leaves waits so long for BYE_ACK, a dozen repetitions: a peer that computes
 * answers only at its next call, and no job's end waits longer for that. So a process that hears no
 * goodbye for as long knows that the other one has left. */
#define BYE_LIMIT (250 * TQ_MS)

static tq_timer_fire gone;

/* Sends BYE_ACK, after which nothing more is sent to the link's process. */
static void send_bye_ack(struct tq_net *net, struct tq_link *link)
{
	struct tq_oob_hdr ack = tq_oob_hdr(net, link, TQ_OOB_BYE_ACK, 0);

	/* Sends that the peer has not received are about to end with an error. */
	if (tq_link_waits(link))
		tq_outbox_cut(link);
	tq_outbox_leave(link);
	tq_link_set_quiet(net, link, TQ_HERE);
	tq_oob_send(net, link, &ack, sizeof(ack));
}

void tq_link_on_bye(struct tq_net *net, const struct tq_oob_hdr *datagram)
{
	struct tq_link *link = tq_link_by_nonce(net, tq_get64(datagram->from));

	if (!link)
		return;
	/* Messages that the process has sent before its goodbye come first. */
	tq_inbox_drain(net, link);
	if (datagram->type == TQ_OOB_BYE_ACK) {
		tq_link_set_quiet(net, link, TQ_THERE);
		/* The process may leave as well, and need not wait for this one. */
		if (tq_link_is_closing(link, TQ_HERE) && !tq_link_is_quiet(link, TQ_HERE))
			send_bye_ack(net, link);
		return;
	}
	tq_link_close(net, link, TQ_THERE);
	tq_timer_arm(net, &link->contact->gone_timer, tq_now() + BYE_LIMIT, gone, link);
	net->connections->bye_acks_due += !link->contact->owes_bye_ack;
	link->contact->owes_bye_ack = true;
}

static const char not_received[] = "it has closed and not received what was sent to it";

void tq_links_send_bye_acks(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (link->contact->owes_bye_ack) {
			send_bye_ack(net, link);
			link->contact->owes_bye_ack = false;
			if (tq_link_waits(link))
				tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
		}
	}
	net->connections->bye_acks_due = 0;
}

/* Fails the link of a process that has not repeated its goodbye for so long: it is gone, and what
 * waits for it would do so for ever. */
static void gone(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;

	(void)now;
	if (link->backlog || tq_link_waits(link))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
	else
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s has left.", tq_link_name(link));
}

static bool may_still_send(const struct tq_link *link)
{
	return tq_link_can_receive(link) && !tq_link_has_failed(link) &&
	       !tq_link_is_quiet(link, TQ_THERE);
}

static bool is_awaited(const struct tq_link *link)
{
	return tq_link_is_closing(link, TQ_HERE) && may_still_send(link);
}

/* Says goodbye, until that is answered: datagrams get lost, and there may be fewer buffers for them
 * than processes to say goodbye to. The wait for the answer starts when the first one is sent. */
static void say_bye(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;
	struct tq_contact *contact = link->contact;
	struct tq_oob_hdr bye = tq_oob_hdr(net, link, TQ_OOB_BYE, 0);
	bool sent;

	if (tq_link_has_failed(link) ||
	    !(contact->owes_bye || (is_awaited(link) && now < contact->leave_until)))
		return;
	sent = tq_oob_send(net, link, &bye, sizeof(bye));
	if (sent && contact->owes_bye) {
		contact->owes_bye = false;
		contact->leave_until = now + BYE_LIMIT;
	}
	tq_timer_arm(net, &contact->bye_timer, sent ? now + BYE_INTERVAL : now, say_bye, link);
}

void tq_link_leave(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	tq_link_close(net, link, TQ_HERE);
	/* A process whose BYE_ACK is not needed gets a goodbye, too, because it may wait for this
	 * one's BYE_ACK. */
	link->contact->owes_bye = tq_link_can_receive(link) || tq_link_can_send(link);
	tq_timer_arm(net, &link->contact->bye_timer, tq_now(), say_bye, link);
}

static bool has_left(const struct tq_link *link)
{
	const struct tq_contact *contact = link->contact;

	return tq_link_has_failed(link) ||
	       (!contact->owes_bye && (!is_awaited(link) || tq_now() >= contact->leave_until));
}

bool tq_link_has_left(const struct tq_net *net, const struct tq_link *link)
{
	tq_assert_held(net->lock);
	return has_left(link) && tq_oob_is_idle(net);
}

void tq_link_abandon(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return;
	link->contact->user_knows = true;
	tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s was removed.", tq_link_name(link));
}

void tq_links_leave(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	tq_assert_held(net->lock);
	HASH_ITER(hh, net->connections->links, link, tmp)
		tq_link_leave(net, link);
}

bool tq_links_have_left(const struct tq_net *net)
{
	struct tq_link *link, *tmp;

	tq_assert_held(net->lock);
	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (!has_left(link))
			return false;
	}
	return tq_oob_is_idle(net);
}
