/* SPDX-License-Identifier: BSD-3-Clause */
#include "prices.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "end.h"

/* Samples of a price, and the time after which no more are taken. */
#define SAMPLES     201u
#define SAMPLES_MIN 5u
#define BUDGET_US   200e3

/* Bytes of the messages that are posted. */
#define MESSAGE 8u
/* Polls of an empty CQ, of which a sample is the mean. */
#define POLLS 100
/* How long an event may take. */
#define EVENT_MS 10000

/* The prices that a measurement finds out together. */
#define TOGETHER 3

struct price {
	const char *name[TOGETHER];
	/* Measures once, in microseconds. Returns false with a sentence in the end. */
	bool (*measure)(struct end *end, size_t bytes, double *us);
	size_t bytes;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- making and destroying ---- */

static bool measure_srq(struct end *end, size_t bytes, double *us)
{
	double begin;
	int error;

	(void)bytes;
	begin = now_us();
	error = ibv_destroy_srq(end->srq);
	us[1] = now_us() - begin;
	end->srq = NULL;
	if (error)
		return end_fail(end, error, "ibv_destroy_srq()");
	begin = now_us();
	if (!end_make_srq(end))
		return false;
	us[0] = now_us() - begin;
	return true;
}

/* Destroys a queue pair, and takes the time. */
static bool destroy_qp(struct end *end, struct ibv_qp *qp, double *us)
{
	double begin = now_us();
	int error = ibv_destroy_qp(qp);

	*us = now_us() - begin;
	return !error || end_fail(end, error, "ibv_destroy_qp()");
}

static bool measure_qp(struct end *end, size_t bytes, double *us)
{
	double begin = now_us();
	struct ibv_qp *qp = end_make_initiator(end);

	(void)bytes;
	us[0] = now_us() - begin;
	if (!qp)
		return end_fail(end, errno, "ibv_create_qp_ex()");
	return destroy_qp(end, qp, &us[1]);
}

static bool measure_open(struct end *end, size_t bytes, double *us)
{
	struct ibv_qp *made = end->target, *opened;
	double begin = now_us();

	(void)bytes;
	if (!end_open_target(end, made->qp_num)) {
		end->target = made;
		return false;
	}
	us[0] = now_us() - begin;
	opened = end->target;
	end->target = made;
	return destroy_qp(end, opened, &us[1]);
}

static bool measure_modify(struct end *end, size_t bytes, double *us)
{
	struct ibv_qp *qp = end_make_initiator(end);
	double begin;
	int error;

	(void)bytes;
	if (!qp)
		return end_fail(end, errno, "ibv_create_qp_ex()");
	begin = now_us();
	error = end_to_init(end, qp);
	us[0] = now_us() - begin;
	begin = now_us();
	if (!error)
		error = end_to_rtr(end, qp, end->target->qp_num);
	us[1] = now_us() - begin;
	begin = now_us();
	if (!error)
		error = end_to_rts(end, qp);
	us[2] = now_us() - begin;
	ibv_destroy_qp(qp);
	return !error || end_fail(end, error, "ibv_modify_qp()");
}

/* The memory is touched before, as that of a program that sends it is. */
static bool measure_registration(struct end *end, size_t bytes, double *us)
{
	int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, error;
	double begin;
	struct ibv_mr *mr;
	void *memory;

	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return end_fail(end, errno, "mmap()");
	begin = now_us();
	mr = ibv_reg_mr(end->pd, memory, bytes, rights);
	error = errno;
	us[0] = now_us() - begin;
	if (!mr) {
		munmap(memory, bytes);
		return end_fail(end, error, "ibv_reg_mr()");
	}
	begin = now_us();
	error = ibv_dereg_mr(mr);
	us[1] = now_us() - begin;
	munmap(memory, bytes);
	return !error || end_fail(end, error, "ibv_dereg_mr()");
}

/* ---- messages ---- */

/* Work requests, each with the next one behind it. */
struct sends {
	struct ibv_send_wr wr[END_SLOTS];
	struct ibv_sge sge;
};

static void fill_sends(const struct end *end, unsigned flags, struct sends *sends)
{
	sends->sge = (struct ibv_sge){(uintptr_t)end->out, MESSAGE, end->memory->lkey};
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
	struct ibv_wc wc;

	if (!end_wait_sent(end, n))
		return false;
	while (n--) {
		if (!end_poll(end, end->received, &wc))
			return false;
		if (wc.status != IBV_WC_SUCCESS)
			return end_fail(end, 0, "a receive failed: %s",
					ibv_wc_status_str(wc.status));
	}
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
	begin = now_us();
	for (unsigned i = 0; i < END_SLOTS && !error; i++)
		error = ibv_post_send(end->initiator, &sends.wr[i], &bad);
	*us = (now_us() - begin) / END_SLOTS;
	return !error || end_fail(end, error, "ibv_post_send()");
}

static bool measure_post(struct end *end, size_t bytes, double *us)
{
	(void)bytes;
	return post_singly(end, 0, us) && take(end, END_SLOTS);
}

static bool measure_inline(struct end *end, size_t bytes, double *us)
{
	(void)bytes;
	if (end->max_inline < MESSAGE)
		return end_fail(end, 0, "no queue pair takes inline data");
	return post_singly(end, IBV_SEND_INLINE, us) && take(end, END_SLOTS);
}

static bool measure_list(struct end *end, size_t bytes, double *us)
{
	struct sends sends;
	struct ibv_send_wr *bad;
	double begin;
	int error;

	(void)bytes;
	if (!post_receives(end))
		return false;
	fill_sends(end, 0, &sends);
	begin = now_us();
	error = ibv_post_send(end->initiator, sends.wr, &bad);
	us[0] = (now_us() - begin) / END_SLOTS;
	if (error)
		return end_fail(end, error, "ibv_post_send() of a list");
	return take(end, END_SLOTS);
}

/* An SRQ's receives are taken away by messages. */
static bool measure_receive(struct end *end, size_t bytes, double *us)
{
	struct sends sends;
	struct ibv_send_wr *bad;
	double begin = now_us();
	int error;

	(void)bytes;
	if (!post_receives(end))
		return false;
	us[0] = (now_us() - begin) / END_SLOTS;
	fill_sends(end, 0, &sends);
	error = ibv_post_send(end->initiator, sends.wr, &bad);
	if (error)
		return end_fail(end, error, "ibv_post_send() of a list");
	return take(end, END_SLOTS);
}

/* The polls that find a completion are timed alone, and the clock is part of that. */
static bool measure_poll(struct end *end, size_t bytes, double *us)
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
		begin = now_us();
		if (ibv_poll_cq(end->sent, 1, &wc) != 1) {
			if (!end_poll(end, end->sent, &wc))
				return false;
			begin = now_us();
		}
		sum += now_us() - begin;
		if (wc.status != IBV_WC_SUCCESS)
			return end_fail(end, 0, "a message failed: %s",
					ibv_wc_status_str(wc.status));
		found++;
	}
	us[0] = sum / END_SLOTS;
	begin = now_us();
	for (i = 0; i < POLLS; i++)
		if (ibv_poll_cq(end->sent, 1, &wc))
			return end_fail(end, 0, "a completion came that nothing was posted for");
	us[1] = (now_us() - begin) / POLLS;
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

