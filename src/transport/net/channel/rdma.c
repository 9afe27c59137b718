/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations wait in a queue, and go in chunks of which only a few are under way, so that a long
 * one doesn't delay other work of the HCA. Operations for one peer go in order. An operation whose
 * peer isn't connected yet doesn't hold up the others. */
#include "net/channel/rdma.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

#define CHUNKS   4     /* bytes under way on a lane, in chunks */
#define FREE_MAX 1024u /* operations kept for the next ones */

struct tq_rdma_op {
	struct tq_link *link;
	struct tq_node *node;
	enum ibv_wr_opcode opcode; /* IBV_WR_SEND: a direct send */
	struct tq_sg sg[TQ_MAX_PIECES];
	int nsg;
	uint64_t len, posted;
	uint64_t addr; /* RDMA */
	uint32_t rkey;
	uint32_t srqn; /* SEND */
	struct tq_atomic atomic;
	unsigned flags;
	void *token;
	void *copy; /* inline data; kept until the operation ends, because it may be repeated */
	uint32_t chunks; /* under way */
	int status;
	bool again; /* a chunk was not executed: the operation starts again when its last chunk has
		       ended */
	bool queued;
	struct tq_rdma_op *next, *prev; /* node's queue, `ended`, `free` */
};

struct tq_rdma {
	struct tq_rdma_op *ended; /* list: operations of which the protocol doesn't know that they
				     have ended */
	struct tq_rdma_op *free;
	uint32_t nfree;
	uint32_t nops; /* operations that are not free */
};

int tq_rdma_open(struct tq_net *net)
{
	net->rdma = calloc(1, sizeof(*net->rdma));
	return net->rdma ? 0 : -ENOMEM;
}

static struct tq_rdma_op *op_get(struct tq_net *net, struct tq_link *link, void *token)
{
	struct tq_rdma *rdma = net->rdma;
	struct tq_rdma_op *op = rdma->free;

	if (op) {
		LL_DELETE(rdma->free, op);
		rdma->nfree--;
	} else {
		op = malloc(sizeof(*op));
		if (!op)
			return NULL;
		TQ_LEVEL(net->stats, operations, 1);
	}
	*op = (struct tq_rdma_op){.link = link, .node = link->node, .token = token};
	rdma->nops++;
	return op;
}

static void op_put(struct tq_net *net, struct tq_rdma_op *op)
{
	struct tq_rdma *rdma = net->rdma;

	free(op->copy);
	rdma->nops--;
	if (rdma->nfree == FREE_MAX) {
		free(op);
		TQ_LEVEL(net->stats, operations, -1);
		return;
	}
	LL_PREPEND(rdma->free, op);
	rdma->nfree++;
}

static void enqueue(struct tq_net *net, struct tq_rdma_op *op, bool first)
{
	struct tq_node *node = op->node;

	if (first)
		DL_PREPEND(node->bulk_ops, op);
	else
		DL_APPEND(node->bulk_ops, op);
	op->queued = true;
	if (!node->bulk_busy) {
		node->bulk_busy = true;
		DL_APPEND2(net->bulk_busy, node, bulk_busy_prev, bulk_busy_next);
	}
}

static void dequeue(struct tq_net *net, struct tq_rdma_op *op)
{
	struct tq_node *node = op->node;

	DL_DELETE(node->bulk_ops, op);
	op->queued = false;
	if (!node->bulk_ops) {
		node->bulk_busy = false;
		DL_DELETE2(net->bulk_busy, node, bulk_busy_prev, bulk_busy_next);
	}
}

/* Fails an operation: no more of it is posted, and it ends with its last chunk. */
static void fail(struct tq_net *net, struct tq_rdma_op *op)
{
	op->status = -EIO;
	op->again = false;
	if (op->queued)
		dequeue(net, op);
	if (!op->chunks)
		DL_APPEND(net->rdma->ended, op);
}

static void tell(struct tq_net *net, struct tq_rdma_op *op)
{
	void *token = op->token;
	int status = op->status;
	bool send = op->opcode == IBV_WR_SEND;

	op_put(net, op);
	if (send)
		tq_core_on_sent(net->core, token, status);
	else
		tq_core_on_rdma_done(net->core, token, status);
}

static void chunk_done(struct tq_net *net, struct tq_posted *chunk, const struct ibv_wc *wc)
{
	struct tq_rdma_op *op = chunk->token;

	op->node->bulk_bytes -= chunk->size;
	op->chunks--;
	if (op->again) {
		op->again = op->chunks > 0;
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		op->status = -EIO;
		if (op->queued)
			dequeue(net, op);
	}
	if (!op->chunks && !op->queued)
		tell(net, op);
}

