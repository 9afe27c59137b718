/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving side of the control channel: the credits that senders have in the banks, given and
 * returned. Credits never run out for good, however few there are, by these rules:
 *
 *   1. A message other than CREDIT costs its sender a credit of its class. The receiver owes that
 *      credit from when the buffer is posted again, and returns all that it owes with its next
 *      message.
 *   2. A CREDIT is sent if more than half of a class's credits are owed. A CREDIT costs none, as
 *      two small buffers of each sender are set aside for them.
 *   3. A CREDIT's buffer is posted again before anything else is done.
 *
 * A sender that has no credit left in a class has used all: all of its messages arrive, need
 * nothing else to be handled, and are owed. That is more than half; so a CREDIT comes, which needs
 * no credit.
 *
 * The two buffers suffice: say that B's CREDIT C2 to A, due to a class, follows C1 due to the same.
 * B owed more than half of A's credits when it sent C1, and more than half again when it sent C2.
 * If A had sent all of those before it got C1, more would have been on their way than A has. So A
 * sent one of them after C1 came, when C1's buffer was posted again (rule 3). That is one buffer
 * for each class. (Growing changes nothing: credits are granted in the message that carries them.)
 */
#include "net/channel/credit.h"

#include <errno.h>

#include "net/channel/post.h"
#include "net/peers/link_life.h"

#define CREDIT_BUFFERS TQ_CLASSES /* small buffers for CREDIT messages of each sender */
#define FIRST_SHARE    4u         /* a new sender gets up to 1/FIRST_SHARE of a bank */
#define SHARE          2u         /* a sender that has used its credits up gets up to 1/SHARE */

/* Returns the credits of a new sender: so few that some senders fit in any bank, also in one that
 * has fewer buffers than others. */
static uint32_t granted_first(const struct tq_net *net, const struct tq_bank *bank, int cls)
{
	int64_t n = net->params->credits, most = bank->depth[cls] / FIRST_SHARE;

	if (cls == TQ_LARGE) /* large buffers are dear, and most senders use few */
		n /= 2;
	if (n > TQ_CREDITS_MAX)
		n = TQ_CREDITS_MAX;
	return (uint32_t)(n < most ? n : most);
}

bool tq_credit_fits(const struct tq_net *net, const struct tq_bank *bank)
{
	return bank->granted[TQ_SMALL] + granted_first(net, bank, TQ_SMALL) + CREDIT_BUFFERS <=
		       bank->depth[TQ_SMALL] &&
	       bank->granted[TQ_LARGE] + granted_first(net, bank, TQ_LARGE) <=
		       bank->depth[TQ_LARGE];
}

void tq_credit_give(struct tq_net *net, struct tq_link *link, struct tq_bank *bank)
{
	int cls;

	for (cls = 0; cls < TQ_CLASSES; cls++) {
		link->granted[cls] = granted_first(net, bank, cls);
		link->owed[cls] = 0;
		bank->granted[cls] += link->granted[cls];
	}
	bank->granted[TQ_SMALL] += CREDIT_BUFFERS;
	link->bank = bank;
	DL_APPEND2(net->senders, link, senders_prev, senders_next);
}

static bool credit_is_due(struct tq_link *link)
{
	int cls;

	for (cls = 0; cls < TQ_CLASSES; cls++)
		if (link->owed[cls] * 2 > link->granted[cls])
			return true;
	return false;
}

/* Returns how many credits a sender gets beyond its own if it used up more than half of them, up to
 * a share of the bank: it needs a CREDIT, so it sends much and gets no messages that return
 * credits. A quarter of the bank stays for new senders. */
