/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts sends: which way a message goes (direct, eager, RTS). */
#include "proto/send.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/min.h"
#include "proto/buf.h"
#include "proto/ctx.h"
#include "proto/msg.h"
#include "proto/local_way.h"
#include "proto/overdue.h"
#include "proto/pair.h"
#include "proto/pieces.h"
#include "proto/prefix.h"
#include "proto/req.h"
#include "proto/send_req.h"
#include "proto/settings.h"
#include "proto/tx_lane.h"
#include "proto/tx_objects.h"
#include "proto/tx_policy.h"
#include "proto/tx_tuple.h"
#include "proto/tx_tuple_table.h"

/* The arguments of a call of tq_core_send() or tq_core_send_bits(), and what they name. */
struct sending {
	struct tq_core *core;
	struct tq_pair *pair;
	struct tq_tx_tuple *tx_tuple; /* NULL: the message goes to no tuple queue */
	uint64_t tag;
	uint64_t bits; /* `bits` and `header`: only in contexts with match bits */
	const void *header;
	const struct tq_buf *buf;
	unsigned flags;
	void *user;
};

/*
 * Marks a function of which each kind of context, with match bits and without, has its own copy, so
 * that messages without match bits need no instruction more.
 */
#define PER_KIND static inline __attribute__((always_inline))

/* ---- requests ---- */

PER_KIND struct tq_send_req *send_req_new(const struct sending *sending)
{
	struct tq_core *core = sending->core;
	struct tq_send_req *send = tq_req_new(core, TQ_REQ_SEND, sizeof(*send));

	if (!send)
		return NULL;
	*send = (struct tq_send_req){
		.req = {.kind = TQ_REQ_SEND,
			.core = core,
			.user = sending->user,
			.status = {.source = sending->pair->rank,
				   .tag = (int32_t)sending->tag,
				   .length = sending->buf->len}},
		.state = TQ_SEND_REQ_NEW,
		.pair = sending->pair,
		.tx_tuple = sending->tx_tuple,
		.tag = sending->tag,
		.cseq = sending->pair->cseq,
		.seq = sending->tx_tuple ? sending->tx_tuple->seq : 0,
		.flags = sending->flags,
		.buf = *sending->buf,
	};
	DL_APPEND2(sending->pair->send_reqs, send, pair_prev, pair_next);
	core->outstanding++;
	return send;
}

/* Sends of empty messages that wait for their receive after they have ended for their users.
 * The pool of copies, which bounds the others, has no part in these. */
#define EMPTY_MAX 16384u

/* Returns true if the send is locally complete when it is posted, to a lane of its tuple or as an
 * RTS: nothing needs the user's memory any more when it was copied, to the pool or (inline) into
 * the WQE. */
static bool ends_now(const struct tq_send_req *send, bool is_direct)
{
	if (send->flags & TQ_SEND_SYNC)
		return false;
	if (send->copied || (is_direct && !send->sg.reg))
		return true;
	return send->buf.len == 0 && send->req.core->nempty < EMPTY_MAX;
}

/*
 * Gets the user of a send that is about to be posted, if that was deferred and posting does not
 * end the send. This is the last step that may fail for lack of memory. Returns 0 or -ENOMEM.
 */
static int need_user(struct tq_send_req *send)
{
	void *user;

	if (!(send->flags & TQ_SEND_DEFER_USER))
		return 0;
	user = send->req.core->send_pending(send->req.user);
	if (!user)
		return -ENOMEM;
	send->req.user = user;
	send->flags &= ~TQ_SEND_DEFER_USER;
	return 0;
}

/* Ends a send whose message was never sent. */
static int give_up(struct tq_send_req *send, int error)
{
	send->req.detached = true;
	tq_send_req_end(send, error);
	return error;
}

/* ---- direct ---- */

PER_KIND uint64_t direct_limit(const struct tq_tx_tuple *tuple, bool has_bits)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	return tq_min64(tuple->max_len,
			ctx->core->limits->max_send - (has_bits ? ctx->prefix_len : 0));
}

