/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/link_end.h"

#include "net/lanes/lane_connect.h"
#include "net/lanes/outbox.h"
#include "net/lanes/request.h"
#include "net/peers/contact.h"
#include "net/peers/fate.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"
#include "net/peers/node.h"

/* Stops the peer from reading this process's memory, tells the peer that the link has failed, ends
 * the link's requests, and retires the hold lanes whose messages wait for a receive of the peer. */
static void tear_down(struct tq_net *net, struct tq_link *link)
{
	struct tq_lane *lane, *tmp;

	tq_outbox_cut(link);
	/* A peer that was told may give the ring to another process, so nothing is written there
	 * from here on. */
	tq_outbox_leave(link);
	tq_link_cut(net, link);
	tq_requests_drop(net, link);
	DL_FOREACH_SAFE(link->node->hold, lane, tmp) {
		if (lane->taken && lane->user == link)
			tq_lane_retire(net, lane);
	}
}

void tq_links_tear_down(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	struct tq_link *link;

	/* Others may fail with a link. */
	while ((link = connections->failing)) {
		LL_DELETE2(connections->failing, link, contact->failed_next);
		LL_PREPEND2(connections->broken, link, contact->failed_next);
		net->ndatagrams--;
		tear_down(net, link);
	}
}

void tq_link_report_failure(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	const char *why = contact->why ? contact->why : "A connection failed.";
	/* A peer that closed cleanly is news only if messages were lost. */
	bool news = !tq_link_is_closing(link, TQ_THERE) || tq_link_waits(link);
	enum tq_log_level level = news && !contact->user_knows ? TQ_LOG_ERROR : TQ_LOG_DEBUG;

	contact->logged = true;
	net->failures += news;
	if (contact->fate != TQ_FATE_DIED) {
		tq_log(net->job, level, "%s%s", why, tq_fate_text(link));
		return;
	}
	TQ_COUNT(net->stats, deaths);
	tq_log(net->job, level, "%s has died: its process ended without closing its connections.",
	       tq_link_name(link));
	tq_log(net->job, TQ_LOG_DEBUG, "%s", why);
}

bool tq_link_is_logged(const struct tq_link *link)
{
	return link->contact->logged;
}
