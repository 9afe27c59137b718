/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuple queues: an XRC SRQ each, with the receives that lie in it. Making one is a command to the
 * device's firmware, so empty ones are kept for the next tuple.
 */
#include "net/srq.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/mem.h"
#include "net/objects.h"

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
	uint32_t slots; /* of the CQ: one for each that is posted, and one at least while in use */
	bool withdrawn; /* its receives are the protocol's no more */
	struct tq_receive *free;
	struct tq_srq *next, *prev;   /* in the list that it is in */
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
	/* Tuples that were in use to the end. */
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
	int rc;

	*srq = ibv_create_srq_ex(net->dev.verbs, &attr);
	if (!*srq)
		return -errno;
	if (ibv_get_srq_num(*srq, srqn)) {
		rc = errno ? -errno : -EIO;
		ibv_destroy_srq(*srq);
		return rc;
	}
	TQ_LEVEL(net->stats, srqs, 1);
	return 0;
}

/* What the CQ has too much reserved for it. */
static void slots_keep(struct tq_net *net, struct tq_srq *srq, uint32_t n)
{
	tq_cq_release(&net->rcq, srq->slots - n);
	srq->slots = n;
}

static void received(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_receive *r = (struct tq_receive *)work;
	void *token = r->token;
	char why[160];

	r->srq->posted--;
	LL_PREPEND(r->srq->free, r);
	slots_keep(net, r->srq, r->srq->posted || r->srq->withdrawn ? r->srq->posted : 1);
	TQ_LEVEL(net->stats, posted, -1);
	if (r->srq->withdrawn)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		tq_core_delivered(net->core, token, wc->byte_len, NULL);
	} else {
		snprintf(why, sizeof(why), "a receive for it failed: %s (vendor error 0x%x)",
			 ibv_wc_status_str(wc->status), wc->vendor_err);
		tq_core_delivered(net->core, token, 0, why);
	}
}

static struct tq_srq *make(struct tq_net *net)
{
	uint32_t depth = net->limits.srq_depth, i;
	struct tq_srq *srq;

	/* Where completions keep coming those that were withdrawn may stay for long. */
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

	/*
	 * Without a slot of its own a message that is held there might never get a receive: what
	 * has the others may be waiting for it.
	 */
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

/*
 * The SGEs of a receive: the buffer, and the sink, which together take the longest direct message
 * at least. No SGE has length 0: to an SRQ's WQE on mlx5 that may mean 2 GiB.
 */
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
	if (len < net->limits.max_direct && tq_mem_sink(net, &sink)) {
		sink.length = (uint32_t)(net->limits.max_direct - len);
		sge[n++] = sink;
	}
	return n;
}

int tq_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		void *token)
{
	struct tq_receive *r = srq->free;
	struct ibv_sge sge[TQ_MAX_PIECES + 1];
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;

	assert((uint32_t)nsg <= net->limits.max_srq_sge);
	if (!r || (srq->posted == srq->slots && !tq_cq_reserve(&net->rcq, 1))) {
		TQ_COUNT(net->stats, no_queue_slot);
		return -EAGAIN;
	}
	if (srq->posted == srq->slots)
		srq->slots++;
	wr.wr_id = (uintptr_t)&r->work;
	wr.num_sge = fill_sges(net, sg, nsg, sge);
	if (ibv_post_srq_recv(srq->srq, &wr, &bad)) {
		slots_keep(net, srq, srq->posted ? srq->posted : 1);
		TQ_COUNT(net->stats, no_queue_slot);
		return -EAGAIN;
	}
	r->token = token;
	LL_DELETE(srq->free, r);
	srq->posted++;
	TQ_LEVEL(net->stats, posted, 1);
	return 0;
}

/*
 * After a recall the protocol has counted all deliveries, so none of the SRQ's completions is in
 * the CQ. After a peer's failure one may be: it has to be polled before the SRQ goes (on mlx5
 * polling fails later, else), and its work item has to be there. And what such a peer still sends
 * may reach the SRQ, so it isn't used again.
 */
void tq_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe)
{
	struct tq_srqs *srqs = net->srqs;

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

bool tq_srqs_withdrawn(const struct tq_net *net)
{
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
	tq_core_srqs_gone(net->core);
	return tq_cq_sweep(net);
}
