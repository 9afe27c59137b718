/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on peers' memory: their records and their ends. The network carries them. They match
 * nothing, and take part in no order of the messages.
 */
#include "proto/rma.h"

#include <errno.h>

#include "proto/common/net_ops.h"
#include "proto/common/objects.h"

static bool is_atomic(enum tq_rma_kind kind)
{
	return kind == TQ_RMA_FETCH_ADD || kind == TQ_RMA_COMPARE_SWAP;
}

static struct tq_rma_req *req_new(struct tq_peer *peer, const struct tq_rma *rma)
{
	struct tq_core *core = peer->core;
	struct tq_rma_req *op = tq_req_new(core, TQ_REQ_RMA, sizeof(*op));

	if (!op)
		return NULL;
	*op = (struct tq_rma_req){
		.req = {.kind = TQ_REQ_RMA, .core = core, .user = rma->user},
		.peer = peer,
		.kind = rma->kind,
		.sg = {.addr = rma->local, .len = is_atomic(rma->kind) ? 8 : rma->len},
		.done = rma->done,
	};
	peer->nrma++;
	core->nrma++;
	TQ_LEVEL(core->stats, rma, 1);
	return op;
}

/* Gives back what the operation has of the network. */
static void unload(struct tq_rma_req *op)
{
	struct tq_core *core = op->req.core;

	if (op->owns_reg)
		core->ops->unreg(core->net, op->sg.reg, op->cookie);
	op->peer->nrma--;
	core->nrma--;
	TQ_LEVEL(core->stats, rma, -1);
}

/* Finds how the adapter gets at the local memory. Returns false if it can't be registered. */
static bool load(struct tq_rma_req *op, struct tq_reg *reg)
{
	struct tq_core *core = op->req.core;
	bool write = op->kind != TQ_RMA_WRITE;

	op->sg.reg = reg;
	if (reg || !op->sg.len || (!write && op->sg.len <= core->limits->max_inline))
		return true;
	op->sg.reg = core->ops->reg(core->net, op->sg.addr, op->sg.len, write, &op->cookie);
	op->owns_reg = op->sg.reg != NULL;
	return op->owns_reg;
}

static int start(struct tq_rma_req *op, const struct tq_rma *rma)
{
	struct tq_core *core = op->req.core;
	const struct tq_atomic atomic = {
		.is_swap = rma->kind == TQ_RMA_COMPARE_SWAP,
		.operand = rma->operand,
		.compare = rma->compare,
	};

	switch (rma->kind) {
	case TQ_RMA_WRITE:
		return core->ops->write(core->net, op->peer->link, &op->sg, 1, rma->addr, rma->key,
					op);
	case TQ_RMA_READ:
		return core->ops->read(core->net, op->peer->link, &op->sg, 1, rma->addr, rma->key,
				       op);
	default:
		return core->ops->atomic(core->net, op->peer->link, &atomic, &op->sg, rma->addr,
					 rma->key, op);
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
	struct tq_rma_req *op;

	tq_assert_held(core->lock);
	if (rc)
		return rc;
	if (peer->failed)
		return -EIO;
	op = req_new(peer, rma);
	if (!op)
		return -ENOMEM;
	rc = load(op, reg) ? start(op, rma) : -ENOMEM;
	if (!rc) {
		count(core, rma);
	} else if (rc == -EIO) {
		/* The log has yet to say why: until then the request stays in the list. */
		tq_rma_on_done(op, rc);
	} else {
		unload(op);
		tq_core_release(&op->req);
		return rc;
	}
	return 0;
}

void tq_rma_on_done(struct tq_rma_req *op, int status)
{
	unload(op);
	op->req.core->served = true;
	tq_req_end(&op->req, status);
}

void tq_core_rma_call_done(const struct tq_req *req)
{
	((const struct tq_rma_req *)req)->done(req->user, req->status.error);
}
