/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive through the control lane: whole (eager), or announced (RTS). */
#include "proto/matching/arrive.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/net_ops.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/match.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/matching/take.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* Returns the pair of a message from that peer, in whose envelope `source` is; NULL: that makes no
 * sense, or there is no memory. Most messages are of a pair that is there. */
static struct tq_pair *pair_of(struct tq_ctx *ctx, struct tq_peer *peer, uint32_t source)
{
	bool is_open = ctx->flags & TQ_CTX_OPEN;
	struct tq_pair *pair;

	if (is_open && peer->joined && peer->joined->ctx == ctx)
		return peer->joined;
	if (!is_open && source < (uint32_t)ctx->npeers && ctx->pairs[source] &&
	    ctx->pairs[source]->peer == peer)
		return ctx->pairs[source];
	if (!is_open && (source >= (uint32_t)ctx->npeers || ctx->peers[source] != peer)) {
		TQ_COUNT(ctx->core->stats, dropped);
		return NULL;
	}
	pair = tq_pair_get(ctx, is_open ? tq_core_ctx_join(ctx, peer) : (int)source);
	if (!pair)
		tq_peer_fail_memory(peer);
	return pair;
}

/* Returns true if messages of the context may have this envelope. */
static bool check(const struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_env *env)
{
	uint64_t tag = tq_get64(env->tag);

	if (tq_get16(env->header_len) != ctx->header_len) {
		tq_peer_fail(peer, "its messages have headers of another length");
		return false;
	}
	if (!(ctx->flags & TQ_CTX_BITS) && (tag > UINT32_MAX || (int32_t)tag == TQ_ANY_TAG)) {
		TQ_COUNT(ctx->core->stats, dropped);
		return false;
	}
	return true;
}

/* Returns the tuple of a message that has come, which counts for the tuple's policy. NULL: the
 * message is to be ignored, or there is no memory, and the peer has failed. In line, because each
 * message comes through here. */
static inline __attribute__((always_inline)) struct tq_rx_tuple *
tuple_of(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_hdr *hdr,
	 const struct tq_msg_env *env)
{
	struct tq_pair *pair =
		check(ctx, peer, env) ? pair_of(ctx, peer, tq_get32(env->source)) : NULL;
	struct tq_rx_tuple *tuple;

	if (!pair)
		return NULL;
	if (!pair->heard || pair->mask_due)
		tq_mask_announce(pair);
	tuple = tq_rx_tuple_get(pair, tq_get64(env->tag) & ~pair->mask);
	if (!tuple) {
		tq_peer_fail_memory(pair->peer);
		return NULL;
	}
	/* Tags that are used once have no place in the numbers of a tuple. */
	if (hdr->flags & TQ_ENV_NO_QUEUE)
		tq_recall(tuple, TQ_RECALL_BUFFER);
	tq_rx_policy_message(tuple);
	return tuple;
}

/* Answers a message if it asks for its tuple's queue. */
static void answer_ask(struct tq_rx_tuple *tuple, const struct tq_msg_env *env)
{
	uint32_t ask = tq_get32(env->ask);

	if (!ask)
		return;
	if (tq_get16(env->mask_life) == tuple->pair->mask_life)
		tq_rx_tuple_handle_ask(tuple, ask);
	else
		tq_rx_tuple_refuse(tuple, ask, TQ_AFTER_LIMIT);
}

/* Counts a message that comes through the control lane. A granted message counts when it is
 * delivered. */
static void count(struct tq_rx_tuple *tuple, uint64_t len)
{
	tuple->info.traditional++;
	tq_rx_policy_software(tuple, len);
	tuple->pair->ctx->core->nmessages++;
}

/* Returns the record of a message, in no queue. NULL: there was no memory for it, and the peer was
 * given up. */
static struct tq_unexpected *new_message(struct tq_rx_tuple *tuple, const struct tq_msg_hdr *hdr,
					 const struct tq_msg_env *env, const void *header,
					 enum tq_unexpected_kind kind, uint64_t length)
{
	struct tq_unexpected *message =
		tq_unexpected_new(tuple, tq_get64(env->tag), header, kind, length);

	if (!message) {
		tq_peer_fail_memory(tuple->pair->peer);
		return NULL;
	}
	message->cseq = tq_get32(env->cseq);
	message->seq = tq_get32(env->seq);
	message->flags = hdr->flags;
	return message;
}

