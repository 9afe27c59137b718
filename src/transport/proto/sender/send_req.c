/* SPDX-License-Identifier: BSD-3-Clause */
/* A send: its states, the memory that its message goes from, its end. */
#include "proto/sender/send_req.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"
#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"

static const char *const state_names[TQ_SEND_REQ_STATES] = {
	[TQ_SEND_REQ_NEW] = "NEW",         [TQ_SEND_REQ_RTS] = "RTS",
	[TQ_SEND_REQ_GRANTED] = "GRANTED", [TQ_SEND_REQ_DIRECT] = "DIRECT",
	[TQ_SEND_REQ_WRITING] = "WRITING", [TQ_SEND_REQ_PIECES] = "PIECES",
	[TQ_SEND_REQ_AGAIN] = "AGAIN",     [TQ_SEND_REQ_ENDED] = "ENDED",
};

static const uint16_t next_states[TQ_SEND_REQ_STATES] = {
	[TQ_SEND_REQ_NEW] =
		1u << TQ_SEND_REQ_RTS | 1u << TQ_SEND_REQ_DIRECT | 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_RTS] = 1u << TQ_SEND_REQ_GRANTED | 1u << TQ_SEND_REQ_WRITING |
			    1u << TQ_SEND_REQ_PIECES | 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_GRANTED] = 1u << TQ_SEND_REQ_DIRECT | 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_DIRECT] = 1u << TQ_SEND_REQ_AGAIN | 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_WRITING] = 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_PIECES] = 1u << TQ_SEND_REQ_ENDED,
	[TQ_SEND_REQ_AGAIN] = 1u << TQ_SEND_REQ_DIRECT,
};

const struct tq_states tq_send_req_states = {"send", state_names, next_states};

/* ---- the end ---- */

static void unload(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;

	if (send->copied)
		core->ops->copy_put(core->net, &send->sg);
	else if (send->pieces)
		tq_pieces_unreg(core, send->pieces);
	else if (send->sg.reg)
		core->ops->unreg(core->net, send->sg.reg, send->cookie);
	if (send->prefix) {
		tq_prefix_put(core, send->prefix);
		send->prefix = NULL;
	}
	send->copied = false;
	send->pieces = NULL;
	send->sg.reg = NULL;
}

void tq_send_req_end(struct tq_send_req *send, int error)
{
	struct tq_core *core = send->req.core;

	tq_send_req_set_state(send, TQ_SEND_REQ_ENDED);
	unload(send);
	if (send->handle)
		tq_handle_free(&core->send_reqs, send->handle);
	DL_DELETE2(send->pair->send_reqs, send, pair_prev, pair_next);
	core->outstanding--;
	core->nempty -= send->empty;
	tq_req_end(&send->req, error);
}

/* ---- memory ---- */

/*
 * Returns true if the message should go from a copy: the send ends at once then, and nothing need
 * be registered. A caller that waits for the end gains from a copy at greater lengths, because
 * the copy takes less time than the acknowledgement, before which that caller posts no receive
 * for the answer. A message that is too scattered for the HCA is copied in any case.
 */
bool tq_send_req_wants_copy(const struct tq_send_req *send)
{
	const struct tq_core *core = send->req.core;
	const struct tq_params *params = core->params;

	if (send->buf.len <= tq_eager_limit(core))
		return true;
	if (send->buf.ops && send->buf.len <= tq_eager_max(core) &&
	    !tq_pieces_fit(&send->buf, core->limits->max_sge))
		return true;
	if (tq_send_ends_there(send->flags) || send->buf.len >= (uint64_t)params->copy_limit)
		return false;
	return params->protocol == TQ_PROTOCOL_COPY ||
	       (tq_wants_tuples(core) && send->flags & TQ_SEND_PATIENT);
}

static bool load_pieces(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;

	uint32_t most = core->limits->max_sge - (send->prefix ? 1 : 0);

	send->pieces = tq_pieces_reg(core, &send->buf, send->buf.len, false, most);
	if (!send->pieces)
		return false;
	send->sg = (struct tq_sg){.len = send->buf.len, .reg = send->pieces->sg[0].reg};
	TQ_COUNT(core->stats, sent_gathered);
	return true;
}

bool tq_send_req_load(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;

	if (send->sg.reg || send->buf.len == 0)
		return true;
	/* The service thread comes here for a CTS, and leaves the user's data alone. */
	if (tq_send_req_wants_copy(send) && !core->service) {
		if (core->ops->copy_get(core->net, send->buf.len, &send->sg)) {
			send->copied = true;
			send->sg.len = send->buf.len;
			tq_buf_pack(&send->buf, 0, send->sg.addr, send->buf.len);
			TQ_COUNT(core->stats, sent_copied);
			return true;
		}
		if (!send->uncopied)
			TQ_COUNT(core->stats, no_copy_buffer);
		send->uncopied = true;
	}
	if (send->buf.ops)
		return load_pieces(send);
	send->sg = (struct tq_sg){
		.addr = send->buf.addr,
		.len = send->buf.len,
		.reg = core->ops->reg(core->net, send->buf.addr, send->buf.len, false,
				      &send->cookie),
	};
	return send->sg.reg != NULL;
}

/* ---- direct ---- */

