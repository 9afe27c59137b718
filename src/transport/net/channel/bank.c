/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving side of the control channel: banks of control SRQs, their buffers, and what is done
 * with the messages in them. */
#include "net/channel/bank.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/mem.h"
#include "net/adapter/srq.h"
#include "net/channel/credit.h"
#include "net/peers/link_life.h"

#define USE_AT_ONCE 8u  /* used buffers that are posted again whatever else is done */
#define USE_AFTER   4u  /* polls after which fewer are: not between a message and its answer */
#define SPARES      16u /* buffers made at a time */
#define DEPTH_LEAST 16u /* buffers of a bank's class, where memory is scarce */

struct tq_bounce {
	struct tq_work work;
	struct tq_bank *bank; /* in whose SRQ it is posted, or was */
	struct tq_link *link; /* the sender that gets a credit back when it is posted again */
	void *buf;
	struct ibv_recv_wr wr; /* its receive; `next` leads to other used buffers */
	struct ibv_sge sge;
	uint8_t cls;
	bool kept; /* the protocol has it, and no spare one is in its place */
	struct tq_bounce *next;
};

/* Some buffers, with their memory. */
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
	for (i = 0; i < n; i++) {
		struct tq_bounce *bounce = &chunk->bounce[i];

		bounce->work.done = bounce_done;
		bounce->buf = (char *)chunk->mem + (size_t)size * i;
		bounce->cls = cls;
		bounce->sge = (struct ibv_sge){(uintptr_t)bounce->buf, size, reg.lkey};
		bounce->wr.wr_id = (uintptr_t)&bounce->work;
		bounce->wr.sg_list = &bounce->sge;
		bounce->wr.num_sge = 1;
	}
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

/* ---- banks ---- */

/* Bytes of a small control buffer: each control message has room there (TQ_MSG_MAX), and an eager
 * one with up to 216 bytes of data. */
#define SMALL_SIZE 256u

uint32_t tq_bank_size(const struct tq_net *net, int cls)
{
	uint32_t size = net->limits.control_data_max + (uint32_t)sizeof(struct tq_msg_eager);

	if (cls == TQ_SMALL)
		return SMALL_SIZE;
	size = (size + 63) & ~63u;
	/* A large buffer holds each message that a small one holds. */
	return size > SMALL_SIZE ? size : SMALL_SIZE;
}

static uint32_t bank_depth(const struct tq_net *net, int cls)
{
	int64_t depth = cls == TQ_SMALL ? net->params->small_depth : net->params->large_depth;

	/* Tuple queues need most of the CQ. */
	if (depth > net->rcq.most / 4)
		depth = net->rcq.most / 4;
	if (depth > net->dev.attr.max_srq_wr)
		depth = net->dev.attr.max_srq_wr;
	return (uint32_t)depth;
}

/* Posts the buffers of a new queue in one call. */
static int bounces_post(struct tq_bank *bank, struct tq_bounces *chunk)
{
	struct ibv_recv_wr *bad;

	for (uint32_t i = 0; i < chunk->n; i++) {
		chunk->bounce[i].bank = bank;
		chunk->bounce[i].wr.next = i + 1 < chunk->n ? &chunk->bounce[i + 1].wr : NULL;
	}
	return -ibv_post_srq_recv(bank->srq[chunk->bounce[0].cls], &chunk->bounce[0].wr, &bad);
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
	rc = chunk ? bounces_post(bank, chunk) : -ENOMEM;
	if (rc)
		bank_class_free(net, bank, cls);
	return rc;
}

/* Makes the queue of one class, with fewer buffers where little memory may be locked. */
static int bank_class_make(struct tq_net *net, struct tq_bank *bank, uint8_t cls)
{
	uint32_t depth = bank_depth(net, cls);
	int rc;

	bank->size[cls] = tq_bank_size(net, cls);
	rc = bank_class_try(net, bank, cls, depth);
	/* The attempt may have found that the completion queue can't grow: then bank_depth() is
	 * less. */
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

struct tq_bank *tq_bank_get(struct tq_net *net)
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
		       "The control queues (small_depth %lld, large_depth %lld, messages of %u "
		       "bytes) can't be made: %s%s.",
		       (long long)net->params->small_depth, (long long)net->params->large_depth,
		       net->limits.control_data_max, strerror(-rc), tq_limit_hint(rc));
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

/* Has a buffer posted again soon, which gives the link (NULL: none) its credit back. */
static void use_again(struct tq_net *net, struct tq_bounce *bounce, struct tq_link *link)
{
	struct ibv_recv_wr **used = &bounce->bank->used[bounce->cls];

	bounce->link = link;
	bounce->wr.next = *used;
	*used = &bounce->wr;
	net->banks->nused++;
}

/* Logs, once, that posting failed. That happens on a device that is gone, where nothing else works,
 * either. */
static void log_not_posted(struct tq_net *net)
{
	if (!net->banks->post_failure_logged)
		tq_log(net->job, TQ_LOG_ERROR,
		       "No more messages arrive here, because receives can't be posted to %s: "
		       "the device has probably failed.",
		       net->dev.text);
	net->banks->post_failure_logged = true;
}