static uint32_t growth(const struct tq_link *link, int cls)
{
	const struct tq_bank *bank = link->bank;
	uint32_t most = bank->depth[cls] - bank->depth[cls] / 4;
	uint32_t limit = bank->depth[cls] / SHARE;
	uint32_t more = link->granted[cls];

	if (limit > TQ_CREDITS_MAX)
		limit = TQ_CREDITS_MAX;
	if (link->owed[cls] * 2 <= link->granted[cls] || link->granted[cls] >= limit ||
	    bank->granted[cls] >= most)
		return 0;
	if (more > limit - link->granted[cls])
		more = limit - link->granted[cls];
	if (more > most - bank->granted[cls])
		more = most - bank->granted[cls];
	return more;
}

void tq_credit_forget(struct tq_net *net, struct tq_link *link)
{
	struct tq_bank *bank = link->bank;
	int cls;

	for (cls = 0; cls < TQ_CLASSES; cls++)
		bank->granted[cls] -= link->granted[cls];
	bank->granted[TQ_SMALL] -= CREDIT_BUFFERS;
	DL_DELETE2(net->senders, link, senders_prev, senders_next);
	if (link->owing) {
		LL_DELETE2(net->owing, link, owing_next);
		link->owing = false;
	}
	link->bank = NULL;
}

void tq_credit_owe(struct tq_net *net, struct tq_link *link, int cls)
{
	if (link->owed[cls] == link->granted[cls]) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP,
			     "it sent more control messages than it has credit for");
		return;
	}
	link->owed[cls]++;
	if (link->owed[cls] * 2 > link->granted[cls] && !link->owing) {
		link->owing = true;
		LL_PREPEND2(net->owing, link, owing_next);
	}
}

bool tq_credit_take(struct tq_link *link, const struct tq_msg_hdr *hdr)
{
	static_assert(TQ_CLASSES == 2, "the first test");

	/* Most messages return none. */
	if (!(hdr->credits[0] | hdr->credits[1]) || !tq_link_can_send(link))
		return true;
	for (int cls = 0; cls < TQ_CLASSES; cls++) {
		if (hdr->credits[cls] > TQ_CREDITS_MAX - link->credits[cls])
			return false;
		link->credits[cls] += hdr->credits[cls];
	}
	return true;
}

/* Sends a CREDIT, with more credits for a sender that needs them. Returns false, and changes
 * nothing, if the CREDIT has to wait. */
static bool send_credit(struct tq_net *net, struct tq_link *link)
{
	struct tq_msg_hdr msg = {.type = TQ_MSG_CREDIT};
	uint32_t more[TQ_CLASSES];
	int cls;

	for (cls = 0; cls < TQ_CLASSES; cls++) {
		more[cls] = growth(link, cls);
		link->granted[cls] += more[cls];
		link->owed[cls] += more[cls];
		link->bank->granted[cls] += more[cls];
	}
	/* Solicited, because messages that wait for credit are mostly copies whose sends have
	 * completed already: the peer's application may be computing, and then doesn't poll. */
	if (tq_post(net, link, &msg, sizeof(msg), NULL, TQ_CONTROL_SOLICITED) != -EAGAIN)
		return true;
	/* The sender would get more with each poll in vain. */
	for (cls = 0; cls < TQ_CLASSES; cls++) {
		link->granted[cls] -= more[cls];
		link->owed[cls] -= more[cls];
		link->bank->granted[cls] -= more[cls];
	}
	return false;
}

int tq_credit_poll(struct tq_net *net)
{
	struct tq_link *link, *next;
	int events = 0;

	net->credit_waits = false;
	LL_FOREACH_SAFE2(net->owing, link, next, owing_next) {
		/* Another message may have returned the credits meanwhile. Credits are returned
		 * even while this process leaves, because the peer acknowledges the goodbye only
		 * after its waiting messages have arrived. */
		if (tq_link_is_open(link) && credit_is_due(link)) {
			if (!tq_post_lane(net, link) || !send_credit(net, link)) {
				net->credit_waits = true;
				continue;
			}
			events++;
		}
		LL_DELETE2(net->owing, link, owing_next);
		link->owing = false;
	}
	return events;
}
