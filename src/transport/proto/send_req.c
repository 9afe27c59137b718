/* SPDX-License-Identifier: BSD-3-Clause */
/* A send: its states, the memory that its message goes from, its end. */
#include "proto/send_req.h"

#include <assert.h>

#include "proto/buf.h"
#include "proto/pays.h"
#include "proto/pieces.h"
#include "proto/req.h"
#include "proto/settings.h"
#include "proto/tx_objects.h"

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

static void unload(struct tq_send_req *s)
{
	struct tq_core *core = s->req.core;

	if (s->copied)
		core->ops->copy_put(core->net, &s->sg);
	else if (s->pieces)
		tq_pieces_unreg(core, s->pieces);
	else if (s->sg.reg)
		core->ops->unreg(core->net, s->sg.reg, s->cookie);
	s->copied = false;
	s->pieces = NULL;
	s->sg.reg = NULL;
}

void tq_send_req_end(struct tq_send_req *s, int error)
{
	struct tq_core *core = s->req.core;

	unload(s);
	if (s->handle)
		tq_handle_free(&core->send_reqs, s->handle);
	DL_DELETE2(s->pair->send_reqs, s, pprev, pnext);
	core->outstanding--;
	core->nempty -= s->empty;
	tq_send_req_set(s, TQ_SEND_REQ_ENDED);
	tq_req_end(&s->req, error);
}

/* ---- memory ---- */

/*
 * Returns true if the message should go from a copy: the send ends at once then, and nothing need
 * be registered. A caller that waits for the end anyway gains from that a little further: the copy
 * takes less than to wait for the acknowledgement, before which that caller posts no receive for
 * the answer. What is too scattered for the HCA is copied in any case.
 */
bool tq_send_req_wants_copy(const struct tq_send_req *s)
{
	const struct tq_core *core = s->req.core;
	const struct tq_params *params = core->params;

	if (s->buf.len <= tq_eager_limit(core))
		return true;
	if (s->buf.ops && s->buf.len <= tq_eager_max(core) &&
	    !tq_pieces_fit(&s->buf, core->limits->max_sge))
		return true;
	if (s->flags & TQ_SEND_SYNC || s->buf.len >= (uint64_t)params->copy_limit)
		return false;
	return params->protocol == TQ_PROTOCOL_COPY ||
	       (tq_tuples_wanted(core) && s->flags & TQ_SEND_PATIENT);
}

static bool load_pieces(struct tq_send_req *s)
{
	struct tq_core *core = s->req.core;

	s->pieces = tq_pieces_reg(core, &s->buf, s->buf.len, false, core->limits->max_sge);
	if (!s->pieces)
		return false;
	s->sg = (struct tq_sg){.len = s->buf.len, .reg = s->pieces->sg[0].reg};
	TQ_COUNT(core->stats, sent_gathered);
	return true;
}

bool tq_send_req_load(struct tq_send_req *s)
{
	struct tq_core *core = s->req.core;

	if (s->sg.reg || s->buf.len == 0)
		return true;
	/* The library's own thread comes here for a CTS: it leaves the user's data alone. */
	if (tq_send_req_wants_copy(s) && !core->service) {
		if (core->ops->copy_get(core->net, s->buf.len, &s->sg)) {
			s->copied = true;
			s->sg.len = s->buf.len;
			tq_buf_pack(&s->buf, 0, s->sg.addr, s->buf.len);
			TQ_COUNT(core->stats, sent_copied);
			return true;
		}
		if (!s->uncopied)
			TQ_COUNT(core->stats, no_copy_buffer);
		s->uncopied = true;
	}
	if (s->buf.ops)
		return load_pieces(s);
	s->sg = (struct tq_sg){
		.addr = s->buf.addr,
		.len = s->buf.len,
		.reg = core->ops->reg(core->net, s->buf.addr, s->buf.len, false, &s->cookie),
	};
	return s->sg.reg != NULL;
}

/* ---- direct ---- */

/* Returns true if the completion may be reported late: nobody waits for it. */
static bool may_linger(const struct tq_send_req *s)
{
	if (s->state != TQ_SEND_REQ_NEW || s->flags & TQ_SEND_SYNC ||
	    tq_is_sampled(s->tx_tuple->base, s->seq))
		return false;
	return !s->sg.reg || (s->copied && s->buf.len <= tq_eager_limit(s->req.core));
}

int tq_send_req_post(struct tq_send_req *s, struct tq_lane *lane)
{
	struct tq_core *core = s->req.core;
	struct tq_sg one = s->sg, list[TQ_MAX_PIECES], *sg = &one;
	unsigned flags = lane ? 0 : TQ_DIRECT_BULK;
	int n = s->buf.len != 0, rc;

	if (!one.reg) {
		assert(tq_send_req_inlines(s));
		one.addr = s->buf.addr;
		one.len = s->buf.len;
		flags |= TQ_DIRECT_INLINE;
	} else if (s->copied && one.len <= core->limits->max_inline) {
		flags |= TQ_DIRECT_INLINE;
	} else if (s->pieces) {
		n = tq_pieces_list(s->pieces, NULL, one.len, list);
		sg = list;
	}
	if (s->copied)
		flags |= TQ_DIRECT_COPY;
	if (lane && may_linger(s))
		flags |= TQ_DIRECT_LAZY;
	rc = core->ops->direct(core->net, s->pair->peer->link, lane, s->tx_tuple->srqn, sg, n,
			       flags, s);
	if (rc)
		return rc;
	TQ_COUNT(core->stats, sent_direct);
	TQ_COUNT_N(core->stats, sent_direct_bytes, one.len);
	return 0;
}
