/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts sends: which way a message goes (direct, eager, RTS). */
#include "proto/sender/send.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple.h"
#include "proto/sender/tx_tuple_table.h"

/* The arguments of a send, and what they name. */
struct sending {
	struct tq_core *core;
	struct tq_pair *pair;
	struct tq_tx_tuple *tx_tuple; /* NULL: the message goes to no tuple queue */
	uint64_t tag;                 /* or match bits */
	const void *header;           /* of ctx->header_len bytes */
	const struct tq_buf *buf;
	unsigned flags;
	void *user;
};

/* ---- requests ---- */

static struct tq_send_req *send_req_new(const struct sending *sending)
{
	struct tq_core *core = sending->core;
	struct tq_send_req *send = tq_req_new(core, TQ_REQ_SEND, sizeof(*send));

	if (!send)
		return NULL;
	/* The rest needs no value. */
	memset(send, 0, offsetof(struct tq_send_req, pair));
	static_assert(TQ_REQ_SEND == 0 && TQ_SEND_REQ_NEW == 0, "the kind and the state");
	send->req.core = core;
	send->req.user = sending->user;
	send->req.status.source = sending->pair->rank;
	send->req.status.tag = (int32_t)sending->tag;
	send->req.status.length = sending->buf->len;
	send->pair = sending->pair;
	send->tx_tuple = sending->tx_tuple;
	send->tag = sending->tag;
	send->cseq = sending->pair->cseq;
	send->seq = sending->tx_tuple ? sending->tx_tuple->seq : 0;
	send->flags = sending->flags;
	send->buf = *sending->buf;
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
	if (tq_send_ends_there(send->flags))
		return false;
	if (send->copied || (is_direct && !send->sg.reg))
		return true;
	return send->buf.len == 0 && send->req.core->nempty < EMPTY_MAX;
}

/*
 * Gets the user of a send that is about to be posted, if that was deferred and posting does not
 * end the send. This is the last step that may fail for lack of memory. Returns 0; -ENOMEM; or
 * -EAGAIN if the message is only sent if that ends the send.
 */
