/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive through the control lane: whole (eager), or announced (RTS). */
#include "proto/arrive.h"

#include "proto/decide.h"
#include "proto/fetch.h"
#include "proto/mask.h"
#include "proto/match.h"
#include "proto/msg.h"
#include "proto/pair.h"
#include "proto/peer.h"
#include "proto/recall.h"
#include "proto/rx_objects.h"
#include "proto/rx_policy.h"
#include "proto/rx_tuple.h"
#include "proto/rx_tuple_table.h"
#include "proto/settings.h"
#include "proto/unexpected.h"

/* Returns the pair of a message from that peer, in whose envelope `source` is; NULL: that makes no
 * sense, or there is no memory. Inline, because each message comes through here. */
static inline __attribute__((always_inline)) struct tq_pair *
pair_of(struct tq_ctx *ctx, struct tq_peer *peer, uint32_t source, unsigned has_bits)
{
	/* Most contexts have neither flag, so that one test rules both out. */
	unsigned flags = (ctx->flags ^ has_bits) & (TQ_CTX_OPEN | TQ_CTX_BITS);
	struct tq_pair *pair = NULL;
	bool is_open;
	int rank;

	if (flags & TQ_CTX_BITS) {
		tq_peer_fail(peer, has_bits ? "it sent match bits to a context without them"
					    : "it sent a tag to a context with match bits");
		return NULL;
	}
	is_open = flags;
	if (!is_open && (source >= (uint32_t)ctx->npeers || ctx->peers[source] != peer)) {
		TQ_COUNT(ctx->core->stats, dropped);
		return NULL;
	}
	rank = is_open ? tq_core_ctx_join(ctx, peer) : (int)source;
	pair = tq_pair_get(ctx, rank);
	if (!pair)
		tq_peer_fail(peer, "there is no memory left for a message from it");
	return pair;
}

/* Returns the tuple of a message that has come, which counts for the tuple's policy, or NULL
 * without memory: the peer fails then. */
static struct tq_rx_tuple *tuple_get(struct tq_pair *pair, uint64_t tag,
				     const struct tq_msg_hdr *hdr)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_get(pair, tag);

	if (!tuple) {
		tq_peer_fail(pair->peer, "there is no memory left for a message from it");
		return NULL;
	}
	/* Tags that are used once have no place in the numbers of a tuple. */
	if (hdr->flags & TQ_ENV_NO_QUEUE)
		tq_recall(tuple, TQ_RECALL_BUFFER);
	tq_rx_policy_message(tuple);
	return tuple;
}

/* Returns the tuple of a message that has come; NULL: the message is to be ignored. */
static struct tq_rx_tuple *tuple_of(struct tq_ctx *ctx, struct tq_peer *peer,
				    const struct tq_msg_hdr *hdr, const struct tq_msg_env *env)
{
	struct tq_pair *pair = pair_of(ctx, peer, tq_get32(env->source), 0);

	if (!pair)
		return NULL;
	if ((int32_t)tq_get32(env->tag) == TQ_ANY_TAG) {
		TQ_COUNT(ctx->core->stats, dropped);
		return NULL;
	}
	return tuple_get(pair, tq_get32(env->tag), hdr);
}

/* Counts a message that comes through the control lane. A granted message counts when it is
 * delivered. */
static void count(struct tq_rx_tuple *tuple, uint64_t len)
{
	tuple->info.traditional++;
	tq_rx_policy_software(tuple, len);
	tuple->pair->ctx->core->nmessages++;
}

/* Takes over what a message's envelope says. Returns NULL, and gives the peer up, if there was no
 * memory for the message. */
static struct tq_unexpected *with_numbers(struct tq_unexpected *message, struct tq_peer *peer,
					  const struct tq_msg_hdr *hdr, tq_le32 cseq, tq_le32 seq)
{
	if (!message) {
		tq_peer_fail(peer, "there is no memory left for a message from it");
		return NULL;
	}
	message->cseq = tq_get32(cseq);
	message->seq = tq_get32(seq);
	message->flags = hdr->flags;
	return message;
}

static struct tq_unexpected *new_message(struct tq_rx_tuple *tuple, const struct tq_msg_hdr *hdr,
					 const struct tq_msg_env *env, enum tq_unexpected_kind kind,
					 uint64_t length)
{
	return with_numbers(tq_unexpected_new(tuple->pair, tuple, kind, length), tuple->pair->peer,
			    hdr, env->cseq, env->seq);
}

/* ---- eager ---- */

/* Returns true if the first receive of the tuple takes a message of it, whatever its number. */
static bool is_awaited(const struct tq_rx_tuple *tuple)
{
	return tuple->posted && !tuple->pair->nfenced && !tuple->pair->ctx->wild;
}

/* Gives the message to the receive that it matches, or to the queues. Returns true if the
 * buffer was kept. */
static bool arrive(struct tq_rx_tuple *tuple, const struct tq_msg_eager *msg, uint64_t len,
		   struct tq_bounce *bounce)
{
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_unexpected *message;
	bool kept;

