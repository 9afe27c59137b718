/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving side of the control channel: banks of control SRQs, their bounce buffers, and what
 * comes in them.
 */
#include "net/bank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/credit.h"
#include "net/link_fail.h"
#include "net/mem.h"
#include "net/srq.h"

#define USE_AT_ONCE 8u  /* buffers are posted again when there are so many, */
#define USE_AFTER   4u  /* or after so many polls: not between a message and its answer */
#define SPARES      16u /* made at a time */
#define DEPTH_LEAST 16u /* buffers of a bank's class, where memory is scarce */

struct tq_bounce {
	struct tq_work work;
	struct tq_bank *bank; /* that it is posted in, or was */
	struct tq_link *link; /* whose credit it returns when it is posted again */
	void *buf;
	uint32_t lkey;
	uint8_t cls;
	bool kept; /* by the protocol, without a spare one in its place */
	struct tq_bounce *next;
};

/* Memory for some. */
struct tq_bounces {
	struct tq_bounces *next;
	void *mem;
	uint32_t n;
	struct tq_bounce bounce[];
};

static void bounce_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc);

static struct tq_bounces *bounces_make(struct tq_net *net, uint8_t cls, uint32_t size, uint32_t n)
{
	struct tq_bounces *chunk;
	struct tq_reg reg;
	uint32_t i;

	chunk = calloc(1, sizeof(*chunk) + n * sizeof(chunk->bounce[0]));
	if (!chunk)
		return NULL;
	chunk->mem = tq_mem_alloc(net, (size_t)size * n, &reg);
	if (!chunk->mem) {
		free(chunk);
		return NULL;
	}
	for (i = 0; i < n; i++)
		chunk->bounce[i] = (struct tq_bounce){
			.work.done = bounce_done,
			.buf = (char *)chunk->mem + (size_t)size * i,
			.lkey = reg.lkey,
			.cls = cls,
		};
	chunk->n = n;
	LL_PREPEND(net->banks->chunks, chunk);
	TQ_LEVEL(net->stats, control_buffers, n);
	return chunk;
}

static void bounces_free(struct tq_net *net, struct tq_bounces *chunk)
{
	LL_DELETE(net->banks->chunks, chunk);
	TQ_LEVEL(net->stats, control_buffers, -(int64_t)chunk->n);
	tq_mem_free(net, chunk->mem);
	free(chunk);
}

/* A receive to be posted. */
struct bounce_wr {
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
};

static void bounce_wr(struct tq_bounce *b, struct bounce_wr *to)
{
	to->sge = (struct ibv_sge){
		.addr = (uintptr_t)b->buf,
		.length = b->bank->size[b->cls],
		.lkey = b->lkey,
	};
	to->wr = (struct ibv_recv_wr){
		.wr_id = (uintptr_t)&b->work,
		.sg_list = &to->sge,
		.num_sge = 1,
	};
}

/* It has its slot in the CQ, and its place in the SRQ. */
static int bounce_post(struct tq_bounce *b)
{
	struct bounce_wr one;
	struct ibv_recv_wr *bad;

	bounce_wr(b, &one);
	return -ibv_post_srq_recv(b->bank->srq[b->cls], &one.wr, &bad);
}

/* ---- banks ---- */

static uint32_t bank_size(const struct tq_net *net, int cls)
{
	uint32_t size = net->limits.eager_max + (uint32_t)sizeof(struct tq_msg_eager);
	uint32_t small = (uint32_t)net->params->small_size;

	if (cls == TQ_SMALL)
		return small;
	size = (size + 63) & ~63u;
	return size > small ? size : small; /* what a small buffer holds, a large one does */
}

static uint32_t bank_depth(const struct tq_net *net, int cls)
{
	int64_t depth = cls == TQ_SMALL ? net->params->small_depth : net->params->large_depth;

	/* Of the CQ the tuple queues need the most. */
	if (depth > net->rcq.most / 4)
		depth = net->rcq.most / 4;
	if (depth > net->dev.attr.max_srq_wr)
		depth = net->dev.attr.max_srq_wr;
	return (uint32_t)depth;
}

static void bank_class_free(struct tq_net *net, struct tq_bank *bank, int cls)
{
	ibv_destroy_srq(bank->srq[cls]);
	TQ_LEVEL(net->stats, srqs, -1);
	tq_cq_release(&net->rcq, bank->depth[cls]);
	if (bank->bounces[cls])
		bounces_free(net, bank->bounces[cls]);
}

