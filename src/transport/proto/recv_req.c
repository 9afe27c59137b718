/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: its states, and its end. */
#include "proto/recv_req.h"

#include <stdlib.h>

#include "proto/net_ops.h"
#include "proto/recv_mem.h"
#include "proto/req.h"
#include "proto/rx_objects.h"

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
	[TQ_RECV_REQ_COPY] = BIT(ENDED),
	[TQ_RECV_REQ_LOST] = BIT(ENDED),
};

static const struct tq_states states = {"recv", state_names, next_states};

void tq_recv_req_to(struct tq_recv_req *r, enum tq_recv_req_state to)
{
	tq_states_change(&states, r->req.core->trace, r, r->state, to);
	r->state = to;
}

/* ---- begin, end ---- */

struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user)
{
	struct tq_core *core = ctx->core;
	struct tq_recv_req *r = core->free_recv_reqs;

	if (r) {
		core->free_recv_reqs = r->next;
		core->nfree_recv_reqs--;
	} else {
		r = malloc(sizeof(*r));
		if (!r)
			return NULL;
		TQ_LEVEL(core->stats, requests, 1);
	}
	*r = (struct tq_recv_req){
		.req = {.kind = TQ_REQ_RECV, .core = core, .user = user},
		.state = TQ_RECV_REQ_POSTED,
		.ctx = ctx,
		.rank = rank,
		.tag = tag,
		.buf = *buf,
		.starting = true,
	};
	ctx->nrecvs++;
	return r;
}

void tq_recv_req_end(struct tq_recv_req *r, int error)
{
	if (r->msg) {
		r->drained(r, error);
		return;
	}
	tq_recv_mem_release(r);
	tq_recv_req_to(r, TQ_RECV_REQ_ENDED);
	r->ctx->nrecvs--;
	r->req.core->changed = true;
	r->req.status.error = error;
	if (!r->starting)
		tq_req_end(&r->req, error);
}

int tq_recv_req_started(struct tq_recv_req *r, struct tq_req **req, struct tq_status *status)
{
	r->starting = false;
	if (r->state != TQ_RECV_REQ_ENDED) {
		*req = &r->req;
		return 0;
	}
	*status = r->req.status;
	tq_core_release(&r->req);
	return 1;
}

/* ---- under way ---- */

void tq_recv_req_under_way(struct tq_recv_req *r, enum tq_recv_req_state state)
{
	if (r->state == TQ_RECV_REQ_POSTED) /* else, on the way to PIECES, it is in the list */
		DL_APPEND2(r->pair->active, r, pprev, pnext);
	tq_recv_req_to(r, state);
}

void tq_recv_req_over(struct tq_recv_req *r)
{
	DL_DELETE2(r->pair->active, r, pprev, pnext);
	if (r->handle)
		tq_handle_free(&r->req.core->recv_reqs, r->handle);
	r->handle = 0;
}

/* ---- its sender is lost ---- */

void tq_recv_req_lost(struct tq_recv_req *r, int error)
{
	r->req.status.error = error;
	tq_recv_req_to(r, TQ_RECV_REQ_LOST);
	DL_APPEND2(r->req.core->lost, r, cprev, cnext);
}

void tq_core_srqs_gone(struct tq_core *core)
{
	struct tq_recv_req *r;

	while ((r = core->lost)) {
		DL_DELETE2(core->lost, r, cprev, cnext);
		tq_recv_req_end(r, r->req.status.error);
	}
}