/* Sends the message to its tuple queue. -EAGAIN: the message has to go by RTS; -ENOMEM. */
PER_KIND int send_direct(struct tq_send_req *send, bool has_bits)
{
	struct tq_core *core = send->req.core;
	struct tq_tx_tuple *tuple = send->tx_tuple;
	struct tq_lane *lane;
	bool has_notice;
	int rc;

	if (!tq_tx_tuple_may_go_direct(tuple) || send->buf.len > direct_limit(tuple, has_bits))
		return -EAGAIN;
	if (has_bits && !send->prefix)
		return -EAGAIN;
	lane = tq_tx_lane_get(tuple);
	if (!lane) {
		TQ_COUNT(core->stats, no_lane);
		return -EAGAIN;
	}
	if (!tq_send_req_inlines(send) && !tq_send_req_load(send))
		return -EAGAIN;
	if (!ends_now(send, true) && need_user(send))
		return -ENOMEM;
	has_notice = tq_tx_policy_wants_notice(tuple, send);
	rc = tq_send_req_post(send, lane);
	if (rc)
		return rc;
	tq_tx_tuple_note_post(tuple, send, lane);
	if (has_bits)
		tq_overdue_watch(tuple);
	if (has_notice)
		tq_tx_policy_notice(tuple, send->seq);
	return 0;
}

/* ---- through the control lane ---- */

/* Returns true if the receiver's library has to see the message. With match bits what ends a send
 * that went direct may be a receive of the library, for a message that is kept without an entry. */
static bool needs_library(const struct sending *sending)
{
	bool has_bits = sending->pair->ctx->flags & TQ_CTX_BITS;

	return sending->flags & (TQ_SEND_MATCHED | (has_bits ? TQ_SEND_SYNC : 0));
}

/* Returns true if the message itself can go to a tuple queue. One that can't would only make
 * the receiver recall the queue. */
static bool suits_direct(const struct sending *sending)
{
	uint32_t pieces = sending->core->limits->max_sge - !!sending->header;

	return sending->buf->len <= direct_limit(sending->tx_tuple, true) &&
	       !needs_library(sending) &&
	       (!sending->buf->ops || sending->buf->len <= tq_eager_max(sending->core) ||
		tq_pieces_fit(sending->buf, pieces));
}

static struct tq_msg_env envelope(const struct sending *sending, uint32_t ask)
{
	return (struct tq_msg_env){
		.ctx = tq_put32(sending->pair->ctx->id),
		.source = tq_put32((uint32_t)sending->pair->ctx->rank),
		.tag = tq_put32((uint32_t)sending->tag),
		.cseq = tq_put32(sending->pair->cseq),
		.seq = tq_put32(sending->tx_tuple ? sending->tx_tuple->seq : 0),
		.ask = tq_put32(ask),
	};
}

/* Returns the handle by which the message asks for a queue; 0: it doesn't ask. */
static uint32_t ask_handle(const struct sending *sending)
{
	struct tq_tx_tuple *tuple = sending->tx_tuple;

	/* Most messages don't ask. */
	if (!tuple || tuple->state != TQ_TX_TUPLE_CONTROL || tuple->sent < tuple->ask_at)
		return 0;
	if (!tq_asks_for_queue(sending->core, sending->buf->len) || !suits_direct(sending))
		return 0;
	if (!tq_local_way_wants_queue(tuple->pair->peer, sending->buf->len)) {
		TQ_COUNT(sending->core->stats, not_asked_local);
		return 0;
	}
	return tq_tx_tuple_ask(tuple);
}

static struct tq_msg_env_bits bits_envelope(const struct sending *sending, uint32_t ask)
{
	return (struct tq_msg_env_bits){
		.ctx = tq_put32(sending->pair->ctx->id),
		.source = tq_put32((uint32_t)sending->pair->ctx->rank),
		.cseq = tq_put32(sending->pair->cseq),
		.seq = tq_put32(sending->tx_tuple ? sending->tx_tuple->seq : 0),
		.ask = tq_put32(ask),
		.mask_life = tq_put16(sending->pair->tx_mask_life),
		.header_len = tq_put16((uint16_t)sending->pair->ctx->header_len),
		.bits = tq_put64(sending->bits),
	};
}

/* Returns true if a buffer for eager messages has room for this one and what is in front of it. */
static bool bits_eager_fits(const struct sending *sending)
{
	return sending->buf->len + sizeof(struct tq_msg_eager_bits) +
		       sending->pair->ctx->header_len <=
	       sending->core->limits->control_data_max + sizeof(struct tq_msg_eager);
}

static void bits_eager_head(const struct sending *sending, struct tq_msg_eager_bits *m,
			    uint32_t ask)
{
	m->hdr = tq_msg_hdr(TQ_MSG_EAGER_BITS,
			    sending->flags & TQ_SEND_NO_QUEUE ? TQ_ENV_NO_QUEUE : 0);
	m->env = bits_envelope(sending, ask);
	memcpy(m + 1, sending->header, sending->pair->ctx->header_len);
}