static int bank_class_try(struct tq_net *net, struct tq_bank *bank, uint8_t cls, uint32_t depth)
{
	struct tq_bounces *chunk;
	uint32_t i;
	int rc;

	bank->depth[cls] = depth;
	if (!tq_cq_reserve(&net->rcq, depth))
		return -ENOSPC;
	rc = tq_srq_make(net, depth, 1, &bank->srq[cls], &bank->srqn[cls]);
	if (rc) {
		tq_cq_release(&net->rcq, depth);
		return rc;
	}
	chunk = bounces_make(net, cls, bank->size[cls], depth);
	bank->bounces[cls] = chunk;
	rc = chunk ? 0 : -ENOMEM;
	for (i = 0; !rc && i < depth; i++) {
		chunk->bounce[i].bank = bank;
		rc = bounce_post(&chunk->bounce[i]);
	}
	if (rc)
		bank_class_free(net, bank, cls);
	return rc;
}

/* Where little memory may be locked, the bank has fewer buffers. */
static int bank_class_make(struct tq_net *net, struct tq_bank *bank, uint8_t cls)
{
	uint32_t depth = bank_depth(net, cls);
	int rc;

	bank->size[cls] = bank_size(net, cls);
	rc = bank_class_try(net, bank, cls, depth);
	/* The completion queue can't grow any more, perhaps: then that has become less. */
	if (rc == -ENOSPC && bank_depth(net, cls) < depth)
		rc = bank_class_try(net, bank, cls, bank_depth(net, cls));
	while (rc == -ENOMEM && depth / 2 >= DEPTH_LEAST) {
		depth /= 2;
		rc = bank_class_try(net, bank, cls, depth);
	}
	return rc;
}

static int bank_make(struct tq_net *net, struct tq_bank **made)
{
	struct tq_bank *bank = calloc(1, sizeof(*bank));
	int rc;

	if (!bank)
		return -ENOMEM;
	rc = bank_class_make(net, bank, TQ_SMALL);
	if (rc)
		goto free;
	rc = bank_class_make(net, bank, TQ_LARGE);
	if (rc)
		goto small;
	LL_APPEND(net->banks->all, bank);
	*made = bank;
	return 0;

small:
	bank_class_free(net, bank, TQ_SMALL);
free:
	free(bank);
	return rc;
}

/* The first with room for one more sender; a further one is made for it. */
struct tq_bank *tq_bank_find(struct tq_net *net)
{
	struct tq_bank *bank;

	for (bank = net->banks->all; bank; bank = bank->next)
		if (tq_credit_fits(net, bank))
			return bank;
	return bank_make(net, &bank) ? NULL : bank;
}

int tq_banks_open(struct tq_net *net)
{
	struct tq_bank *bank;
	int rc;

	net->banks = calloc(1, sizeof(*net->banks));
	if (!net->banks)
		return -ENOMEM;
	rc = bank_make(net, &bank);
	if (rc)
		tq_log(net->job, TQ_LOG_ERROR,
		       "the control queues (small_depth %lld, large_depth %lld, messages of %u "
		       "bytes) "
		       "can't be made: %s%s",
		       (long long)net->params->small_depth, (long long)net->params->large_depth,
		       net->limits.eager_max, strerror(-rc), tq_limit_hint(rc));
	return rc;
}

void tq_banks_close(struct tq_net *net)
{
	struct tq_bank *bank;
	int cls;

	while ((bank = net->banks->all)) {
		LL_DELETE(net->banks->all, bank);
		for (cls = 0; cls < TQ_CLASSES; cls++)
			bank_class_free(net, bank, cls);
		free(bank);
	}
	while (net->banks->chunks)
		bounces_free(net, net->banks->chunks);
	free(net->banks);
	net->banks = NULL;
}

/* ---- buffers ---- */

/* To be posted again; then the link gets its credit back. */
static void use_again(struct tq_net *net, struct tq_bounce *b, struct tq_link *link)
{
	b->link = link;
	LL_PREPEND(b->bank->used[b->cls], b);
	net->banks->nused++;
}

/* It fails on a device that is gone; then nothing else works, either. */
static void not_posted(struct tq_net *net)
{
	tq_log(net->job, TQ_LOG_ERROR, "a control buffer can't be posted again");
}

/* The buffer is posted: its link is owed a credit. */
static void return_credit(struct tq_net *net, const struct tq_bounce *b)
{
	if (b->link && !tq_link_has_failed(b->link))
		tq_credit_owe(net, b->link, b->cls);
}

static void post_again(struct tq_net *net, struct tq_bounce *b)
{
	if (bounce_post(b))
		not_posted(net);
	else
		return_credit(net, b);
}

