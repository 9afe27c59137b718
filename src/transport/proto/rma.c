/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on peers' memory: their records and their ends. The network carries them. They match
 * nothing, and take part in no order of the messages.
 */
#include "proto/core.h"

#include <errno.h>
#include <stdlib.h>

struct tq_rma_req {
	struct tq_req req;
	struct tq_peer *peer;
	enum tq_rma_kind kind;
	struct tq_sg sg;    /* local memory; reg NULL: inline */
	void *cookie;       /* of its registration, */
	bool is_registered; /* if that is the library's */
	void (*done)(void *user, int error);
	struct tq_rma_req *next; /* core->free_rma_reqs */
};

static bool is_atomic(enum tq_rma_kind kind)
{
	return kind == TQ_RMA_FETCH_ADD || kind == TQ_RMA_COMPARE_SWAP;
}

static struct tq_rma_req *req_new(struct tq_peer *peer, const struct tq_rma *rma)
{
	struct tq_core *core = peer->core;
	struct tq_rma_req *r = core->free_rma_reqs;

	if (r) {
		LL_DELETE(core->free_rma_reqs, r);
		core->nfree_rma_reqs--;
	} else {
		r = malloc(sizeof(*r));
		if (!r)
			return NULL;
		TQ_LEVEL(core->stats, requests, 1);
	}
	*r = (struct tq_rma_req){
		.req = {.kind = TQ_REQ_RMA, .core = core, .user = rma->user},
		.peer = peer,
		.kind = rma->kind,
		.sg = {.addr = rma->local, .len = is_atomic(rma->kind) ? 8 : rma->len},
		.done = rma->done,
	};
	peer->nrma++;
	core->nrma++;
	TQ_LEVEL(core->stats, rma, 1);
	return r;
}

void tq_rma_release(struct tq_req *req)
{
	struct tq_core *core = req->core;
	struct tq_rma_req *r = (struct tq_rma_req *)req;

	if (core->nfree_rma_reqs < TQ_FREE_MAX) {
		LL_PREPEND(core->free_rma_reqs, r);
		core->nfree_rma_reqs++;
		return;
	}
	TQ_LEVEL(core->stats, requests, -1);
	free(r);
}

void tq_rmas_destroy(struct tq_core *core)
{
	struct tq_rma_req *r, *next;

	LL_FOREACH_SAFE(core->free_rma_reqs, r, next) {
		free(r);
	}
}

/* What it has of the network goes back. */
static void unload(struct tq_rma_req *r)
{
	struct tq_core *core = r->req.core;

	if (r->is_registered)
		core->ops->unreg(core->net, r->sg.reg, r->cookie);
	r->peer->nrma--;
	core->nrma--;
	TQ_LEVEL(core->stats, rma, -1);
}

/* Finds how the adapter gets at the local memory. false: it can't be registered. */
static bool load(struct tq_rma_req *r, struct tq_reg *reg)
{
	struct tq_core *core = r->req.core;
	bool write = r->kind != TQ_RMA_WRITE;

	r->sg.reg = reg;
	if (reg || !r->sg.len || (!write && r->sg.len <= core->limits->max_inline))
		return true;
	r->sg.reg = core->ops->reg(core->net, r->sg.addr, r->sg.len, write, &r->cookie);
	r->is_registered = r->sg.reg != NULL;
	return r->is_registered;
}

static int start(struct tq_rma_req *r, const struct tq_rma *rma)
{
	struct tq_core *core = r->req.core;
	const struct tq_atomic atomic = {
		.is_swap = rma->kind == TQ_RMA_COMPARE_SWAP,
		.operand = rma->operand,
		.compare = rma->compare,
	};

	switch (rma->kind) {
	case TQ_RMA_WRITE:
		return core->ops->write(core->net, r->peer, &r->sg, 1, rma->addr, rma->key, r);
	case TQ_RMA_READ:
		return core->ops->read(core->net, r->peer, &r->sg, 1, rma->addr, rma->key, r);
	default:
		return core->ops->atomic(core->net, r->peer, &atomic, &r->sg, rma->addr, rma->key,
					 r);
	}
}

static void count(struct tq_core *core, const struct tq_rma *rma)
{
	switch (rma->kind) {
	case TQ_RMA_WRITE:
		TQ_COUNT(core->stats, rma_writes);
		TQ_COUNT_N(core->stats, rma_write_bytes, rma->len);
		break;
	case TQ_RMA_READ:
		TQ_COUNT(core->stats, rma_reads);
		TQ_COUNT_N(core->stats, rma_read_bytes, rma->len);
		break;
	default:
		TQ_COUNT(core->stats, rma_atomics);
	}
}

static int check(const struct tq_core *core, const struct tq_rma *rma)
{
	if ((unsigned)rma->kind > TQ_RMA_COMPARE_SWAP || !rma->done)
		return -EINVAL;
	if (!is_atomic(rma->kind))
		return 0;
	if (!core->limits->has_atomics)
		return -EOPNOTSUPP;
	return rma->addr % 8 ? -EINVAL : 0;
}

int tq_core_rma(struct tq_peer *peer, const struct tq_rma *rma, struct tq_reg *reg)
{
	struct tq_core *core = peer->core;
	int rc = check(core, rma);
	struct tq_rma_req *r;

	if (rc)
		return rc;
	if (peer->failed)
		return -EIO;
	r = req_new(peer, rma);
	if (!r)
		return -ENOMEM;
	rc = load(r, reg) ? start(r, rma) : -ENOMEM;
	if (!rc) {
		count(core, rma);
	} else if (rc == -EIO) {
		/* The log has yet to say why: until then the request stays in the list. */
		tq_rma_done(&r->req, rc);
	} else {
		unload(r);
		tq_rma_release(&r->req);
		return rc;
	}
	return 0;
}

void tq_rma_done(struct tq_req *req, int status)
{
	unload((struct tq_rma_req *)req);
	tq_req_end(req, status);
}

void tq_core_rma_tell(const struct tq_req *req)
{
	((const struct tq_rma_req *)req)->done(req->user, req->status.error);
}
