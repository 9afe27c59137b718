/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_answer.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/lane_qp.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

static bool is_credit(tq_le32 n)
{
	return tq_get32(n) > 0 && tq_get32(n) <= TQ_CREDITS_MAX;
}

/* Returns true if the answer gives either credits or a ring. */
static bool way_is_sane(const struct tq_oob_rep *rep)
{
	if (tq_get32(rep->ring))
		return !tq_get32(rep->credits[TQ_SMALL]) && !tq_get32(rep->credits[TQ_LARGE]) &&
		       tq_ring_carries(tq_get32(rep->ring_size), tq_get32(rep->size[TQ_LARGE]));
	return is_credit(rep->credits[TQ_SMALL]) && is_credit(rep->credits[TQ_LARGE]);
}

static bool terms_are_sane(const struct tq_oob_rep *rep)
{
	return !(tq_get32(rep->srqn[TQ_SMALL]) >> 24) && !(tq_get32(rep->srqn[TQ_LARGE]) >> 24) &&
	       tq_get32(rep->size[TQ_SMALL]) >= TQ_MSG_MAX &&
	       tq_get32(rep->size[TQ_LARGE]) >= tq_get32(rep->size[TQ_SMALL]) && way_is_sane(rep) &&
	       tq_get32(rep->conn);
}

/* Opens the ring that the answer gives, or gives the peer's inbox up if there is none. */
static int take_ring(struct tq_net *net, struct tq_link *link, const struct tq_oob_rep *rep)
{
	if (tq_get32(rep->ring))
		return tq_outbox_open(link, tq_get32(rep->ring) - 1, tq_get32(rep->ring_size));
	tq_outbox_close(net, link);
	return 0;
}

static void fail_for_nonsense(struct tq_net *net, struct tq_link *link)
{
	tq_link_fail(net, link, TQ_FAIL_KNOWN,
		     "%s gave an answer to a connection request that makes no sense.",
		     tq_link_name(link));
}

/* Takes the terms of the answer. A control lane that is made anew doesn't change them. */
static void take_terms(struct tq_net *net, struct tq_link *link, const struct tq_oob_rep *rep)
{
	if (tq_link_can_send(link))
		return;
	if (take_ring(net, link, rep)) {
		fail_for_nonsense(net, link);
		return;
	}
	for (int cls = 0; cls < TQ_CLASSES; cls++) {
		link->srqn[cls] = tq_get32(rep->srqn[cls]);
		link->size[cls] = tq_get32(rep->size[cls]);
		link->credits[cls] = tq_get32(rep->credits[cls]);
	}
	link->number_there = tq_get32(rep->conn);
}

/* Has the link use the lane, of which its process has confirmed that it holds the TGT QP open. */
static void take_confirmation(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
			      const struct tq_oob_rep *rep)
{
	if (tq_lane_confirm(lane, link)) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "There is no memory to connect to %s.",
			     tq_link_name(link));
		return;
	}
	if (lane->kind == TQ_LANE_HOLD) {
		tq_core_on_lane_ready(net->core, link->peer);
		return;
	}
	link->ready[lane->kind] = lane;
	if (lane->kind != TQ_LANE_CONTROL)
		return;
	take_terms(net, link, rep);
	if (tq_link_has_failed(link))
		return;
	tq_link_set_up(net, link, TQ_HERE);
	if (link->size[TQ_SMALL] < TQ_MSG_MAX ||
	    link->size[TQ_LARGE] < net->limits.control_data_max + sizeof(struct tq_msg_eager))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP,
			     "its control buffers are smaller than ours: eager_limit and "
			     "eager_max must be the same in all processes");
}

static void reply_ok(struct tq_net *net, struct tq_connect_request *request,
		     const struct tq_oob_rep *rep)
{
	struct tq_lane *lane = request->lane;
	struct tq_link *link = request->link;
	uint32_t tgt_qpn = tq_get32(rep->tgt_qpn);
	int error;

	if (tgt_qpn < 2 || tgt_qpn >> 24 || !rep->rd_atomic ||
	    (lane->state == TQ_LANE_READY && tgt_qpn != lane->tgt_qpn) ||
	    (lane->kind == TQ_LANE_CONTROL && !terms_are_sane(rep))) {
		fail_for_nonsense(net, link);
		return;
	}
	if (lane->state == TQ_LANE_CONNECTING) {
		error = tq_lane_connect(net, lane, tgt_qpn, rep->rd_atomic);
		if (error) {
			tq_link_fail(net, link, TQ_FAIL_KNOWN,
				     "The %s connection to %s can't be made: %s.",
				     tq_lane_name(lane), tq_link_name(link), strerror(-error));
			tq_lane_retire(net, lane);
			return;
		}
		tq_connect_requests_restart(net, request);
	}
	tq_connect_request_end(net, request);
	take_confirmation(net, lane, link, rep);
}

static void reply_error(struct tq_net *net, struct tq_connect_request *request, int error)
{
	struct tq_link *link = request->link;
	struct tq_lane *lane = request->lane;

	if (lane->kind == TQ_LANE_BULK && tq_is_limit(error)) {
		link->contact->no_bulk = true;
		tq_log(net->job, TQ_LOG_WARN,
		       "Large messages to %s share the control connection, which is slower: %s (a "
		       "limit of its adapter, or of the memory that it may lock).",
		       tq_link_name(link), strerror(error));
		tq_connect_request_end(net, request);
		return;
	}
	if (lane->kind != TQ_LANE_HOLD && tq_is_limit(error)) {
		tq_link_fail(
			net, link, TQ_FAIL_KNOWN,
			"%s can't take part in a %s connection: its adapter gives no more queue "
			"pairs, or it may not lock more memory (%s). " TQ_LANES_ADVICE,
			tq_link_name(link), tq_lane_name(lane), strerror(error));
		return;
	}
	if (lane->kind != TQ_LANE_HOLD) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "%s can't take part in a %s connection: %s.",
			     tq_link_name(link), tq_lane_name(lane), strerror(error));
		return;
	}
	link->contact->no_hold = true;
	tq_log(net->job, TQ_LOG_WARN,
	       "%s takes no more connections on which messages can wait: %s.", tq_link_name(link),
	       strerror(error));
	tq_connect_request_end(net, request);
}

void tq_lane_on_answer(struct tq_net *net, const struct tq_oob_rep *rep)
{
	uint64_t txid = tq_get64(rep->hdr.txid);
	struct tq_connect_request *request;

	HASH_FIND(hh, net->connections->requests, &txid, sizeof(txid), request);
	if (!request || !request->sent || tq_link_has_failed(request->link) ||
	    request->link->nonce != tq_get64(rep->hdr.from))
		return; /* late, or for a link that has failed or a request that wasn't sent yet */
	request->heard = tq_now();
	request->silent = 0;
	switch ((enum tq_oob_status)rep->hdr.status) {
	case TQ_OOB_OK:
		reply_ok(net, request, rep);
		return;
	case TQ_OOB_WAIT:
		return;
	case TQ_OOB_GONE:
		/* A TGT QP goes with the last process that has it open, so the processes that had
		 * confirmed it have ended. */
		if (request->lane->state == TQ_LANE_READY)
			tq_lane_fail(net, request->lane, NULL, "its end at that node is gone");
		return;
	case TQ_OOB_ERROR:
		reply_error(net, request, (int)tq_get32(rep->error));
		return;
	}
	TQ_COUNT(net->stats, dropped);
}
