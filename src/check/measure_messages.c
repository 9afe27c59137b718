/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, polling and events, by messages of the adapter to itself. */
#include "measure.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

/* Readings of the clock, of which a sample is the mean. */
#define CLOCKS 100
/* How long an event may take. */
#define EVENT_MS 10000

/* Time after which a message without a receive has been refused, less than the least pause. */
#define REFUSED_US 5.0

/* Work requests, each with the next one behind it. */
struct sends {
	struct ibv_send_wr wr[END_SLOTS];
	struct ibv_sge sge;
};

static void fill_sends(const struct end *end, unsigned flags, struct sends *sends)
{
	sends->sge = (struct ibv_sge){(uintptr_t)end->out, MEASURE_MESSAGE, end->memory->lkey};
	for (unsigned i = 0; i < END_SLOTS; i++)
		sends->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < END_SLOTS ? &sends->wr[i + 1] : NULL,
			.sg_list = &sends->sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.qp_type.xrc.remote_srqn = end->srqn,
		};
}

static bool post_receives(struct end *end)
{
	for (unsigned i = 0; i < END_SLOTS; i++)
		if (!end_receive(end, i, END_SLOT, false))
			return false;
	return true;
}

/* Takes the completions of n messages and of their receives. */
static bool take(struct end *end, unsigned n)
{
	if (!end_wait_sent(end, n))
		return false;
	while (n--)
		if (!end_wait_received(end))
			return false;
	return true;
}

/* Posts the sends one by one; us: the mean of a post. */
static bool post_singly(struct end *end, unsigned flags, double *us)
{
	struct sends sends;
	struct ibv_send_wr *bad;
	double begin;
	int error = 0;

	if (!post_receives(end))
		return false;
	fill_sends(end, flags, &sends);
	for (unsigned i = 0; i < END_SLOTS; i++)
		sends.wr[i].next = NULL;
	begin = measure_now();
	for (unsigned i = 0; i < END_SLOTS && !error; i++)
		error = ibv_post_send(end->initiator, &sends.wr[i], &bad);
	*us = (measure_now() - begin) / END_SLOTS;
	return !error || end_fail(end, error, "ibv_post_send()");
}

bool measure_clock(struct end *end, size_t bytes, double *us)
{
	double begin = measure_now();

	(void)end;
	(void)bytes;
	for (unsigned i = 0; i < CLOCKS - 1; i++)
		measure_now();
	us[0] = (measure_now() - begin) / CLOCKS;
	return true;
}

bool measure_post(struct end *end, size_t bytes, double *us)
{
	(void)bytes;
	return post_singly(end, 0, us) && take(end, END_SLOTS);
}

bool measure_inline(struct end *end, size_t bytes, double *us)
{
	(void)bytes;
	if (end->max_inline < MEASURE_MESSAGE)
		return end_fail(end, 0, "no queue pair takes inline data");
	return post_singly(end, IBV_SEND_INLINE, us) && take(end, END_SLOTS);
}

bool measure_list(struct end *end, size_t bytes, double *us)
{
	struct sends sends;
	struct ibv_send_wr *bad;
	double begin;
	int error;

	(void)bytes;
	if (!post_receives(end))
		return false;
	fill_sends(end, 0, &sends);
	begin = measure_now();
	error = ibv_post_send(end->initiator, sends.wr, &bad);
	us[0] = (measure_now() - begin) / END_SLOTS;
	if (error)
		return end_fail(end, error, "ibv_post_send() of a list");
	return take(end, END_SLOTS);
}

/* Posts the list. The time of a message is from here until all have come. */
static bool stream(struct end *end, struct sends *sends, double *us)
{
	struct ibv_send_wr *bad;
	double begin = measure_now();
	int error = ibv_post_send(end->initiator, sends->wr, &bad);

	if (error)
		return end_fail(end, error, "ibv_post_send() of a list");
	if (!take(end, END_SLOTS))
		return false;
	us[0] = (measure_now() - begin) / END_SLOTS;
	return true;
}

/* All messages have the same memory, which holds one. */
bool measure_stream(struct end *end, size_t bytes, double *us)
{
	struct sends sends;

	for (unsigned i = 0; i < END_SLOTS; i++)
		if (!end_receive(end, 0, (uint32_t)bytes, false))
			return false;
	fill_sends(end, 0, &sends);
	sends.sge.length = (uint32_t)bytes;
	return stream(end, &sends, us);
}

/* An SRQ's receives are taken away by messages. */
bool measure_receive(struct end *end, size_t bytes, double *us)
{
	struct sends sends;
	struct ibv_send_wr *bad;
	double begin = measure_now();
	int error;

	(void)bytes;
	if (!post_receives(end))
		return false;
	us[0] = (measure_now() - begin) / END_SLOTS;
	fill_sends(end, 0, &sends);
	error = ibv_post_send(end->initiator, sends.wr, &bad);
	if (error)
		return end_fail(end, error, "ibv_post_send() of a list");
	return take(end, END_SLOTS);
}

