/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.c - what runs inside the timed loops.
 *
 * Receives are counted: a rank publishes in shared memory how many it has posted, and the other
 * never sends more. So an RNR NAK, whose timer would be all that a test measures, can't occur.
 */
#include "lane.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void lane_pace(struct lane *l, unsigned window, unsigned signal_every, bool events)
{
	l->window = window;
	l->signal_every = signal_every;
	l->events = events;
}

/* Sleeps until the CQ has something. A completion that comes before the arming is found by the
 * caller's next poll. */
static void sleep_on(struct ibv_cq *cq)
{
	struct pollfd pfd = {.fd = cq->channel->fd, .events = POLLIN};
	struct ibv_cq *which;
	void *context;
	int rc;

	do
		rc = poll(&pfd, 1, 20000);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		die("no completion event for 20 s");
	if (ibv_get_cq_event(cq->channel, &which, &context))
		die("a completion event can't be read: %s", strerror(errno));
	ibv_ack_cq_events(which, 1);
}

static int poll_checked(struct lane *l, struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, max, wc);

	if (n < 0)
		die("ibv_poll_cq failed");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die("a %s ended with \"%s\"", cq == l->scq ? "send" : "receive",
			    ibv_wc_status_str(wc[i].status));
	return n;
}

static int take_some(struct lane *l, struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct idle idle = {0};

	for (;;) {
		int n = poll_checked(l, cq, max, wc);
		if (n > 0)
			return n;
		if (!l->events) {
			pair_idle(&idle);
			continue;
		}
		if (ibv_req_notify_cq(cq, 0))
			die("a CQ can't be armed");
		n = poll_checked(l, cq, max, wc);
		if (n > 0)
			return n;
		sleep_on(cq);
	}
}

static void reap_one(struct lane *l)
{
	struct ibv_wc wc;

	take_some(l, l->scq, 1, &wc);
	l->done = wc.wr_id;
}

static void wait_for_credit(struct lane *l)
{
	_Atomic uint64_t *posted = &l->pair->sh->posted[!l->pair->rank][l->kind].value;
	struct idle idle = {0};

	for (;;) {
		l->credit = atomic_load_explicit(posted, memory_order_acquire);
		if (l->used != l->credit)
			return;
		pair_idle(&idle);
	}
}

void lane_send(struct lane *l, enum ibv_wr_opcode op, uint32_t len, bool last)
{
	struct ibv_send_wr *bad;

	while (l->posted - l->done >= l->window)
		reap_one(l);
	if (op == IBV_WR_SEND) {
		if (l->used == l->credit)
			wait_for_credit(l);
		l->used++;
	}
	l->posted++;
	l->wr.wr_id = l->posted;
	l->wr.opcode = op;
	l->wr.send_flags = len <= l->max_inline ? IBV_SEND_INLINE : 0;
	if (last || l->posted - l->signalled >= l->signal_every) {
		l->wr.send_flags |= IBV_SEND_SIGNALED;
		l->signalled = l->posted;
	}
	l->sge.length = len;
	if (ibv_post_send(l->qp, &l->wr, &bad))
		die("ibv_post_send failed");
}

void lane_flush(struct lane *l)
{
	while (l->done != l->signalled)
		reap_one(l);
}

unsigned lane_take(struct lane *l, unsigned max, bool wait)
{
	struct ibv_wc wc[LANE_BATCH];
	int n;

	if (max > LANE_BATCH)
		max = LANE_BATCH;
	n = wait ? take_some(l, l->rcq, (int)max, wc) : poll_checked(l, l->rcq, (int)max, wc);
	l->owed += (unsigned)n;
	return (unsigned)n;
}

void lane_refill(struct lane *l)
{
	struct ibv_recv_wr *bad;

	while (l->owed >= LANE_BATCH) {
		int rc = l->srq ? ibv_post_srq_recv(l->srq, l->recv, &bad)
				: ibv_post_recv(l->qp, l->recv, &bad);
		if (rc)
			die("receives can't be posted: %s", strerror(rc));
		l->owed -= LANE_BATCH;
		atomic_fetch_add_explicit(&l->pair->sh->posted[l->pair->rank][l->kind].value,
					  LANE_BATCH, memory_order_release);
	}
}
