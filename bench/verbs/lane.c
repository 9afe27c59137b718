/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.c - the functions inside the timed loops.
 *
 * Receives are counted: a rank publishes in shared memory how many it has posted, and the other
 * never sends more. So an RNR NAK, whose timer would be all that a test measures, can't occur.
 */
#include "lane.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

void lane_pace(struct lane *lane, unsigned window, unsigned signal_every, bool events)
{
	lane->window = window;
	lane->signal_every = signal_every;
	lane->events = events;
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

static int poll_checked(struct lane *lane, struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, max, wc);

	if (n < 0)
		die("ibv_poll_cq failed");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die("a %s ended with \"%s\"", cq == lane->scq ? "send" : "receive",
			    ibv_wc_status_str(wc[i].status));
	return n;
}

static int take_some(struct lane *lane, struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct idle idle = {0};

	for (;;) {
		int n = poll_checked(lane, cq, max, wc);
		if (n > 0)
			return n;
		if (!lane->events) {
			pair_idle(&idle);
			continue;
		}
		if (ibv_req_notify_cq(cq, 0))
			die("a CQ can't be armed");
		n = poll_checked(lane, cq, max, wc);
		if (n > 0)
			return n;
		sleep_on(cq);
	}
}

static void reap_one(struct lane *lane)
{
	struct ibv_wc wc;

	take_some(lane, lane->scq, 1, &wc);
	lane->done = wc.wr_id;
}

static void wait_for_credit(struct lane *lane)
{
	_Atomic uint64_t *posted = &lane->pair->sh->posted[!lane->pair->rank][lane->kind].value;
	struct idle idle = {0};

	for (;;) {
		lane->credit = atomic_load_explicit(posted, memory_order_acquire);
		if (lane->used != lane->credit)
			return;
		pair_idle(&idle);
	}
}

void lane_send(struct lane *lane, enum ibv_wr_opcode op, uint32_t len, bool last)
{
	struct ibv_send_wr *bad;

	while (lane->posted - lane->done >= lane->window)
		reap_one(lane);
	if (op == IBV_WR_SEND) {
		if (lane->used == lane->credit)
			wait_for_credit(lane);
		lane->used++;
	}
	lane->posted++;
	lane->wr.wr_id = lane->posted;
	lane->wr.opcode = op;
	lane->wr.send_flags = len <= lane->max_inline ? IBV_SEND_INLINE : 0;
	if (last || lane->posted - lane->signalled >= lane->signal_every) {
		lane->wr.send_flags |= IBV_SEND_SIGNALED;
		lane->signalled = lane->posted;
	}
	lane->sge.length = len;
	if (ibv_post_send(lane->qp, &lane->wr, &bad))
		die("ibv_post_send failed");
}

void lane_flush(struct lane *lane)
{
	while (lane->done != lane->signalled)
		reap_one(lane);
}

unsigned lane_take(struct lane *lane, unsigned max, bool wait)
{
	struct ibv_wc wc[LANE_BATCH];
	int n;

	if (max > LANE_BATCH)
		max = LANE_BATCH;
	n = wait ? take_some(lane, lane->rcq, (int)max, wc)
		 : poll_checked(lane, lane->rcq, (int)max, wc);
	lane->consumed += (unsigned)n;
	return (unsigned)n;
}

void lane_refill(struct lane *lane)
{
	struct ibv_recv_wr *bad;

	while (lane->consumed >= LANE_BATCH) {
		int rc = lane->srq ? ibv_post_srq_recv(lane->srq, lane->recv, &bad)
				   : ibv_post_recv(lane->qp, lane->recv, &bad);
		if (rc)
			die("receives can't be posted: %s", strerror(rc));
		lane->consumed -= LANE_BATCH;
		atomic_fetch_add_explicit(
			&lane->pair->sh->posted[lane->pair->rank][lane->kind].value, LANE_BATCH,
			memory_order_release);
	}
}