static struct tq_bounce *bounce_of(struct ibv_recv_wr *wr)
{
	return (struct tq_bounce *)((char *)wr - offsetof(struct tq_bounce, wr));
}

/* Posts buffers again in one call, because ringing a doorbell costs more than a receive. Each
 * buffer's sender is owed a credit. */
static void post_again(struct tq_net *net, struct ibv_srq *srq, struct ibv_recv_wr *list)
{
	struct ibv_recv_wr *bad = NULL, *wr;

	if (ibv_post_srq_recv(srq, list, &bad))
		log_not_posted(net);
	else
		bad = NULL;
	/* The buffers from `bad` on were not posted: their senders get no credit back. */
	for (wr = list; wr != bad; wr = wr->next) {
		const struct tq_bounce *bounce = bounce_of(wr);

		if (bounce->link && !tq_link_has_failed(bounce->link))
			tq_credit_owe(net, bounce->link, bounce->cls);
	}
}

void tq_banks_poll(struct tq_net *net)
{
	struct tq_banks *banks = net->banks;
	struct ibv_recv_wr *used;
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
			used = bank->used[cls];
			bank->used[cls] = NULL;
			if (used)
				post_again(net, bank->srq[cls], used);
		}
	}
}

static struct tq_bounce *spare_get(struct tq_net *net, uint8_t cls)
{
	struct tq_banks *banks = net->banks;
	struct tq_bounces *chunk;
	struct tq_bounce *bounce;
	uint32_t i;

	if (!banks->spare[cls] && banks->nspare[cls] < banks->all->depth[cls]) {
		chunk = bounces_make(net, cls, banks->all->size[cls], SPARES);
		for (i = 0; chunk && i < SPARES; i++)
			LL_PREPEND(banks->spare[cls], &chunk->bounce[i]);
		banks->nspare[cls] += chunk ? SPARES : 0;
	}
	bounce = banks->spare[cls];
	if (bounce)
		banks->spare[cls] = bounce->next;
	return bounce;
}

/* Leaves the buffer to the protocol. A spare one takes its place, so that the sender's credit
 * doesn't wait for the protocol. */
static void keep(struct tq_net *net, struct tq_bounce *bounce, struct tq_link *link)
{
	struct tq_bounce *spare = spare_get(net, bounce->cls);

	bounce->kept = !spare;
	bounce->link = link;
	if (spare) {
		spare->bank = bounce->bank;
		use_again(net, spare, link);
	}
}

void tq_bank_bounce_put(struct tq_net *net, struct tq_bounce *bounce)
{
	tq_assert_held(net->lock);
	if (!bounce->kept) {
		LL_PREPEND(net->banks->spare[bounce->cls], bounce);
		return;
	}
	bounce->kept = false;
	/* The sender's link may be gone by now: the number in the message tells. */
	use_again(net, bounce,
		  tq_link_find(net, tq_get32(((struct tq_msg_hdr *)bounce->buf)->conn)));
}

void tq_bank_forget(struct tq_net *net, struct tq_link *link)
{
	struct tq_bank *bank = link->bank;
	struct ibv_recv_wr *wr;
	int cls;

	if (!bank)
		return;
	for (cls = 0; cls < TQ_CLASSES; cls++)
		LL_FOREACH(bank->used[cls], wr)
			if (bounce_of(wr)->link == link)
				bounce_of(wr)->link = NULL;
	tq_credit_forget(net, link);
}

/* ---- messages that arrive ---- */

static struct tq_link *sender_of(struct tq_net *net, const struct tq_bounce *bounce,
				 const struct ibv_wc *wc)
{
	const struct tq_msg_hdr *hdr = bounce->buf;
	struct tq_link *link;

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len > bounce->bank->size[bounce->cls] ||
	    tq_msg_check(hdr, wc->byte_len))
		return NULL;
	link = tq_link_find(net, tq_get32(hdr->conn));
	if (!link || tq_link_has_failed(link) || link->bank != bounce->bank)
		return NULL;
	if (hdr->type == TQ_MSG_CREDIT && bounce->cls != TQ_SMALL)
		return NULL;
	return link;
}

static void bounce_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_bounce *bounce = (struct tq_bounce *)work;
	const struct tq_msg_hdr *hdr = bounce->buf;
	struct tq_link *link;

	link = sender_of(net, bounce, wc);
	if (!link) {
		TQ_COUNT(net->stats, dropped);
		use_again(net, bounce, NULL);
		return;
	}
	if (!tq_credit_take(link, hdr)) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "it returned more credit than there is");
		use_again(net, bounce, NULL);
		return;
	}
	switch (hdr->type) {
	case TQ_MSG_CREDIT:
		bounce->link = NULL;
		bounce->wr.next = NULL;
		post_again(net, bounce->bank->srq[bounce->cls], &bounce->wr); /* rule 3 of
										 credit.c */
		break;
	case TQ_MSG_BACKPRESSURE:
		link->backpressured =
			tq_get32(((const struct tq_msg_backpressure *)bounce->buf)->stop) != 0;
		use_again(net, bounce, link);
		break;
	default:
		if (tq_core_on_control(net->core, link->peer, bounce->buf, wc->byte_len, bounce))
			keep(net, bounce, link);
		else
			use_again(net, bounce, link);
	}
}
