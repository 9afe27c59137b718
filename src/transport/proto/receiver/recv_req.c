/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: its states, and its end. */
#include "proto/receiver/recv_req.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/buf.h"
#include "proto/common/net_ops.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"

int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	/* Promises about wildcards don't concern the negative tags of collectives. */
	unsigned flags = tag >= 0 || tag == TQ_ANY_TAG ? ctx->flags : 0;

	if (ctx->flags & TQ_CTX_BITS)
		return -EINVAL; /* its receives are entries */
	if (rank == TQ_ANY_SOURCE ? flags & TQ_CTX_NO_ANY_SOURCE : rank < 0 || rank >= ctx->npeers)
		return -EINVAL;
	return tag == TQ_ANY_TAG && flags & TQ_CTX_NO_ANY_TAG ? -EBADMSG : 0;
}

bool tq_wild_fits_tuple(const struct tq_rx_tuple *tuple)
{
	const struct tq_recv_req *wild;

	DL_FOREACH(tuple->pair->ctx->wild, wild) {
		if (tq_want_fits_tuple(&wild->want, tuple))
			return true;
	}
	return false;
}

/* ---- the memory of the data: the user's, or the library's, from which they are copied ---- */

uint32_t tq_recv_mem_pieces(const struct tq_recv_req *recv)
{
	/* An entry's receive begins with a piece for the prefix. */
	return recv->req.core->limits->max_srq_sge - (recv->req.kind == TQ_REQ_ENTRY);
}

bool tq_recv_mem_register(struct tq_recv_req *recv, uint64_t len, uint32_t pieces)
{
	struct tq_core *core = recv->req.core;

	if (len && recv->buf.ops) {
		recv->pieces = tq_pieces_reg(core, &recv->buf, len, true, pieces);
		if (!recv->pieces)
			return false;
		recv->sg = (struct tq_sg){.len = len, .reg = recv->pieces->sg[0].reg};
		return true;
	}
	recv->sg = (struct tq_sg){.addr = recv->buf.addr, .len = len};
	if (len)
		recv->sg.reg = core->ops->reg(core->net, recv->sg.addr, len, true, &recv->cookie);
	return !len || recv->sg.reg;
}

bool tq_recv_mem_bounce(struct tq_recv_req *recv, uint64_t len, bool held)
{
	struct tq_core *core = recv->req.core;

	recv->bounced = true;
	recv->sg = (struct tq_sg){.addr = malloc(len ? len : 1), .len = len};
	if (!recv->sg.addr)
		goto fail;
	if (!len)
		return true;
	recv->sg.reg = core->ops->reg(core->net, recv->sg.addr, len, true, &recv->cookie);
	if (recv->sg.reg)
		return true;
	free(recv->sg.addr);
	/* Nothing more can be registered; the pool of copies is registered already. Messages
	 * that are held at their receivers may have used that up, and wait for this receive. */
	recv->pooled = core->ops->copy_get(core->net, len, &recv->sg) ||
		       (held && len <= core->limits->control_data_max &&
			core->ops->reserve_get(core->net, len, &recv->sg));
	if (recv->pooled)
		return true;
fail:
	recv->bounced = false;
	recv->sg = (struct tq_sg){0};
	return false;
}

/* Puts the memory for what is in front of the data before the list. The bits and the header of held
 * messages are known, and nobody reads them again. */
static int add_prefix(struct tq_recv_req *recv, struct tq_sg list[TQ_MAX_PIECES], int n)
{
	struct tq_prefix *prefix = recv->state == TQ_RECV_REQ_HELD
					   ? tq_prefix_sink(recv->req.core)
					   : ((struct tq_entry *)recv)->prefix;

	assert(n < TQ_MAX_PIECES);
	memmove(list + 1, list, (size_t)n * sizeof(*list));
	list[0] = tq_prefix_sg(recv->ctx, prefix);
	return n + 1;
}

int tq_recv_mem_post(struct tq_recv_req *recv, uint64_t len)
{
	struct tq_core *core = recv->req.core;
	struct tq_sg list[TQ_MAX_PIECES];
	int n = tq_pieces_list(recv->pieces, &recv->sg, len, list);

	if (recv->req.kind == TQ_REQ_ENTRY && !recv->pieces_asked)
		n = add_prefix(recv, list, n);
	return core->ops->srq_post(core->net, recv->rx_tuple->srq, list, n, recv);
}

void tq_recv_mem_give_back(struct tq_recv_req *recv)
{
	struct tq_core *core = recv->req.core;

	if (recv->pooled) {
		core->ops->copy_put(core->net, &recv->sg);
	} else if (recv->pieces) {
		tq_pieces_unreg(core, recv->pieces);
	} else {
		if (recv->sg.reg)
			core->ops->unreg(core->net, recv->sg.reg, recv->cookie);
		if (recv->bounced)
			free(recv->sg.addr);
	}
	recv->bounced = recv->pooled = false;
	recv->pieces = NULL;
	recv->sg = (struct tq_sg){0};
}

static const char *const state_names[TQ_RECV_REQ_STATES] = {
	[TQ_RECV_REQ_POSTED] = "POSTED",   [TQ_RECV_REQ_SRQ] = "SRQ",
	[TQ_RECV_REQ_HELD] = "HELD",       [TQ_RECV_REQ_READING] = "READING",
	[TQ_RECV_REQ_WRITING] = "WRITING", [TQ_RECV_REQ_PIECES] = "PIECES",
	[TQ_RECV_REQ_COPY] = "COPY",       [TQ_RECV_REQ_LOST] = "LOST",
	[TQ_RECV_REQ_ENDED] = "ENDED",
};