static void eager_head(const struct sending *sending, struct tq_msg_eager *m, uint32_t ask)
{
	m->hdr = tq_msg_hdr(TQ_MSG_EAGER, sending->flags & TQ_SEND_NO_QUEUE ? TQ_ENV_NO_QUEUE : 0);
	m->env = envelope(sending, ask);
}

/* Sends the message with its data. -EAGAIN: no buffer, or the peer wants no more. */
PER_KIND int send_eager(const struct sending *sending, bool has_bits)
{
	struct tq_core *core = sending->core;
	uint32_t head = (uint32_t)(has_bits ? sizeof(struct tq_msg_eager_bits) +
						      sending->pair->ctx->header_len
					    : sizeof(struct tq_msg_eager));
	uint32_t len = head + (uint32_t)sending->buf->len;
	void *m = core->ops->eager_buf(core->net, sending->pair->peer->link, len);
	uint32_t ask;
	int rc;

	if (!m)
		return -EAGAIN;
	ask = ask_handle(sending);
	if (has_bits)
		bits_eager_head(sending, m, ask);
	else
		eager_head(sending, m, ask);
	tq_buf_pack(sending->buf, 0, (char *)m + head, sending->buf->len);
	rc = core->ops->eager_send(core->net, sending->pair->peer->link, m, len, 0);
	if (rc < 0)
		return rc;
	if (ask)
		tq_tx_tuple_mark_asked(sending->tx_tuple);
	TQ_COUNT(core->stats, sent_eager);
	TQ_COUNT_N(core->stats, sent_eager_bytes, sending->buf->len);
	return 0;
}

/* Returns true for a synchronous send to the process itself, which ends with its receive: the
 * user may look at the send next, and a direct send may complete later. */
static bool ends_with_receive(const struct tq_pair *pair, unsigned flags)
{
	return pair->peer->self && flags & TQ_SEND_SYNC;
}

/*
 * Gets the memory that the answers to an RTS may need, in advance where a read or a direct send
 * may be asked for, and where a copy lets the send end at once. Returns the RTS's flags.
 */
PER_KIND uint8_t rts_memory(struct tq_send_req *send, bool has_bits)
{
	const struct tq_core *core = send->req.core;
	const struct tq_tx_tuple *tuple = send->tx_tuple;
	bool may_be_granted = tuple && tuple->state == TQ_TX_TUPLE_DIRECT;
	enum tq_way way =
		send->buf.ops ? TQ_WAY_ADAPTER : tq_local_way(send->pair->peer, send->buf.len);
	bool may_be_read = tq_wants_rget(core) && !send->buf.ops && way == TQ_WAY_ADAPTER;
	bool loaded = send->sg.reg != NULL;
	uint8_t flags = way == TQ_WAY_COPY ? TQ_RTS_LOCAL : 0;

	if (!loaded && (may_be_read || may_be_granted || tq_send_req_wants_copy(send)))
		loaded = tq_send_req_load(send);
	if (send->sg.reg && !send->pieces && tq_wants_rget(core))
		flags |= TQ_RTS_RKEY;
	if (may_be_granted && (!loaded || (has_bits && !send->prefix) ||
			       send->buf.len > direct_limit(tuple, has_bits) ||
			       ends_with_receive(send->pair, send->flags)))
		flags |= TQ_RTS_NODIRECT;
	send->nodirect = !may_be_granted || flags & TQ_RTS_NODIRECT;
	return flags;
}

/* The part of an RTS that answers refer to. */
struct rts {
	uint8_t flags;
	uint32_t ask;
	tq_le64 addr;
	tq_le32 rkey;
};

static int post_rts(const struct sending *sending, const struct tq_send_req *send,
		    const struct rts *rts, unsigned flags)
{
	struct tq_core *core = sending->core;
	struct tq_msg_rts m = {
		.hdr = tq_msg_hdr(TQ_MSG_RTS, rts->flags),
		.env = envelope(sending, rts->ask),
		.length = tq_put64(send->buf.len),
		.addr = rts->addr,
		.rkey = rts->rkey,
		.send_req = tq_put32(send->handle),
	};

	return core->ops->control(core->net, sending->pair->peer->link, &m, sizeof(m), flags);
}

