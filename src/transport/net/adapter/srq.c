/* SPDX-License-Identifier: BSD-3-Clause */
/* Making an SRQ is a command to the device's firmware, so empty ones are kept for the next
 * tuple. */
#include "net/adapter/srq.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/adapter/mem.h"
#include "net/adapter/objects.h"

/* A receive in a tuple queue. */
struct tq_receive {
	struct tq_work work;
	struct tq_srq *srq;
	void *token;
	struct tq_receive *next; /* stack of free ones */
};

struct tq_srq {
	struct ibv_srq *srq;
	uint32_t srqn;
	uint32_t posted;
	uint32_t slots; /* reserved slots of the CQ: one for each posted receive, and at least one
			   while in use */
	bool withdrawn; /* the protocol doesn't want its receives any more */
	struct tq_receive *free;
	struct tq_srq *next, *prev;   /* tq_srqs.used, .idle or .withdrawn */
	struct tq_receive receives[]; /* limits.srq_depth */
};

struct tq_srqs {
	struct tq_srq *used;
	struct tq_srq *idle;
	uint32_t nidle;
	struct tq_srq *withdrawn; /* to be destroyed when the CQ is empty */
	uint32_t nwithdrawn;
};

int tq_srqs_open(struct tq_net *net)
{
	net->srqs = calloc(1, sizeof(*net->srqs));
	return net->srqs ? 0 : -ENOMEM;
}

static void destroy(struct tq_net *net, struct tq_srq **list, struct tq_srq *srq)
{
	DL_DELETE(*list, srq);
	ibv_destroy_srq(srq->srq);
	TQ_LEVEL(net->stats, srqs, -1);
	TQ_LEVEL(net->stats, posted, -(int64_t)srq->posted);
	tq_cq_release(&net->rcq, srq->slots);
	free(srq);
}

void tq_srqs_close(struct tq_net *net)
{
	struct tq_srqs *srqs = net->srqs;

	while (srqs->withdrawn)
		destroy(net, &srqs->withdrawn, srqs->withdrawn);
	while (srqs->idle)
		destroy(net, &srqs->idle, srqs->idle);
	/* Queues that were in use to the end. */
	while (srqs->used)
		destroy(net, &srqs->used, srqs->used);
	free(srqs);
	net->srqs = NULL;
}

int tq_srq_make(struct tq_net *net, uint32_t depth, uint32_t sges, struct ibv_srq **srq,
		uint32_t *srqn)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = depth, .max_sge = sges},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = net->dev.pd,
		.xrcd = net->xrcd,
		.cq = net->rcq.cq,
	};
	int error;

	*srq = ibv_create_srq_ex(net->dev.verbs, &attr);
	if (!*srq)
		return -errno;
	error = ibv_get_srq_num(*srq, srqn);
	if (error) {
		ibv_destroy_srq(*srq);
		return -error;
	}
	TQ_LEVEL(net->stats, srqs, 1);
	return 0;
}

/* Gives back all but n of the queue's reserved slots. */
static void slots_keep(struct tq_net *net, struct tq_srq *srq, uint32_t n)
{
	tq_cq_release(&net->rcq, srq->slots - n);
	srq->slots = n;
}

static void received(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_receive *receive = (struct tq_receive *)work;
	void *token = receive->token;
	char why[160];

	receive->srq->posted--;
	LL_PREPEND(receive->srq->free, receive);
	slots_keep(net, receive->srq,
		   receive->srq->posted || receive->srq->withdrawn ? receive->srq->posted : 1);
	TQ_LEVEL(net->stats, posted, -1);
	if (receive->srq->withdrawn)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		tq_core_on_delivered(net->core, token, wc->byte_len, NULL);
	} else {
		snprintf(why, sizeof(why), "a receive for it failed: %s (vendor error 0x%x)",
			 ibv_wc_status_str(wc->status), wc->vendor_err);
		tq_core_on_delivered(net->core, token, 0, why);
	}
}

static struct tq_srq *make(struct tq_net *net)
{
	uint32_t depth = net->limits.srq_depth, i;
	struct tq_srq *srq;

	/* While completions keep coming, withdrawn queues may stay for long. */
	if (net->rcq.sweeping || net->srqs->nwithdrawn >= (uint32_t)net->params->tuples)
		return NULL;
	srq = calloc(1, sizeof(*srq) + depth * sizeof(srq->receives[0]));
	if (!srq)
		return NULL;
	if (tq_srq_make(net, depth, net->limits.max_srq_sge + (net->limits.max_direct > 0),
			&srq->srq, &srq->srqn)) {
		free(srq);
		return NULL;
	}
	for (i = depth; i-- > 0;) {
		srq->receives[i].work.done = received;
		srq->receives[i].srq = srq;
		LL_PREPEND(srq->free, &srq->receives[i]);
	}
	return srq;
}