static int need_user(struct tq_send_req *send)
{
	void *user;

	if (!(send->flags & (TQ_SEND_DEFER_USER | TQ_SEND_AT_ONCE)))
		return 0;
	if (send->flags & TQ_SEND_AT_ONCE)
		return -EAGAIN;
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

static uint64_t direct_limit(const struct tq_tx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	return tq_min64(tuple->max_len, ctx->core->limits->max_send - ctx->prefix_len);
}

/* Sends the message to its tuple queue. -EAGAIN: the message has to go by RTS; -ENOMEM. */
static int send_direct(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;
	struct tq_tx_tuple *tuple = send->tx_tuple;
	struct tq_lane *lane;
	bool has_notice;
	int rc = 0;

	if (!tq_tx_tuple_may_go_direct(tuple) || send->buf.len > direct_limit(tuple))
		return -EAGAIN;
	if (tuple->pair->ctx->prefix_len && !send->prefix)
		return -EAGAIN;
	lane = tq_tx_lane_get(tuple);
	if (!lane) {
		TQ_COUNT(core->stats, no_lane);
		return -EAGAIN;
	}
	if (!tq_send_req_inlines(send) && !tq_send_req_load(send))
		return -EAGAIN;
	if (!ends_now(send, true))
		rc = need_user(send);
	if (rc)
		return rc;
	has_notice = tq_tx_policy_wants_notice(tuple, send);
	rc = tq_send_req_post(send, lane);
	if (rc)
		return rc;
	tq_tx_tuple_note_post(tuple, send, lane);
	if (send->prefix)
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
	uint32_t pieces = sending->core->limits->max_sge - !!sending->pair->ctx->prefix_len;

	return pieces && sending->buf->len <= direct_limit(sending->tx_tuple) &&
	       !needs_library(sending) &&
	       (!sending->buf->ops || sending->buf->len <= tq_eager_max(sending->core) ||
		tq_pieces_fit(sending->buf, pieces));
}

static struct tq_msg_env envelope(const struct sending *sending, uint32_t ask)
{
	const struct tq_pair *pair = sending->pair;

	return (struct tq_msg_env){
		.ctx = tq_put32(pair->ctx->id),
		.source = tq_put32((uint32_t)pair->ctx->rank),
		.tag = tq_put64(sending->tag),
		.cseq = tq_put32(pair->cseq),
		.seq = tq_put32(sending->tx_tuple ? sending->tx_tuple->seq : 0),
		.ask = tq_put32(ask),
		.mask_life = tq_put16(pair->tx_mask_life),
		.header_len = tq_put16((uint16_t)pair->ctx->header_len),
	};
}

/* Copies the user's header, if messages of the context have one. */
static void put_header(const struct sending *sending, void *to)
{
	if (sending->pair->ctx->header_len)
		memcpy(to, sending->header, sending->pair->ctx->header_len);
}

/* Returns the handle by which the message of a tuple asks for the queue; 0: it doesn't ask. */
static uint32_t ask_for_tuple(const struct sending *sending)
{
	struct tq_tx_tuple *tuple = sending->tx_tuple;

	if (tuple->state != TQ_TX_TUPLE_CONTROL || tuple->sent < tuple->ask_at)
		return 0;
	if (!tq_asks_for_queue(sending->pair->ctx, sending->buf->len) || !suits_direct(sending))
		return 0;
	if (!tq_local_way_wants_queue(tuple->pair->peer, sending->buf->len)) {
		TQ_COUNT(sending->core->stats, not_asked_local);
		return 0;
	}
	return tq_tx_tuple_ask(tuple);
}

/* Returns the handle by which the message asks for a queue; 0: it doesn't ask, as most don't. */
static inline uint32_t ask_handle(const struct sending *sending)
{
	return sending->tx_tuple ? ask_for_tuple(sending) : 0;
}

/* Returns true if the message is to wake the receiver's service thread. */
static inline bool is_served(const struct sending *sending)
{
	return sending->pair->ctx->flags & TQ_CTX_SERVED;
}

/* Sends the message with its data. -EAGAIN: no buffer, or the peer wants no more. */
static int send_eager(const struct sending *sending)
{
	struct tq_core *core = sending->core;
	uint32_t head = (uint32_t)sizeof(struct tq_msg_eager) + sending->pair->ctx->header_len;
	uint32_t len = head + (uint32_t)sending->buf->len;
	struct tq_msg_eager *m = core->ops->eager_buf(core->net, sending->pair->peer->link, len);
	uint32_t ask;
	int rc;

	if (!m)
		return -EAGAIN;
	ask = ask_handle(sending);
	m->hdr = tq_msg_hdr(TQ_MSG_EAGER, sending->flags & TQ_SEND_NO_QUEUE ? TQ_ENV_NO_QUEUE : 0);
	m->env = envelope(sending, ask);
	put_header(sending, m + 1);
	tq_buf_pack(sending->buf, 0, (char *)m + head, sending->buf->len);
	rc = core->ops->eager_send(core->net, sending->pair->peer->link, m, len,
				   is_served(sending) ? TQ_CONTROL_SOLICITED : 0);
	if (rc < 0)
		return rc;
	if (ask)
		tq_tx_tuple_mark_asked(sending->tx_tuple);
	TQ_COUNT(core->stats, sent_eager);
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
static uint8_t rts_memory(struct tq_send_req *send)
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
	if (may_be_granted &&
	    (!loaded || (send->pair->ctx->prefix_len && !send->prefix) ||
	     send->buf.len > direct_limit(tuple) || ends_with_receive(send->pair, send->flags)))
		flags |= TQ_RTS_NODIRECT;
	send->nodirect = !may_be_granted || flags & TQ_RTS_NODIRECT;
	return flags;
}

static int send_rts(const struct sending *sending, struct tq_send_req *send)
{
	struct tq_core *core = sending->core;
	uint8_t flags = rts_memory(send);
	/* The receive may lie in the tuple's queue; then the service threads can grant and
	 * send without the users. With match bits they may have the duty to do all. */
	bool overlaps = (!send->nodirect && sending->buf->len > tq_eager_max(core)) ||
			sending->pair->ctx->flags & TQ_CTX_BITS;
	uint32_t ask = ask_handle(sending);
	struct tq_msg_rts m;
	int rc;

	if (sending->flags & TQ_SEND_NO_QUEUE)
		flags |= TQ_ENV_NO_QUEUE;
	if (ends_now(send, false) || send->flags & TQ_SEND_BUFFERED || overlaps)
		flags |= TQ_RTS_AWAY;
	send->handle = tq_handle_new(&core->send_reqs, send);
	if (!send->handle || (!ends_now(send, false) && need_user(send)))
		return -ENOMEM;
	m.hdr = tq_msg_hdr(TQ_MSG_RTS, flags);
	m.env = envelope(sending, ask);
	m.length = tq_put64(send->buf.len);
	m.addr = tq_put64(flags & (TQ_RTS_RKEY | TQ_RTS_LOCAL)
				  ? (uintptr_t)(send->sg.reg ? send->sg.addr : send->buf.addr)
				  : 0);
	m.rkey = tq_put32(flags & TQ_RTS_RKEY ? send->sg.reg->rkey : 0);
	m.send_req = tq_put32(send->handle);
	put_header(sending, m.header);
	rc = core->ops->control(core->net, sending->pair->peer->link, &m,
				TQ_MSG_RTS_LEN(sending->pair->ctx->header_len),
				overlaps ? TQ_CONTROL_SOLICITED : 0);
	if (rc < 0)
		return rc;
	if (ask)
		tq_tx_tuple_mark_asked(sending->tx_tuple);
	tq_send_req_set_state(send, TQ_SEND_REQ_RTS);
	if (send->tx_tuple)
		send->tx_tuple->nrts++;
	TQ_COUNT(core->stats, sent_rts);
	return 0;
}

/* ---- start ---- */

/*
 * Finds the message's tuple, or makes its record if the message is long enough for a queue. Without
 * a record the message goes the traditional way, as it does until the receiver has said which bits
 * its tuples ignore. Returns 0 or -ENOMEM.
 */
static int find_tx_tuple(struct sending *sending)
{
	struct tq_pair *pair = sending->pair;
	uint64_t tag = sending->tag & ~pair->tx_mask;
	bool asks = tq_asks_for_queue(sending->pair->ctx, sending->buf->len);
	struct tq_tx_tuple *tuple;

	if (sending->flags & TQ_SEND_NO_QUEUE || !pair->tx_mask_life)
		return 0;
	tuple = tq_tx_tuple_find(pair, tag);
	if (!tuple && asks) {
		tuple = tq_tx_tuple_make(pair, tag);
		if (!tuple)
			return -ENOMEM;
	}
	if (tuple && tuple->state == TQ_TX_TUPLE_OFFERED)
		tq_tx_tuple_switch(tuple);
	sending->tx_tuple = tuple;
	return 0;
}

/* Returns true if the message may have a tuple. Most short ones have none. */
static inline bool may_have_tuple(const struct sending *sending)
{
	return sending->pair->nqueued || tq_asks_for_queue(sending->pair->ctx, sending->buf->len);
}

/* Consumes the message's sequence numbers. */
static inline void consume_numbers(const struct sending *sending)
{
	struct tq_tx_tuple *tuple = sending->tx_tuple;

	sending->pair->cseq++;
	if (!tuple)
		return;
	tuple->seq++;
	tuple->sent += tq_asks_for_queue(sending->pair->ctx, sending->buf->len);
}

static bool goes_eager(const struct sending *sending)
{
	if (sending->tx_tuple && sending->tx_tuple->state == TQ_TX_TUPLE_DIRECT)
		return false;
	return sending->buf->len < sending->pair->ctx->eager_below &&
	       !tq_send_ends_there(sending->flags);
}

/* Gets memory for what is in front of the data, if the message may go to its tuple's queue. */
static void add_prefix(const struct sending *sending, struct tq_send_req *send)
{
	if (!sending->pair->ctx->prefix_len || !send->tx_tuple ||
	    send->tx_tuple->state != TQ_TX_TUPLE_DIRECT || needs_library(sending))
		return;
	send->prefix = tq_prefix_get(sending->core);
	if (!send->prefix)
		return;
	send->prefix->bits = htole64(sending->tag);
	put_header(sending, send->prefix->header);
}

/* Starts a send that doesn't go eagerly. Results are those of tq_send(). */
static int start_request(const struct sending *sending, struct tq_req **req)
{
	struct tq_core *core = sending->core;
	struct tq_send_req *send = send_req_new(sending);
	int rc = -EAGAIN;

	if (!send)
		return -ENOMEM;
	add_prefix(sending, send);
	if (sending->tx_tuple && sending->tx_tuple->state == TQ_TX_TUPLE_DIRECT &&
	    !ends_with_receive(sending->pair, sending->flags))
		rc = send_direct(send);
	if (rc == -EAGAIN && !(send->flags & TQ_SEND_AT_ONCE))
		rc = send_rts(sending, send);
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

/* Starts a send. In line, because each message comes through here. */
static inline __attribute__((always_inline)) int start(struct sending *sending, struct tq_req **req)
{
	int rc = may_have_tuple(sending) ? find_tx_tuple(sending) : 0;

	if (rc)
		return rc;
	if (sending->pair->peer->failed)
		return sending->pair->peer->failed;
	if (sending->flags & TQ_SEND_BUFFERED && sending->buf->ops)
		return -EINVAL;
	if (goes_eager(sending)) {
		rc = send_eager(sending);
		if (rc == 0)
			consume_numbers(sending);
		if (rc != -EAGAIN)
			return rc == 0 ? 1 : rc;
	}
	return start_request(sending, req);
}

int tq_core_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf,
		 unsigned flags, void *user, struct tq_req **req)
{
	struct sending sending = {
		.core = ctx->core,
		.tag = (uint32_t)tag,
		.buf = buf,
		.flags = flags,
		.user = user,
	};

	tq_assert_held(ctx->core->lock);
	if (tag == TQ_ANY_TAG || ctx->flags & TQ_CTX_BITS)
		return -EINVAL;
	sending.pair = tq_pair_get(ctx, rank);
	if (!sending.pair)
		return tq_pair_error(ctx, rank);
	if (tq_ctx_revoked(ctx, sending.tag))
		return tq_ctx_revoked(ctx, sending.tag);
	return start(&sending, req);
}

int tq_core_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		      const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	struct sending sending = {
		.core = ctx->core,
		.tag = bits,
		.header = header,
		.buf = buf,
		.flags = flags,
		.user = user,
	};

	tq_assert_held(ctx->core->lock);
	if (!(ctx->flags & TQ_CTX_BITS))
		return -EINVAL;
	sending.pair = tq_pair_get(ctx, rank);
	if (!sending.pair)
		return tq_pair_error(ctx, rank);
	return start(&sending, req);
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