/* ---- eager ---- */

/* Returns true if the tuple's first receive is the first that may take a message of it, whatever
 * the message's number. */
static bool is_awaited(const struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	return tuple->posted && !tuple->pair->nfenced && !ctx->wild && !ctx->core->service &&
	       !(ctx->flags & TQ_CTX_CLOSED) && !tq_ctx_revoked(ctx, tuple->tag);
}

/* Offers the message to the first receive of its tuple, without making a record of it. Returns true
 * if the message is gone: an entry may pass it over. */
static bool take_at_once(struct tq_rx_tuple *tuple, const struct tq_msg_eager *msg,
			 const void *data, uint64_t len)
{
	struct tq_recv_req *recv = tuple->posted;
	struct tq_pair *pair = tuple->pair;

	if (recv->req.kind == TQ_REQ_ENTRY) {
		const struct tq_envelope env = {.source = pair->rank,
						.peer = pair->peer,
						.bits = tq_get64(msg->env.tag),
						.length = len,
						.header = msg + 1};

		return tq_take_at_once(tq_entry_of(recv), pair, &env, data);
	}
	DL_DELETE(tuple->posted, recv);
	tq_rx_tuple_rest(tuple);
	tq_fetch_at_once(recv, pair, recv->want.tag, data, len);
	return true;
}

/* Gives the message to the receive that it matches, or to the queues. Returns true if the
 * buffer was kept. */
static bool arrive(struct tq_rx_tuple *tuple, const struct tq_msg_eager *msg, uint64_t len,
		   struct tq_bounce *bounce)
{
	const void *header = msg + 1, *data = (const char *)header + tuple->pair->ctx->header_len;
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_unexpected *message;
	bool awaited = is_awaited(tuple), kept;

	if (awaited && take_at_once(tuple, msg, data, len))
		return false;
	message = new_message(tuple, &msg->hdr, &msg->env, header, TQ_UNEXPECTED_EAGER, len);
	if (!message)
		return false;
	if (awaited)
		message->passed = tuple->posted->order + 1;
	message->data = data;
	core->arriving = bounce;
	tq_match_arrival(message);
	kept = bounce && !core->arriving;
	core->arriving = NULL;
	return kept;
}

bool tq_arrive_on_eager(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_eager *msg,
			uint32_t len, struct tq_bounce *bounce)
{
	struct tq_rx_tuple *tuple = tuple_of(ctx, peer, &msg->hdr, &msg->env);
	uint64_t data_len = len - sizeof(*msg) - ctx->header_len;
	bool kept;

	if (!tuple)
		return false;
	if (tuple->state == TQ_RX_TUPLE_DIRECT) {
		tq_peer_fail(peer, "it sent a message eagerly to a tuple that it has switched");
		return false;
	}
	count(tuple, data_len);
	kept = arrive(tuple, msg, data_len, bounce);
	answer_ask(tuple, &msg->env);
	return kept;
}

/* ---- RTS ---- */

/* Answers CTS-DIRECT to an RTS whose receive lies in the SRQ already. Returns false if the
 * message can't go there. */
static bool send_direct(const struct tq_unexpected *message)
{
	struct tq_msg_answer m = {.hdr = tq_msg_hdr(TQ_MSG_CTS_DIRECT, 0)};
	struct tq_core *core = message->pair->ctx->core;

	if (message->flags & TQ_RTS_NODIRECT ||
	    message->length > tq_rx_tuple_max_len(message->rx_tuple))
		return false;
	TQ_COUNT(core->stats, cts_direct);
	m.send_req = tq_put32(message->send_req);
	tq_peer_send(message->pair->peer, &m, sizeof(m),
		     message->flags & TQ_RTS_AWAY ? TQ_CONTROL_SOLICITED : 0);
	return true;
}

/* Answers an RTS whose receive lies in the SRQ already, or recalls the tuple if the message can't
 * go there. Returns true if the RTS was answered, and its record freed. */
static bool answer_direct(struct tq_rx_tuple *tuple, struct tq_unexpected *message)
{
	if (tuple->state != TQ_RX_TUPLE_DIRECT || !tq_seq_before(message->seq, tuple->pos))
		return false;
	if (send_direct(message)) {
		tq_unexpected_free(message);
		return true;
	}
	tq_recall(tuple, TQ_RECALL_BUFFER);
	return false;
}