/* Has a chunk posted once more. Reads and writes may be repeated as long as the operation has not
 * ended; a direct send is one chunk. */
static void chunk_again(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_rdma_op *op = posted->token;

	op->again = true;
	op->posted = 0;
	if (!op->queued)
		enqueue(net, op, true);
}

/* Fills in the next `len` bytes of the operation's memory. Returns the number of pieces. */
static int slice(const struct tq_rdma_op *op, uint64_t len, struct ibv_sge *sge)
{
	uint64_t at = op->posted, n;
	int i, nsge = 0;

	for (i = 0; i < op->nsg && len; i++) {
		if (at >= op->sg[i].len) {
			at -= op->sg[i].len;
			continue;
		}
		n = op->sg[i].len - at < len ? op->sg[i].len - at : len;
		sge[nsge++] = (struct ibv_sge){
			.addr = (uintptr_t)op->sg[i].addr + at,
			.length = (uint32_t)n,
			.lkey = op->sg[i].reg ? op->sg[i].reg->lkey : 0,
		};
		len -= n;
		at = 0;
	}
	return nsge;
}

static bool is_atomic(const struct tq_rdma_op *op)
{
	return op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void set_remote(const struct tq_rdma_op *op, struct ibv_send_wr *wr)
{
	if (!is_atomic(op)) {
		wr->wr.rdma.remote_addr = op->addr + op->posted;
		wr->wr.rdma.rkey = op->rkey;
		return;
	}
	wr->wr.atomic.remote_addr = op->addr;
	wr->wr.atomic.rkey = op->rkey;
	wr->wr.atomic.compare_add = op->atomic.is_swap ? op->atomic.compare : op->atomic.operand;
	wr->wr.atomic.swap = op->atomic.operand;
}

static int post_chunk(struct tq_net *net, struct tq_rdma_op *op, struct tq_lane *lane, uint64_t len)
{
	struct ibv_sge sge[TQ_MAX_PIECES];
	/* Over XRC the target of RDMA is the protection domain of an SRQ: any of that process's. */
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.opcode = op->opcode,
		.qp_type.xrc.remote_srqn = op->link->srqn[TQ_SMALL],
	};

	if (op->opcode == IBV_WR_SEND)
		return tq_lane_send(net, lane, op->link, op->srqn, op->sg, op->nsg, op->flags,
				    chunk_done);
	set_remote(op, &wr);
	wr.num_sge = slice(op, len, sge);
	/* Without a registration: what is posted inline is read now. */
	if (wr.num_sge && !op->sg[0].reg)
		wr.send_flags = IBV_SEND_INLINE;
	return tq_lane_post(net, lane, op->link, &wr, chunk_done, true);
}

/* Posts as much of an operation as may be under way. Returns 0 if all of it was posted. */
static int post_op(struct tq_net *net, struct tq_rdma_op *op, struct tq_lane *lane)
{
	uint64_t wanted = (uint64_t)net->params->rdma_chunk, most = net->limits.max_send;
	uint64_t chunk = wanted < most ? wanted : most, n;
	struct tq_node *node = op->node;
	struct tq_posted *posted;
	int rc;

	do {
		n = op->len - op->posted;
		if (op->opcode != IBV_WR_SEND && n > chunk)
			n = chunk;
		if (node->bulk_bytes && node->bulk_bytes + n > CHUNKS * chunk)
			return -EAGAIN;
		rc = post_chunk(net, op, lane, n);
		if (rc)
			return rc;
		posted = tq_lane_keep(lane, chunk_again, NULL, 0);
		posted->token = op;
		posted->size = n;
		op->posted += n;
		op->chunks++;
		node->bulk_bytes += n;
	} while (op->posted < op->len);
	return 0;
}

/* Posts the operations of a node's queue that can go. The protocol, which may be the caller, is not
 * called here. */
static void pump(struct tq_net *net, struct tq_node *node)
{
	struct tq_rdma_op *op, *next;
	struct tq_lane *lane;
	int rc;

	DL_FOREACH_SAFE(node->bulk_ops, op, next) {
		if (tq_link_has_failed(op->link)) {
			fail(net, op);
			continue;
		}
		if (op->again)
			return;
		lane = tq_lane_request(net, op->link, TQ_LANE_BULK);
		/* The answer for the control lane says which SRQ to name. */
		if (!tq_link_can_send(op->link)) {
			tq_lane_request(net, op->link, TQ_LANE_CONTROL);
			continue;
		}
		if (!lane)
			continue;
		rc = post_op(net, op, lane);
		if (rc == -EAGAIN)
			return;
		if (rc) {
			tq_link_fail(net, op->link, TQ_FAIL_GIVEN_UP,
				     "an RDMA operation could not be posted");
			fail(net, op);
			continue;
		}
		dequeue(net, op);
	}
}