static bool measure_event(struct end *end, size_t bytes, double *us)
{
	const struct end_work work = {.opcode = IBV_WR_SEND, .len = MESSAGE, .srqn = end->srqn};
	double begin;
	int error;

	(void)bytes;
	if (!end_receive(end, 0, END_SLOT, false))
		return false;
	begin = now_us();
	error = ibv_req_notify_cq(end->sent, 0);
	us[0] = now_us() - begin;
	if (error)
		return end_fail(end, error, "ibv_req_notify_cq()");
	begin = now_us();
	if (!end_post(end, &work) || !take_event(end))
		return false;
	us[1] = now_us() - begin;
	return take(end, 1);
}

/* ---- all of them ---- */

#define REGISTRATION(n)                                                     \
	{                                                                   \
		{"ibv_reg_mr()", "ibv_dereg_mr()"}, measure_registration, n \
	}

static const struct price prices[] = {
	{{"create an SRQ", "destroy an SRQ"}, measure_srq, 0},
	{{"create a QP", "destroy a QP"}, measure_qp, 0},
	{{"ibv_open_qp()", "close an opened QP"}, measure_open, 0},
	{{"a QP to INIT", "a QP to RTR", "a QP to RTS"}, measure_modify, 0},
	REGISTRATION(4096),
	REGISTRATION(65536),
	REGISTRATION(1048576),
	REGISTRATION(16777216),
	{{"post a send"}, measure_post, MESSAGE},
	{{"post a send inline"}, measure_inline, MESSAGE},
	{{"post 16 sends as a list, each"}, measure_list, MESSAGE},
	{{"post a receive to an SRQ"}, measure_receive, END_SLOT},
	{{"poll, a hit", "poll, a miss"}, measure_poll, 0},
	{{"arm a CQ", "post until event"}, measure_event, 0},
};
#define PRICES (sizeof(prices) / sizeof(prices[0]))

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Takes the samples. Returns how many; 0: the first one failed. */
static unsigned sample(struct end *end, const struct price *price,
		       double samples[TOGETHER][SAMPLES])
{
	double us[TOGETHER] = {0}, begin = now_us();
	unsigned n;

	for (n = 0; n < SAMPLES && (n < SAMPLES_MIN || now_us() - begin < BUDGET_US); n++) {
		if (!price->measure(end, price->bytes, us))
			return 0;
		for (unsigned i = 0; i < TOGETHER; i++)
			samples[i][n] = us[i];
	}
	return n;
}

/* Measures with objects of its own, so that a failure has no consequences. */
static void report_one(struct report *report, const struct port *port, const struct price *price)
{
	static double samples[TOGETHER][SAMPLES];
	struct report_spread spread;
	struct end end;
	unsigned n = 0;

	if (end_open(&end, port, -1) && end_connect(&end))
		n = sample(&end, price, samples);
	for (unsigned i = 0; i < TOGETHER && price->name[i]; i++) {
		if (!n) {
			report_no_price(report, price->name[i], price->bytes, end.why);
			continue;
		}
		qsort(samples[i], n, sizeof(samples[i][0]), compare);
		spread = (struct report_spread){
			.median = samples[i][n / 2],
			.q1 = samples[i][n / 4],
			.q3 = samples[i][n - 1 - n / 4],
			.samples = n,
		};
		report_price(report, price->name[i], price->bytes, &spread);
	}
	end_close(&end);
}

void prices_report(struct report *report, const struct port *port)
{
	report_prices(report);
	for (size_t i = 0; i < PRICES; i++)
		report_one(report, port, &prices[i]);
}