static int post_rts_bits(const struct sending *sending, const struct tq_send_req *send,
			 const struct rts *rts, unsigned flags)
{
	struct tq_core *core = sending->core;
	struct tq_msg_rts_bits m = {
		.hdr = tq_msg_hdr(TQ_MSG_RTS_BITS, rts->flags),
		.env = bits_envelope(sending, rts->ask),
		.length = tq_put64(send->buf.len),
		.addr = rts->addr,
		.rkey = rts->rkey,
		.send_req = tq_put32(send->handle),
	};

	memcpy(m.header, sending->header, sending->pair->ctx->header_len);
	return core->ops->control(core->net, sending->pair->peer->link, &m, sizeof(m), flags);
}

PER_KIND int send_rts(const struct sending *sending, struct tq_send_req *send, bool has_bits)
{
	struct tq_core *core = sending->core;
	uint8_t flags = rts_memory(send, has_bits);
	/* The receive may lie in the tuple's queue; then the service threads can grant and
	 * send without the users. */
	bool overlaps = !send->nodirect && sending->buf->len > tq_eager_max(core);
	struct rts rts = {.ask = ask_handle(sending)};
	unsigned how = overlaps ? TQ_CONTROL_SOLICITED : 0;
	int rc;

	if (sending->flags & TQ_SEND_NO_QUEUE)
		flags |= TQ_ENV_NO_QUEUE;
	if (ends_now(send, false) || send->flags & TQ_SEND_BUFFERED || overlaps)
		flags |= TQ_RTS_AWAY;
	send->handle = tq_handle_new(&core->send_reqs, send);
	if (!send->handle || (!ends_now(send, false) && need_user(send)))
		return -ENOMEM;
	rts.flags = flags;
	if (flags & TQ_RTS_RKEY)
		rts.rkey = tq_put32(send->sg.reg->rkey);
	if (flags & (TQ_RTS_RKEY | TQ_RTS_LOCAL))
		rts.addr = tq_put64((uintptr_t)(send->sg.reg ? send->sg.addr : send->buf.addr));
	rc = has_bits ? post_rts_bits(sending, send, &rts, how)
		      : post_rts(sending, send, &rts, how);
	if (rc < 0)
		return rc;
	if (rts.ask)
		tq_tx_tuple_mark_asked(sending->tx_tuple);
	tq_send_req_set_state(send, TQ_SEND_REQ_RTS);
	if (send->tx_tuple)
		send->tx_tuple->nrts++;
	TQ_COUNT(core->stats, sent_rts);
	TQ_COUNT_N(core->stats, sent_rts_bytes, send->buf.len);
	return 0;
}

/* ---- start ---- */

/*
 * Finds the message's tuple, or makes its record if the message is long enough for a queue. Without
 * a record the message goes the traditional way. Returns 0 or -ENOMEM.
 */
static int find_tx_tuple(struct sending *sending)
{
	struct tq_tx_tuple *tuple = NULL;
	bool asks = tq_asks_for_queue(sending->core, sending->buf->len);

	if (asks || sending->pair->nqueued)
		tuple = tq_tx_tuple_find(sending->pair, sending->tag);
	if (!tuple && asks) {
		tuple = tq_tx_tuple_make(sending->pair, sending->tag);
		if (!tuple)
			return -ENOMEM;
	}
	if (tuple && tuple->state == TQ_TX_TUPLE_OFFERED)
		tq_tx_tuple_switch(tuple);
	sending->tx_tuple = tuple;
	return 0;
}

/* Consumes the message's sequence numbers. */
static void consume_numbers(const struct sending *sending)
{
	struct tq_tx_tuple *tuple = sending->tx_tuple;

	sending->pair->cseq++;
	if (tuple) {
		tuple->seq++;
		tuple->sent += tq_asks_for_queue(sending->core, sending->buf->len);
	}
}

PER_KIND bool goes_eager(const struct sending *sending, bool has_bits)
{
	if (has_bits && !bits_eager_fits(sending))
		return false;
	if (sending->tx_tuple && sending->tx_tuple->state == TQ_TX_TUPLE_DIRECT)
		return false;
	return !(sending->flags & TQ_SEND_SYNC) && sending->buf->len <= tq_eager_max(sending->core);
}

/* Gets memory for what is in front of the data, if the message may go to its tuple's queue. */
static void add_prefix(const struct sending *sending, struct tq_send_req *send)
{
	const struct tq_ctx *ctx = sending->pair->ctx;

	if (!send->tx_tuple || send->tx_tuple->state != TQ_TX_TUPLE_DIRECT ||
	    needs_library(sending))
		return;
	send->prefix = tq_prefix_get(sending->core);
	if (!send->prefix)
		return;
	send->prefix->bits = htole64(sending->bits);
	memcpy(send->prefix->header, sending->header, ctx->header_len);
}