static void set_memory(struct tq_rdma_op *op, const struct tq_sg *sg, int nsg)
{
	int i;

	assert(nsg <= TQ_MAX_PIECES);
	op->nsg = nsg;
	for (i = 0; i < nsg; i++) {
		op->sg[i] = sg[i];
		op->len += sg[i].len;
	}
}

/* Starts an operation, with `atomic` if it is one. */
static int start(struct tq_net *net, struct tq_link *link, enum ibv_wr_opcode opcode,
		 const struct tq_atomic *atomic, const struct tq_sg *sg, int nsg, uint64_t addr,
		 uint32_t rkey, void *token)
{
	struct tq_rdma_op *op;

	if (tq_link_has_failed(link))
		return -EIO;
	op = op_get(net, link, token);
	if (!op)
		return -ENOMEM;
	op->opcode = opcode;
	if (atomic)
		op->atomic = *atomic;
	set_memory(op, sg, nsg);
	op->addr = addr;
	op->rkey = rkey;
	enqueue(net, op, false);
	pump(net, op->node);
	return 0;
}

int tq_rdma_start(struct tq_net *net, struct tq_link *link, enum ibv_wr_opcode opcode,
		  const struct tq_sg *sg, int nsg, uint64_t addr, uint32_t rkey, void *token)
{
	tq_assert_held(net->lock);
	return start(net, link, opcode, NULL, sg, nsg, addr, rkey, token);
}

int tq_rdma_atomic(struct tq_net *net, struct tq_link *link, const struct tq_atomic *atomic,
		   const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token)
{
	tq_assert_held(net->lock);
	return start(net, link,
		     atomic->is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
		     atomic, sg, 1, addr, rkey, token);
}

/* Copies inline data, which are the caller's again when tq_rdma_direct() returns, as the operation
 * may have to wait. */
static int copy_inline(struct tq_rdma_op *op)
{
	char *to;
	int i;

	to = op->copy = malloc(op->len ? op->len : 1);
	if (!to)
		return -ENOMEM;
	for (i = 0; i < op->nsg; i++) {
		memcpy(to, op->sg[i].addr, op->sg[i].len);
		op->sg[i].addr = to;
		to += op->sg[i].len;
	}
	return 0;
}

int tq_rdma_direct(struct tq_net *net, struct tq_link *link, uint32_t srqn, const struct tq_sg *sg,
		   int nsg, unsigned flags, void *token)
{
	struct tq_rdma_op *op;
	int rc;

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return -EIO;
	op = op_get(net, link, token);
	if (!op)
		return -ENOMEM;
	op->opcode = IBV_WR_SEND;
	op->srqn = srqn;
	op->flags = flags;
	set_memory(op, sg, nsg);
	rc = flags & TQ_DIRECT_INLINE ? copy_inline(op) : 0;
	if (rc) {
		op_put(net, op);
		return rc;
	}
	enqueue(net, op, false);
	pump(net, op->node);
	return 0;
}

int tq_rdma_poll(struct tq_net *net)
{
	struct tq_rdma *rdma = net->rdma;
	struct tq_node *node, *next;
	struct tq_rdma_op *op;
	int events = 0;

	for (node = net->bulk_busy; node; node = next) {
		next = node->bulk_busy_next;
		pump(net, node);
	}
	while ((op = rdma->ended)) {
		DL_DELETE(rdma->ended, op);
		tell(net, op);
		events++;
	}
	return events;
}

void tq_rdma_forget(struct tq_net *net, struct tq_link *link)
{
	struct tq_rdma_op *op, *next;

	DL_FOREACH_SAFE(link->node->bulk_ops, op, next) {
		if (op->link != link)
			continue;
		dequeue(net, op);
		op->again = false;
		if (op->chunks)
			op->status = -EIO; /* chunk_done() ends it: the lane outlives the link */
		else
			op_put(net, op);
	}
	DL_FOREACH_SAFE(net->rdma->ended, op, next) {
		if (op->link != link)
			continue;
		DL_DELETE(net->rdma->ended, op);
		op_put(net, op);
	}
}

bool tq_rdma_is_idle(const struct tq_net *net)
{
	tq_assert_held(net->lock);
	return !net->rdma->nops;
}

void tq_rdma_close(struct tq_net *net)
{
	struct tq_rdma_op *op, *next;

	LL_FOREACH_SAFE(net->rdma->free, op, next)
		free(op);
	free(net->rdma);
	net->rdma = NULL;
}