	if (is_awaited(tuple) && !core->service) {
		struct tq_recv_req *recv = tuple->posted;

		DL_DELETE(tuple->posted, recv);
		tq_rx_tuple_rest(tuple);
		tq_fetch_at_once(recv, msg + 1, len);
		return false;
	}
	message = new_message(tuple, &msg->hdr, &msg->env, TQ_UNEXPECTED_EAGER, len);
	if (!message)
		return false;
	message->data = msg + 1;
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
	uint32_t ask = tq_get32(msg->env.ask);
	bool kept;

	if (!tuple)
		return false;
	if (tuple->state == TQ_RX_TUPLE_DIRECT) {
		tq_peer_fail(peer, "it sent a message eagerly to a tuple that it has switched");
		return false;
	}
	count(tuple, len - sizeof(*msg));
	kept = arrive(tuple, msg, len - sizeof(*msg), bounce);
	if (ask)
		tq_rx_tuple_handle_ask(tuple, ask);
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
	uint32_t ask = tq_get32(msg->env.ask);
	struct tq_unexpected *message;

	message = tuple ? new_message(tuple, &msg->hdr, &msg->env, TQ_UNEXPECTED_RTS,
				      tq_get64(msg->length))
			: NULL;
	if (!message)
		return;
	message->addr = tq_get64(msg->addr);
	message->rkey = tq_get32(msg->rkey);
	message->send_req = tq_get32(msg->send_req);
	if (answer_direct(tuple, message))
		return;
	count(tuple, message->length);
	tq_match_arrival(message);
	if (ask)
		tq_rx_tuple_handle_ask(tuple, ask);
}

/* ---- with match bits ---- */

/* Returns the tuple of a message that has come; NULL: the message is to be ignored. */
static struct tq_rx_tuple *bits_tuple_of(struct tq_ctx *ctx, struct tq_peer *peer,
					 const struct tq_msg_hdr *hdr,
					 const struct tq_msg_env_bits *env)
{
	struct tq_pair *pair;

	pair = pair_of(ctx, peer, tq_get32(env->source), TQ_CTX_BITS);
	if (!pair)
		return NULL;
	if (tq_get16(env->header_len) != ctx->header_len) {
		tq_peer_fail(peer, "its messages have headers of another length");
		return NULL;
	}
	tq_mask_announce(pair);
	return tuple_get(pair, tq_get64(env->bits) & ~pair->mask, hdr);
}

/* Answers a message if it asks for its tuple's queue. */
static void bits_ask(struct tq_rx_tuple *tuple, const struct tq_msg_env_bits *env)
{
	uint32_t ask = tq_get32(env->ask);

	if (!ask)
		return;
	if (tq_get16(env->mask_life) == tuple->pair->mask_life)
		tq_rx_tuple_handle_ask(tuple, ask);
	else
		tq_rx_tuple_refuse(tuple, ask, TQ_AFTER_LIMIT);
}

static struct tq_unexpected *new_bits_message(struct tq_rx_tuple *tuple,
					      const struct tq_msg_hdr *hdr,
					      const struct tq_msg_env_bits *env, const void *header,
					      enum tq_unexpected_kind kind, uint64_t length)
{
	return with_numbers(tq_decide_new(tuple, tq_get64(env->bits), header, kind, length),
			    tuple->pair->peer, hdr, env->cseq, env->seq);
}

bool tq_arrive_on_eager_bits(struct tq_ctx *ctx, struct tq_peer *peer,
			     const struct tq_msg_eager_bits *msg, uint32_t len,
			     struct tq_bounce *bounce)
{
	struct tq_rx_tuple *tuple = bits_tuple_of(ctx, peer, &msg->hdr, &msg->env);
	const char *header = (const char *)(msg + 1);
	struct tq_core *core = ctx->core;
	struct tq_unexpected *message;
	bool kept;

	if (!tuple)
		return false;
	if (tuple->state == TQ_RX_TUPLE_DIRECT) {
		tq_peer_fail(peer, "it sent a message eagerly to a tuple that it has switched");
		return false;
	}
	message = new_bits_message(tuple, &msg->hdr, &msg->env, header, TQ_UNEXPECTED_EAGER,
				   len - sizeof(*msg) - ctx->header_len);
	if (!message)
		return false;
	count(tuple, message->length);
	message->data = header + ctx->header_len;
	core->arriving = bounce;
	tq_decide_arrival(message);
	kept = bounce && !core->arriving;
	core->arriving = NULL;
	bits_ask(tuple, &msg->env);
	return kept;
}

void tq_arrive_on_rts_bits(struct tq_ctx *ctx, struct tq_peer *peer,
			   const struct tq_msg_rts_bits *msg)
{
	struct tq_rx_tuple *tuple = bits_tuple_of(ctx, peer, &msg->hdr, &msg->env);
	struct tq_unexpected *message;

	message = tuple ? new_bits_message(tuple, &msg->hdr, &msg->env, msg->header,
					   TQ_UNEXPECTED_RTS, tq_get64(msg->length))
			: NULL;
	if (!message)
		return;
	message->addr = tq_get64(msg->addr);
	message->rkey = tq_get32(msg->rkey);
	message->send_req = tq_get32(msg->send_req);
	if (answer_direct(tuple, message))
		return;
	/* The message's receive isn't posted, and may never be. */
	if (tuple->state == TQ_RX_TUPLE_DIRECT)
		tq_recall(tuple, TQ_RECALL_EARLY);
	count(tuple, message->length);
	tq_decide_arrival(message);
	bits_ask(tuple, &msg->env);
}