/* Some of the buffers that were used, in one call: to ring a doorbell costs more than a receive. */
static void post_used(struct tq_net *net, struct tq_bank *bank, int cls)
{
	struct bounce_wr some[USE_AT_ONCE];
	struct ibv_recv_wr *bad;
	struct tq_bounce *b;
	bool posted = true;
	unsigned n = 0, i;

	LL_FOREACH(bank->used[cls], b) {
		bounce_wr(b, &some[n]);
		if (n)
			some[n - 1].wr.next = &some[n].wr;
		if (++n == USE_AT_ONCE)
			break;
	}
	if (ibv_post_srq_recv(bank->srq[cls], &some[0].wr, &bad))
		not_posted(net);
	else
		bad = NULL;
	/* One by one: a link that is given up takes its name off those still listed. */
	for (i = 0; i < n; i++) {
		b = bank->used[cls];
		LL_DELETE(bank->used[cls], b);
		posted = posted && &some[i].wr != bad;
		if (posted)
			return_credit(net, b);
	}
}

void tq_banks_poll(struct tq_net *net)
{
	struct tq_banks *banks = net->banks;
	struct tq_bank *bank;
	int cls;

	/* The service thread may not come again before the sender has its credits. */
	if (!banks->nused ||
	    (!net->service && banks->nused < USE_AT_ONCE && ++banks->skipped < USE_AFTER))
		return;
	banks->skipped = 0;
	banks->nused = 0;
	LL_FOREACH(banks->all, bank) {
		for (cls = 0; cls < TQ_CLASSES; cls++) {
			while (bank->used[cls])
				post_used(net, bank, cls);
		}
	}
}

static struct tq_bounce *spare_get(struct tq_net *net, uint8_t cls)
{
	struct tq_banks *banks = net->banks;
	struct tq_bounces *chunk;
	struct tq_bounce *b;
	uint32_t i;

	if (!banks->spare[cls] && banks->nspare[cls] < banks->all->depth[cls]) {
		chunk = bounces_make(net, cls, banks->all->size[cls], SPARES);
		for (i = 0; chunk && i < SPARES; i++)
			LL_PREPEND(banks->spare[cls], &chunk->bounce[i]);
		banks->nspare[cls] += chunk ? SPARES : 0;
	}
	b = banks->spare[cls];
	if (b)
		banks->spare[cls] = b->next;
	return b;
}

/* Another one takes its place, so that its sender's credit doesn't wait for the protocol. */
static void keep(struct tq_net *net, struct tq_bounce *b, struct tq_link *link)
{
	struct tq_bounce *spare = spare_get(net, b->cls);

	b->kept = !spare;
	b->link = link;
	if (spare) {
		spare->bank = b->bank;
		use_again(net, spare, link);
	}
}

void tq_bank_bounce_put(struct tq_net *net, struct tq_bounce *b)
{
	if (!b->kept) {
		LL_PREPEND(net->banks->spare[b->cls], b);
		return;
	}
	b->kept = false;
	/* The link may be gone by now; its number tells. */
	use_again(net, b, tq_link_find(net, tq_get32(((struct tq_msg_hdr *)b->buf)->conn)));
}

void tq_bank_forget(struct tq_net *net, struct tq_link *link)
{
	struct tq_bank *bank = link->bank;
	struct tq_bounce *b;
	int cls;

	if (!bank)
		return;
	for (cls = 0; cls < TQ_CLASSES; cls++)
		LL_FOREACH(bank->used[cls], b)
			if (b->link == link)
				b->link = NULL;
	tq_credit_forget(net, link);
}

/* ---- what comes ---- */

static struct tq_link *sender_of(struct tq_net *net, const struct tq_bounce *b,
				 const struct ibv_wc *wc)
{
	const struct tq_msg_hdr *hdr = b->buf;
	struct tq_link *link;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len > b->bank->size[b->cls] ||
	    tq_msg_check(hdr, wc->byte_len))
		return NULL;
	link = tq_link_find(net, tq_get32(hdr->conn));
	if (!link || tq_link_has_failed(link) || link->bank != b->bank)
		return NULL;
	if (hdr->type == TQ_MSG_CREDIT && b->cls != TQ_SMALL)
		return NULL;
	return link;
}

static void bounce_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_bounce *b = (struct tq_bounce *)work;
	const struct tq_msg_hdr *hdr = b->buf;
	struct tq_link *link;

	link = sender_of(net, b, wc);
	if (!link) {
		TQ_COUNT(net->stats, dropped);
		use_again(net, b, NULL);
		return;
	}
	if (!tq_credit_take(link, hdr)) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "it returned more credit than there is");
		use_again(net, b, NULL);
		return;
	}
	switch (hdr->type) {
	case TQ_MSG_CREDIT:
		b->link = NULL;
		post_again(net, b); /* rule 3 of credit.c */
		break;
	case TQ_MSG_BACKPRESSURE:
		link->backpressured =
			tq_get32(((const struct tq_msg_backpressure *)b->buf)->stop) != 0;
		use_again(net, b, link);
		break;
	default:
		if (tq_core_control(net->core, link->peer, b->buf, wc->byte_len, b))
			keep(net, b, link);
		else
			use_again(net, b, link);
	}
}