/* Returns true if the completion may be reported late, because nobody waits for it. */
static inline __attribute__((always_inline)) bool may_linger(const struct tq_send_req *send)
{
	if (send->state != TQ_SEND_REQ_NEW || tq_send_ends_there(send->flags) ||
	    tq_is_sampled(send->tx_tuple->base, send->seq))
		return false;
	return !send->sg.reg || (send->copied && send->buf.len <= tq_eager_limit(send->req.core));
}

/* Puts the prefix of the data before the list. Short messages go inline as a whole. Returns the new
 * list's length. */
static int add_prefix(const struct tq_send_req *send, const struct tq_sg *sg, int n,
		      struct tq_sg list[TQ_MAX_PIECES], unsigned *flags)
{
	const struct tq_core *core = send->req.core;
	struct tq_sg prefix = tq_prefix_sg(send->pair->ctx, send->prefix);

	assert(n < TQ_MAX_PIECES);
	memmove(list + 1, sg, (size_t)n * sizeof(*list));
	list[0] = prefix;
	if (prefix.len + send->buf.len > core->limits->max_inline)
		*flags &= ~(TQ_DIRECT_INLINE | TQ_DIRECT_LAZY);
	/* The network takes a lazy copy back by its address, and the prefix is first here. */
	if (*flags & TQ_DIRECT_COPY)
		*flags &= ~(TQ_DIRECT_COPY | TQ_DIRECT_LAZY);
	return n + 1;
}

int tq_send_req_post(struct tq_send_req *send, struct tq_lane *lane)
{
	struct tq_core *core = send->req.core;
	struct tq_sg one = send->sg, list[TQ_MAX_PIECES], *sg = &one;
	unsigned flags = lane ? 0 : TQ_DIRECT_BULK;
	int n = send->buf.len != 0, rc;

	if (!one.reg) {
		assert(tq_send_req_inlines(send));
		one.addr = send->buf.addr;
		one.len = send->buf.len;
		flags |= TQ_DIRECT_INLINE;
	} else if (send->copied && one.len <= core->limits->max_inline) {
		flags |= TQ_DIRECT_INLINE;
	} else if (send->pieces) {
		n = tq_pieces_list(send->pieces, NULL, one.len, list);
		sg = list;
	}
	if (send->copied)
		flags |= TQ_DIRECT_COPY;
	if (lane && may_linger(send))
		flags |= TQ_DIRECT_LAZY;
	if (send->prefix) {
		n = add_prefix(send, sg, n, list, &flags);
		sg = list;
	}
	rc = core->ops->direct(core->net, send->pair->peer->link, lane, send->tx_tuple->srqn, sg, n,
			       flags, send);
	if (rc)
		return rc;
	TQ_COUNT(core->stats, sent_direct);
	TQ_COUNT_N(core->stats, sent_direct_bytes, one.len);
	return 0;
}

/* ---- messages whose receiver has asked for their data in pieces, through control buffers ---- */

void tq_send_pieces_start(struct tq_send_req *send, enum tq_send_req_state state)
{
	send->offset = 0;
	tq_send_req_set_state(send, state);
	DL_APPEND2(send->req.core->pieces, send, pieces_prev, pieces_next);
}

/* Sends the next piece. Returns 1 if it was sent, 0 if there is no room now, or a negative
 * error. */
static int send_piece(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;
	struct tq_peer *peer = send->pair->peer;
	uint32_t n =
		(uint32_t)tq_min64(core->limits->control_data_max, send->wanted - send->offset);
	uint32_t len = (uint32_t)sizeof(struct tq_msg_data) + n;
	struct tq_msg_data *msg;
	int rc;

	if (!core->ops->prepare_data(core->net, peer->link))
		return 0;
	msg = core->ops->eager_buf(core->net, peer->link, len);
	if (!msg)
		return 0;
	*msg = (struct tq_msg_data){
		.hdr = tq_msg_hdr(TQ_MSG_DATA, 0),
		.recv_req = tq_put32(send->recv_req),
		.offset = tq_put64(send->offset),
	};
	if (send->copied)
		memcpy(msg + 1, (char *)send->sg.addr + send->offset, n);
	else
		tq_buf_pack(&send->buf, send->offset, msg + 1, n);
	rc = core->ops->eager_send(core->net, peer->link, msg, len, 0);
	send->offset += n;
	return rc < 0 ? rc : 1;
}

void tq_send_pieces_end(struct tq_send_req *send, int error)
{
	DL_DELETE2(send->req.core->pieces, send, pieces_prev, pieces_next);
	if (send->state == TQ_SEND_REQ_AGAIN)
		tq_send_req_set_state(send, TQ_SEND_REQ_DIRECT); /* the HCA still has it */
	else
		tq_send_req_end(send, error);
}

int tq_send_pieces_poll(struct tq_core *core)
{
	struct tq_send_req *send, *next;
	int events = 0, rc;

	for (send = core->pieces; send; send = next) {
		next = send->pieces_next;
		if (core->service && !tq_send_req_is_copied(send))
			continue;
		while ((rc = send_piece(send)) > 0 && send->offset < send->wanted)
			events++;
		if (rc < 0)
			tq_peer_fail(send->pair->peer, "a piece could not be sent");
		else if (send->offset < send->wanted)
			continue;
		events++;
		tq_send_pieces_end(send, rc < 0 ? rc : 0);
	}
	return events;
}
