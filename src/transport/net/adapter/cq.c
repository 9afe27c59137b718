/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/cq.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "net/adapter/objects.h"

#define BATCH 16 /* completions taken from the device at a time, at most */

/* Entries that the control queues, connection requests, and a few messages need. */
#define LEAST_ENTRIES 64

/* Entries of the receive queue at first. Completions go round in a queue: one that is larger than
 * necessary takes up cache, and memory. (Devices make queues of a power of two less one.) */
#define FIRST_ENTRIES 4095u

/* Entries of the send queue. Few sends are under way on a connection; where the queue is short of
 * slots, every send is signalled. */
#define SEND_ENTRIES 8192

/* Polls without a look at the send queue, at most: unsignalled sends that fail have completions,
 * which nothing announces. */
#define LOOK_ANYWAY 64

static int cq_make(struct tq_net *net, struct tq_cq *cq, uint32_t n)
{
	cq->cq = ibv_create_cq(net->dev.verbs, (int)n, NULL, net->channel, 0);
	if (!cq->cq) {
		int rc = -errno;

		tq_log(net->job, TQ_LOG_ERROR,
		       "A completion queue of %u entries can't be made: %s%s.", n, strerror(-rc),
		       tq_limit_hint(rc));
		return rc;
	}
	cq->size = (uint32_t)cq->cq->cqe;
	return 0;
}

static int resize(struct tq_cq *cq, uint32_t n)
{
	int rc = ibv_resize_cq(cq->cq, (int)n);

	if (rc)
		return rc;
	if (cq->net)
		TQ_LEVEL(cq->net->stats, cq_entries, (int64_t)cq->cq->cqe - cq->size);
	cq->size = (uint32_t)cq->cq->cqe;
	return cq->size < n ? ENOMEM : 0;
}

bool tq_cq_grow(struct tq_cq *cq, uint32_t n)
{
	uint32_t size = cq->size;
	int rc;

	if (cq->most <= size || n > cq->most - cq->used)
		return false;
	while (n > size - cq->used)
		size = size > cq->most / 2 ? cq->most : 2 * size;
	rc = resize(cq, size);
	if (!rc)
		return true;
	cq->most = cq->size; /* growing would fail the next time, too */
	tq_log(cq->net->job, TQ_LOG_WARN,
	       "The completion queue of %u entries can't grow to %u: %s%s. Fewer receives than "
	       "wanted will be in tuple queues.",
	       cq->size, size, strerror(rc), tq_limit_hint(rc));
	return false;
}

/* Makes a queue with `first` entries, or with all where the device can't resize a queue. */
static int cq_open(struct tq_net *net, struct tq_cq *cq, int64_t wanted, uint32_t first)
{
	int64_t n = wanted < net->dev.attr.max_cqe ? wanted : net->dev.attr.max_cqe;
	int rc;

	if (n < LEAST_ENTRIES) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "The adapter's completion queues have %lld entries at most: too few, %d are "
		       "needed.",
		       (long long)n, LEAST_ENTRIES);
		return -ENODEV;
	}
	cq->ask = 1;
	cq->most = (uint32_t)n;
	if (n <= first)
		return cq_make(net, cq, cq->most);
	rc = cq_make(net, cq, first / 2);
	if (rc || !resize(cq, first))
		return rc;
	ibv_destroy_cq(cq->cq);
	return cq_make(net, cq, cq->most);
}

int tq_cqs_open(struct tq_net *net)
{
	int64_t depth = net->params->cq_depth;
	int rc, flags;

	net->channel = ibv_create_comp_channel(net->dev.verbs);
	if (!net->channel) {
		rc = -errno;
		tq_log(net->job, TQ_LOG_ERROR, "No completion channel can be made: %s.",
		       strerror(errno));
		return rc;
	}
	flags = fcntl(net->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(net->channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		rc = -errno;
		goto channel;
	}
	rc = cq_open(net, &net->rcq, depth, FIRST_ENTRIES);
	if (rc)
		goto channel;
	net->rcq.net = net;
	TQ_LEVEL(net->stats, cq_entries, net->rcq.size);
	rc = cq_open(net, &net->scq, depth < SEND_ENTRIES ? depth : SEND_ENTRIES, SEND_ENTRIES);
	if (rc)
		goto rcq;
	return 0;

rcq:
	ibv_destroy_cq(net->rcq.cq);
channel:
	ibv_destroy_comp_channel(net->channel);
	return rc;
}

void tq_cqs_close(struct tq_net *net)
{
	ibv_destroy_cq(net->scq.cq);
	ibv_destroy_cq(net->rcq.cq);
	ibv_destroy_comp_channel(net->channel);
}

/* Polls for one completion, and for more only while there are: looking at the entry behind the last
 * one takes its cache line from the HCA, which is about to write it. */
static int poll_one(struct tq_net *net, struct tq_cq *cq, int budget)
{
	int ask = cq->ask < budget ? cq->ask : budget, n, i;
	struct ibv_wc wc[BATCH];
	struct tq_work *work;

	n = ibv_poll_cq(cq->cq, ask, wc);
	cq->empty = n >= 0 && n < ask;
	cq->ask = n < cq->ask ? 1 : cq->ask * 2 < BATCH ? cq->ask * 2 : BATCH;
	for (i = 0; i < n; i++) {
		work = (struct tq_work *)(uintptr_t)wc[i].wr_id;
		work->done(net, work, &wc[i]);
	}
	return n;
}

/* Polls a queue that may turn out to be broken. That counts as an event, so that tq_net_work() is
 * called soon, which then ends everything. */
static int poll_cq(struct tq_net *net, struct tq_cq *cq, int budget)
{
	int n = net->broken_reason ? 0 : poll_one(net, cq, budget);

	if (n >= 0)
		return n;
	tq_net_set_broken(net, "a completion queue of the adapter can't be polled");
	return 1;
}

/*
 * Between the last poll, which left nothing, and the end of an SRQ a message may have arrived
 * there: a peer that was given up may still send. Polling its completion fails (the completion is
 * taken nevertheless), which says nothing of the queue. One completion is polled for at a time, as
 * an error may hide what came before it. No new SRQ is made meanwhile, which might get the number
 * of a destroyed one.
 */
int tq_cq_sweep(struct tq_net *net)
{
	struct tq_cq *cq = &net->rcq;
	int events = 0, n = 1;

	cq->sweeping = true;
	for (uint32_t i = 0; n && i < cq->size && !net->broken_reason; i++) {
		n = poll_one(net, cq, 1);
		events += n != 0;
	}
	cq->sweeping = false;
	return events;
}

int tq_cq_poll_sends(struct tq_net *net, int budget)
{
	tq_assert_held(net->lock);
	net->scq.look = false;
	net->scq.skipped = 0;
	return poll_cq(net, &net->scq, budget);
}

int tq_cq_poll(struct tq_net *net, int budget)
{
	struct tq_cq *scq = &net->scq;
	int events = 0;

	tq_assert_held(net->lock);
	if (scq->awaited || scq->look || scq->starved ||
	    (scq->used && ++scq->skipped >= LOOK_ANYWAY))
		events = tq_cq_poll_sends(net, budget);
	return events + poll_cq(net, &net->rcq, budget);
}