PER_KIND int start(const struct sending *sending, struct tq_req **req, bool has_bits)
{
	struct tq_core *core = sending->core;
	struct tq_send_req *send;
	int rc = -EAGAIN;

	if (sending->flags & TQ_SEND_BUFFERED && sending->buf->ops)
		return -EINVAL;
	if (goes_eager(sending, has_bits)) {
		rc = send_eager(sending, has_bits);
		if (rc != -EAGAIN) {
			if (rc == 0)
				consume_numbers(sending);
			return rc == 0 ? 1 : rc;
		}
	}
	send = send_req_new(sending);
	if (!send)
		return -ENOMEM;
	if (has_bits)
		add_prefix(sending, send);
	if (sending->tx_tuple && sending->tx_tuple->state == TQ_TX_TUPLE_DIRECT &&
	    !ends_with_receive(sending->pair, sending->flags))
		rc = send_direct(send, has_bits);
	if (rc == -EAGAIN)
		rc = send_rts(sending, send, has_bits);
	if (rc < 0)
		return give_up(send, rc);
	consume_numbers(sending);
	send->req.detached = ends_now(send, send->state == TQ_SEND_REQ_DIRECT);
	assert(send->req.detached || !(send->flags & TQ_SEND_DEFER_USER));
	send->empty = send->req.detached && send->state == TQ_SEND_REQ_RTS && !send->copied;
	core->nempty += send->empty;
	*req = send->req.detached ? NULL : &send->req;
	return send->req.detached;
}

int tq_core_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf,
		 unsigned flags, void *user, struct tq_req **req)
{
	struct tq_core *core = ctx->core;
	struct sending sending = {
		.core = core,
		.tag = (uint32_t)tag,
		.buf = buf,
		.flags = flags,
		.user = user,
	};
	int rc;

	tq_assert_held(core->lock);
	if (tag == TQ_ANY_TAG || ctx->flags & TQ_CTX_BITS)
		return -EINVAL;
	sending.pair = tq_pair_get(ctx, rank);
	if (!sending.pair)
		return tq_pair_error(ctx, rank);
	if (tq_ctx_revoked(ctx, sending.tag))
		return tq_ctx_revoked(ctx, sending.tag);
	if (!(flags & TQ_SEND_NO_QUEUE) && tq_wants_tuples(core)) {
		rc = find_tx_tuple(&sending);
		if (rc)
			return rc;
	}
	if (sending.pair->peer->failed)
		return sending.pair->peer->failed;
	return start(&sending, req, false);
}

/* Finds the message's tuple, if the receiver has said which bits its tuples ignore. */
static int find_bits_tuple(struct sending *sending)
{
	const struct tq_core *core = sending->core;
	const struct tq_pair *pair = sending->pair;

	/* The bits and the header in front of the data are one piece more. */
	if (!pair->tx_mask_life || sending->flags & TQ_SEND_NO_QUEUE || !tq_wants_tuples(core) ||
	    core->limits->max_sge < 2)
		return 0;
	sending->tag = sending->bits & ~pair->tx_mask;
	return find_tx_tuple(sending);
}

int tq_core_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		      const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	struct sending sending = {
		.core = ctx->core,
		.bits = bits,
		.header = header,
		.buf = buf,
		.flags = flags,
		.user = user,
	};
	int rc;

	tq_assert_held(ctx->core->lock);
	if (!(ctx->flags & TQ_CTX_BITS))
		return -EINVAL;
	sending.pair = tq_pair_get(ctx, rank);
	if (!sending.pair)
		return tq_pair_error(ctx, rank);
	rc = find_bits_tuple(&sending);
	if (rc)
		return rc;
	if (sending.pair->peer->failed)
		return sending.pair->peer->failed;
	return start(&sending, req, true);
}

/* ---- a start that is put off ---- */

bool tq_core_pays_to_wait(const struct tq_ctx *ctx, int rank, uint64_t len)
{
	const struct tq_core *core = ctx->core;
	uint64_t copies = atomic_load_explicit(&core->stats->copy_bytes, memory_order_relaxed);

	tq_assert_held(core->lock);
	if (copies <= (uint64_t)core->params->copy_pool / 2 || len > tq_eager_max(core))
		return false;
	if (rank < 0 || rank >= ctx->npeers || !ctx->peers[rank] || ctx->peers[rank]->failed)
		return false;
	return core->ops->control_moves(core->net, ctx->peers[rank]->link);
}