void tq_arrive_on_rts(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_rts *msg)
{
	struct tq_rx_tuple *tuple = tuple_of(ctx, peer, &msg->hdr, &msg->env);
	struct tq_unexpected *message;

	message = tuple ? new_message(tuple, &msg->hdr, &msg->env, msg->header, TQ_UNEXPECTED_RTS,
				      tq_get64(msg->length))
			: NULL;
	if (!message)
		return;
	message->addr = tq_get64(msg->addr);
	message->rkey = tq_get32(msg->rkey);
	message->send_req = tq_get32(msg->send_req);
	if (answer_direct(tuple, message))
		return;
	/* An entry for the message isn't posted, and may never be. In an OFFERED tuple it may be
	 * posted: SWITCH tells. */
	if (ctx->match_ops && tuple->state == TQ_RX_TUPLE_DIRECT)
		tq_recall(tuple, TQ_RECALL_WAITING);
	count(tuple, message->length);
	tq_match_arrival(message);
	answer_ask(tuple, &msg->env);
}

/* ---- messages that the HCA has placed: those of DIRECT tuples, and held ones ---- */

/* ---- held ---- */

/* Moves the data of a matched probe out of the pool, as others need that, and the data may be
 * wanted late. */
static int move_out(struct tq_recv_req *recv)
{
	struct tq_sg own = {.addr = malloc(recv->sg.len), .len = recv->sg.len};

	if (!own.addr)
		return -ENOMEM;
	memcpy(own.addr, recv->sg.addr, own.len);
	tq_recv_mem_release(recv);
	recv->sg = own;
	recv->bounced = true;
	return 0;
}

static void held_delivered(struct tq_recv_req *recv, uint64_t len, int status)
{
	struct tq_rx_tuple *tuple = recv->rx_tuple;

	tq_recv_req_leave_active(recv);
	tuple->nsrq--;
	tq_rx_tuple_on_unheld(tuple);
	recv->req.status.length = len;
	if (recv->wanted > len)
		recv->wanted = len;
	if (recv->msg && recv->pooled && !status)
		status = move_out(recv);
	if (recv->msg || status)
		tq_recv_req_end(recv, status);
	else if (recv->bounced)
		tq_fetch_unbounce(recv);
	else
		tq_recv_req_complete(recv);
}

/* ---- direct ---- */

static void direct_delivered(struct tq_recv_req *recv, uint64_t len, int status)
{
	struct tq_rx_tuple *tuple = recv->rx_tuple;

	assert(recv->state == TQ_RECV_REQ_SRQ);
	recv->req.status.source = tuple->pair->rank;
	recv->req.status.tag = (int32_t)tuple->tag;
	recv->req.status.length = len;
	recv->wanted = len < recv->buf.len ? len : recv->buf.len;
	recv->pair = tuple->pair;
	tq_rx_tuple_take_out(tuple, recv);
	if (status)
		tq_recv_req_end(recv, status);
	else if (recv->bounced)
		tq_fetch_unbounce(recv);
	else
		tq_recv_req_complete(recv);
	tq_rx_tuple_on_delivered(tuple);
}

/* ---- both ---- */

void tq_core_on_delivered(struct tq_core *core, void *token, uint64_t len, const char *error)
{
	struct tq_recv_req *recv = token;
	struct tq_rx_tuple *tuple = recv->rx_tuple;
	struct tq_peer *peer = tuple->pair->peer;
	int status;

	tq_assert_held(core->lock);
	if (recv->req.kind == TQ_REQ_ENTRY) {
		error = tq_entry_on_delivered(tq_entry_of(recv), len, error);
		len = recv->req.status.length;
	}
	status = error ? -EIO : 0;
	if (!recv->pieces_asked) {
		TQ_COUNT(core->stats, recv_direct);
		TQ_COUNT_N(core->stats, recv_direct_bytes, len);
		tuple->info.direct++;
	}
	if (recv->state == TQ_RECV_REQ_HELD)
		held_delivered(recv, len, status);
	else
		direct_delivered(recv, len, status);
	/* In most cases the connection has failed while the message was coming in. */
	if (error)
		tq_peer_fail(peer, error);
}