struct tq_srq *tq_srq_get(struct tq_net *net, uint32_t *srqn)
{
	struct tq_srqs *srqs = net->srqs;
	struct tq_srq *srq = srqs->idle;

	tq_assert_held(net->lock);
	/* Each queue has a slot of its own. Without one a message that is held there might never
	 * get a receive, because the queues that have the slots may be waiting for that message. */
	if (!tq_cq_reserve(&net->rcq, 1))
		return NULL;
	if (srq) {
		DL_DELETE(srqs->idle, srq);
		srqs->nidle--;
		TQ_LEVEL(net->stats, srqs_idle, -1);
	} else {
		srq = make(net);
		if (!srq) {
			tq_cq_release(&net->rcq, 1);
			return NULL;
		}
	}
	srq->slots = 1;
	DL_PREPEND(srqs->used, srq);
	*srqn = srq->srqn;
	return srq;
}

/* Fills in the SGEs of a receive: the buffer and the sink, which together take at least the longest
 * direct message. No SGE has length 0: in an SRQ's WQE mlx5 may take that for 2 GiB. */
static int fill_sges(struct tq_net *net, const struct tq_sg *sg, int nsg, struct ibv_sge *sge)
{
	uint64_t len = 0;
	struct ibv_sge sink;
	int n = 0, i;

	for (i = 0; i < nsg; i++) {
		if (!sg[i].len)
			continue;
		sge[n++] = (struct ibv_sge){
			.addr = (uintptr_t)sg[i].addr,
			.length = (uint32_t)sg[i].len,
			.lkey = sg[i].reg->lkey,
		};
		len += sg[i].len;
	}
	if (len < net->limits.max_direct && tq_mem_get_sink(net, &sink)) {
		sink.length = (uint32_t)(net->limits.max_direct - len);
		sge[n++] = sink;
	}
	return n;
}

int tq_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		void *token)
{
	struct tq_receive *receive = srq->free;
	struct ibv_sge sge[TQ_MAX_PIECES + 1];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;

	tq_assert_held(net->lock);
	assert((uint32_t)nsg <= net->limits.max_srq_sge);
	if (!receive || (srq->posted == srq->slots && !tq_cq_reserve(&net->rcq, 1))) {
		TQ_COUNT(net->stats, no_queue_slot);
		return -EAGAIN;
	}
	if (srq->posted == srq->slots)
		srq->slots++;
	wr.wr_id = (uintptr_t)&receive->work;
	wr.num_sge = fill_sges(net, sg, nsg, sge);
	if (ibv_post_srq_recv(srq->srq, &wr, &bad)) {
		slots_keep(net, srq, srq->posted ? srq->posted : 1);
		TQ_COUNT(net->stats, no_queue_slot);
		return -EAGAIN;
	}
	receive->token = token;
	LL_DELETE(srq->free, receive);
	srq->posted++;
	TQ_LEVEL(net->stats, posted, 1);
	return 0;
}

/*
 * Returns a queue to the pool. Withdraws the queue instead if receives are posted there, if it
 * isn't `safe` because its peer has failed, or if the pool is full.
 *
 * After a recall the protocol has counted all deliveries, so none of the SRQ's completions is in
 * the CQ. After a peer's failure one may be: the completion has to be polled before the SRQ goes
 * (on mlx5 polling fails later), and its work item has to be there. A failed peer may still send to
 * the SRQ, so another tuple must not get that SRQ.
 */
void tq_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe)
{
	struct tq_srqs *srqs = net->srqs;

	tq_assert_held(net->lock);
	slots_keep(net, srq, srq->posted);
	DL_DELETE(srqs->used, srq);
	if (srq->posted || !safe || srqs->nidle >= (uint32_t)net->params->srq_pool) {
		srq->withdrawn = true;
		DL_PREPEND(srqs->withdrawn, srq);
		srqs->nwithdrawn++;
		TQ_LEVEL(net->stats, srqs_withdrawn, 1);
		return;
	}
	DL_PREPEND(srqs->idle, srq);
	srqs->nidle++;
	TQ_LEVEL(net->stats, srqs_idle, 1);
}

bool tq_srqs_has_withdrawn(const struct tq_net *net)
{
	tq_assert_held(net->lock);
	return net->srqs->withdrawn;
}

int tq_srqs_poll(struct tq_net *net)
{
	if (!net->srqs->withdrawn)
		return 0;
	while (net->srqs->withdrawn)
		destroy(net, &net->srqs->withdrawn, net->srqs->withdrawn);
	TQ_LEVEL(net->stats, srqs_withdrawn, -(int64_t)net->srqs->nwithdrawn);
	net->srqs->nwithdrawn = 0;
	tq_core_on_srqs_gone(net->core);
	return tq_cq_sweep(net);
}