#define BIT(state) (1u << TQ_RECV_REQ_##state)

static const uint16_t next_states[TQ_RECV_REQ_STATES] = {
	[TQ_RECV_REQ_POSTED] = BIT(SRQ) | BIT(HELD) | BIT(READING) | BIT(WRITING) | BIT(PIECES) |
			       BIT(COPY) | BIT(ENDED),
	[TQ_RECV_REQ_SRQ] = BIT(POSTED) | BIT(COPY) | BIT(LOST) | BIT(ENDED),
	[TQ_RECV_REQ_HELD] = BIT(PIECES) | BIT(COPY) | BIT(LOST) | BIT(ENDED),
	[TQ_RECV_REQ_READING] = BIT(ENDED),
	[TQ_RECV_REQ_WRITING] = BIT(PIECES) | BIT(COPY) | BIT(ENDED),
	[TQ_RECV_REQ_PIECES] = BIT(HELD) | BIT(ENDED),
	[TQ_RECV_REQ_COPY] = BIT(READING) | BIT(WRITING) | BIT(PIECES) | BIT(ENDED),
	[TQ_RECV_REQ_LOST] = BIT(ENDED),
};

const struct tq_states tq_recv_req_states = {"recv", state_names, next_states};

/* ---- begin, end ---- */

struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user)
{
	struct tq_core *core = ctx->core;
	struct tq_recv_req *recv = tq_req_new(core, TQ_REQ_RECV, sizeof(*recv));

	if (!recv)
		return NULL;
	/* Each receive comes through here; the rest needs no value. */
	memset(recv, 0, offsetof(struct tq_recv_req, starting));
	recv->req.kind = TQ_REQ_RECV;
	recv->req.core = core;
	recv->req.user = user;
	static_assert(TQ_RECV_REQ_POSTED == 0, "the state of new receives");
	recv->ctx = ctx;
	recv->want = tq_want_of(rank, tag);
	recv->buf = *buf;
	recv->starting = true;
	ctx->nrecvs++;
	return recv;
}

void tq_recv_req_end(struct tq_recv_req *recv, int error)
{
	if (recv->at_end) {
		recv->at_end(recv, error);
		return;
	}
	/* Receives of eager messages have none. */
	if (recv->sg.reg || recv->bounced)
		tq_recv_mem_release(recv);
	tq_recv_req_set_state(recv, TQ_RECV_REQ_ENDED);
	recv->ctx->nrecvs--;
	if (!recv->starting) {
		tq_req_end(&recv->req, error);
		return;
	}
	recv->req.core->changed = true;
	recv->req.status.error = error;
}

void tq_recv_req_complete(struct tq_recv_req *recv)
{
	bool truncated = recv->req.status.length > recv->wanted;

	/* Entries, and receives that have no user, want no more. */
	if (truncated && recv->req.kind == TQ_REQ_RECV && !recv->req.detached)
		TQ_COUNT(recv->req.core->stats, recv_truncated);
	tq_recv_req_end(recv, truncated ? -EMSGSIZE : 0);
}

int tq_recv_req_finish_start(struct tq_recv_req *recv, struct tq_req **req,
			     struct tq_status *status)
{
	recv->starting = false;
	if (recv->state != TQ_RECV_REQ_ENDED) {
		*req = &recv->req;
		return 0;
	}
	*status = recv->req.status;
	tq_core_release(&recv->req);
	return 1;
}

/* ---- under way ---- */

void tq_recv_req_enter_active(struct tq_recv_req *recv, enum tq_recv_req_state state)
{
	/* In other states, before PIECES, it is in the list. */
	if (recv->state == TQ_RECV_REQ_POSTED || recv->state == TQ_RECV_REQ_COPY)
		DL_APPEND2(recv->pair->active, recv, active_prev, active_next);
	tq_recv_req_set_state(recv, state);
}

void tq_recv_req_leave_active(struct tq_recv_req *recv)
{
	DL_DELETE2(recv->pair->active, recv, active_prev, active_next);
	if (recv->handle)
		tq_handle_free(&recv->req.core->recv_reqs, recv->handle);
	recv->handle = 0;
}

struct tq_recv_req *tq_recv_req_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle, enum tq_recv_req_state state)
{
	struct tq_recv_req *recv = tq_handle_get(&core->recv_reqs, handle);

	if (recv && recv->pair->peer == peer && recv->state == state)
		return recv;
	TQ_COUNT(core->stats, dropped);
	return NULL;
}

/* ---- its sender is lost ---- */

void tq_recv_req_end_lost(struct tq_recv_req *recv, int error)
{
	recv->req.status.error = error;
	tq_recv_req_set_state(recv, TQ_RECV_REQ_LOST);
	DL_APPEND2(recv->req.core->lost, recv, core_prev, core_next);
}

void tq_core_on_srqs_gone(struct tq_core *core)
{
	struct tq_recv_req *recv;

	tq_assert_held(core->lock);
	while ((recv = core->lost)) {
		DL_DELETE2(core->lost, recv, core_prev, core_next);
		tq_recv_req_end(recv, recv->req.status.error);
	}
}