/* The polls that find a completion are timed alone, and the clock is part of that. */
bool measure_poll(struct end *end, size_t bytes, double *us)
{
	struct ibv_wc wc;
	double begin, ignored, sum = 0;
	unsigned i, found = 0;

	(void)bytes;
	if (!post_singly(end, 0, &ignored))
		return false;
	/* When the last message has arrived, most sends are complete. */
	for (i = 0; i < END_SLOTS; i++)
		if (!end_poll(end, end->received, &wc))
			return false;
	while (found < END_SLOTS) {
		begin = measure_now();
		if (ibv_poll_cq(end->sent, 1, &wc) != 1) {
			if (!end_poll(end, end->sent, &wc))
				return false;
			begin = measure_now();
		}
		sum += measure_now() - begin;
		if (wc.status != IBV_WC_SUCCESS)
			return end_fail(end, 0, "a message failed: %s",
					ibv_wc_status_str(wc.status));
		found++;
	}
	us[0] = sum / END_SLOTS;
	begin = measure_now();
	for (i = 0; i < MEASURE_POLLS; i++)
		if (ibv_poll_cq(end->sent, 1, &wc))
			return end_fail(end, 0, "a completion came that nothing was posted for");
	us[1] = (measure_now() - begin) / MEASURE_POLLS;
	return true;
}

/* Waits for the event of the sends' CQ. */
static bool take_event(struct end *end)
{
	struct pollfd ready = {.fd = end->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&ready, 1, EVENT_MS) != 1)
		return end_fail(end, 0, "no event came within ten seconds");
	if (ibv_get_cq_event(end->channel, &cq, &context))
		return end_fail(end, errno, "ibv_get_cq_event()");
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Sends a message, and takes the time until the send is complete. */
static bool time_completion(struct end *end, const struct end_work *work, double *us)
{
	double begin;

	if (!end_receive(end, 0, END_SLOT, false))
		return false;
	begin = measure_now();
	if (!end_post(end, work) || !end_wait_sent(end, 1))
		return false;
	*us = measure_now() - begin;
	return end_wait_received(end);
}

bool measure_event(struct end *end, size_t bytes, double *us)
{
	const struct end_work work = {
		.opcode = IBV_WR_SEND, .len = MEASURE_MESSAGE, .srqn = end->srqn};
	double begin;
	int error;

	(void)bytes;
	if (!time_completion(end, &work, &us[2]) || !end_receive(end, 0, END_SLOT, false))
		return false;
	begin = measure_now();
	error = ibv_req_notify_cq(end->sent, 0);
	us[0] = measure_now() - begin;
	if (error)
		return end_fail(end, error, "ibv_req_notify_cq()");
	begin = measure_now();
	if (!end_post(end, &work) || !take_event(end))
		return false;
	us[1] = measure_now() - begin;
	return take(end, 1);
}

/* A message that finds no receive is sent again after the pause: posts its receive meanwhile, and
 * takes the time until the message has arrived. */
bool measure_pause(struct end *end, size_t bytes, double *us)
{
	const struct end_work work = {
		.opcode = IBV_WR_SEND, .len = MEASURE_MESSAGE, .srqn = end->srqn};
	double begin = measure_now();
	struct ibv_wc wc;

	(void)bytes;
	if (!end_post(end, &work))
		return false;
	while (measure_now() - begin < REFUSED_US)
		;
	if (!end_receive(end, 0, END_SLOT, false) || !end_poll(end, end->received, &wc))
		return false;
	us[0] = measure_now() - begin;
	return end_wait_sent(end, 1);
}

/* ---- many SRQs ---- */

/* The SRQs that messages go to, and the next one. */
struct crowd {
	struct ibv_srq **srq;
	uint32_t *srqn;
	unsigned n, next;
};

static struct crowd crowd;

void measure_crowd_end(void)
{
	while (crowd.n)
		ibv_destroy_srq(crowd.srq[--crowd.n]);
	free(crowd.srq);
	free(crowd.srqn);
	crowd = (struct crowd){0};
}

bool measure_crowd_begin(struct end *end, unsigned n)
{
	uint32_t depth = n < END_SLOTS ? END_SLOTS : 1;

	crowd.srq = calloc(n, sizeof(struct ibv_srq *));
	crowd.srqn = calloc(n, sizeof(uint32_t));
	if (!crowd.srq || !crowd.srqn)
		return end_fail(end, ENOMEM, "calloc()");
	for (; crowd.n < n; crowd.n++) {
		crowd.srq[crowd.n] = end_new_srq(end, depth, &crowd.srqn[crowd.n]);
		if (!crowd.srq[crowd.n])
			return false;
	}
	return true;
}

/* Sends a list of messages, each to the next SRQ, and takes the time until all have arrived; us:
 * for one. */
bool measure_crowd(struct end *end, size_t bytes, double *us)
{
	struct ibv_sge room = {(uintptr_t)end->in, END_SLOT, end->memory->lkey};
	struct ibv_recv_wr receive = {.sg_list = &room, .num_sge = 1}, *bad_receive;
	unsigned i, at = crowd.next;
	struct sends sends;
	int error = 0;

	(void)bytes;
	fill_sends(end, 0, &sends);
	for (i = 0; i < END_SLOTS && !error; i++) {
		error = ibv_post_srq_recv(crowd.srq[at], &receive, &bad_receive);
		sends.wr[i].qp_type.xrc.remote_srqn = crowd.srqn[at];
		at = (at + 1) % crowd.n;
	}
	if (error)
		return end_fail(end, error, "ibv_post_srq_recv()");
	crowd.next = at;
	return stream(end, &sends, us);
}
