/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving: goodbyes, the promises that answer them, and processes that are gone. */
#include "net/leave.h"

#include "base/clock.h"
#include "net/contact.h"
#include "net/link.h"
#include "net/link_fail.h"
#include "net/oob.h"

#define BYE_INTERVAL (20 * TQ_MS)
#define BYE_LIMIT    (250 * TQ_MS)

static void promise(struct tq_net *net, struct tq_link *link)
{
	struct tq_oob_hdr ack = tq_oob_hdr(net, link, TQ_OOB_BYE_ACK, 0);

	tq_link_quiet(net, link, TQ_HERE);
	tq_oob_send(net, link, &ack, sizeof(ack));
}

void tq_on_bye(struct tq_net *net, const struct tq_oob_hdr *h)
{
	struct tq_link *link = tq_link_by_nonce(net, tq_get64(h->from));

	if (!link)
		return;
	if (h->type == TQ_OOB_BYE_ACK) {
		tq_link_quiet(net, link, TQ_THERE);
		/* The process may leave as well, and need not wait for this one. */
		if (tq_link_is_closing(link, TQ_HERE) && !tq_link_is_quiet(link, TQ_HERE))
			promise(net, link);
		return;
	}
	tq_link_close(net, link, TQ_THERE);
	link->contact->bye_heard = tq_now();
	net->connections->others_leave = true;
	net->connections->gone_due = 0;
	net->connections->nacks_owed += !link->contact->owed_ack;
	link->contact->owed_ack = true;
}

bool tq_link_waits(const struct tq_link *link)
{
	return link->peer && tq_core_awaits_answer(link->peer);
}

static const char not_received[] = "it has closed and not received what was sent to it";

void tq_acks_send(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (link->contact->owed_ack) {
			promise(net, link);
			link->contact->owed_ack = false;
			if (tq_link_waits(link))
				tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
		}
	}
	net->connections->nacks_owed = 0;
}

static void drop_gone(struct tq_net *net, struct tq_link *link)
{
	if (link->backlog || tq_link_waits(link))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, not_received);
	else
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s has left.", tq_link_name(link));
}

/* A process that has not repeated its goodbye for so long is gone: what waits for it would do so
 * for ever. */
void tq_gone_poll(struct tq_net *net, uint64_t now)
{
	struct tq_connections *connections = net->connections;
	struct tq_link *link, *tmp;

	connections->others_leave = false;
	connections->gone_due = UINT64_MAX;
	HASH_ITER(hh, connections->links, link, tmp) {
		uint64_t due = link->contact->bye_heard + BYE_LIMIT;

		if (!tq_link_is_closing(link, TQ_THERE) || tq_link_has_failed(link))
			continue;
		if (now >= due) {
			drop_gone(net, link);
			continue;
		}
		connections->others_leave = true;
		if (due < connections->gone_due)
			connections->gone_due = due;
	}
}

static bool may_send_to_us(const struct tq_link *link)
{
	return link->bank && !tq_link_has_failed(link) && !tq_link_is_quiet(link, TQ_THERE);
}

static bool is_awaited(const struct tq_link *link)
{
	return tq_link_is_closing(link, TQ_HERE) && may_send_to_us(link);
}

/* Says goodbye. The wait for the answer starts when the first goodbye is sent. */
static void say_bye(struct tq_net *net, struct tq_link *link, uint64_t now)
{
	struct tq_oob_hdr bye = tq_oob_hdr(net, link, TQ_OOB_BYE, 0);
	struct tq_contact *c = link->contact;

	if (!tq_oob_send(net, link, &bye, sizeof(bye)))
		return;
	if (c->owes_bye)
		c->leave_until = now + BYE_LIMIT;
	c->owes_bye = false;
	c->bye_due = now + BYE_INTERVAL;
}

/* Datagrams get lost, and there may be fewer buffers for them than processes to say goodbye to. */
void tq_byes_poll(struct tq_net *net, uint64_t now)
{
	struct tq_connections *connections = net->connections;
	struct tq_link *link, *tmp;

	connections->leaving = false;
	connections->bye_due = UINT64_MAX;
	HASH_ITER(hh, connections->links, link, tmp) {
		struct tq_contact *c = link->contact;

		if (tq_link_has_failed(link) || !(c->owes_bye || is_awaited(link)))
			continue;
		if (c->owes_bye || c->bye_due <= now)
			say_bye(net, link, now);
		connections->leaving = true;
		if (c->owes_bye)
			connections->bye_due = now;
		else if (c->bye_due < connections->bye_due)
			connections->bye_due = c->bye_due;
	}
}

void tq_link_leave(struct tq_net *net, struct tq_link *link)
{
	tq_link_close(net, link, TQ_HERE);
	/* Also to processes whose promise is not needed: they may wait for this one. */
	link->contact->owes_bye = link->bank || tq_link_is_connected(link);
	net->connections->leaving = true;
	net->connections->bye_due = 0;
}

static bool has_left(const struct tq_link *link)
{
	const struct tq_contact *c = link->contact;

	return tq_link_has_failed(link) ||
	       (!c->owes_bye && (!is_awaited(link) || tq_now() >= c->leave_until));
}

bool tq_link_left(const struct tq_net *net, const struct tq_link *link)
{
	return has_left(link) && tq_oob_idle(net);
}

void tq_connections_leave(struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp)
		tq_link_leave(net, link);
}

bool tq_connections_left(const struct tq_net *net)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (!has_left(link))
			return false;
	}
	return tq_oob_idle(net);
}
