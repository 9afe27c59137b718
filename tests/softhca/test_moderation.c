/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_moderation.c [real] - completion events that moderation holds back until a number of
 * completions have come since the last event, or a period has passed since then. Needs virtual
 * time; with the argument the tests that real time allows.
 */
#include "util.h"

#define PERIOD 4000u /* us */
#define NS     1000u

static struct t_dev *dev;

/* A CQ on a channel, and a QP that receives into it. */
struct end {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct t_pair pair;
	struct ibv_sge to;
	uint64_t sent;
	uint64_t polled;
};

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static struct end open_end(int depth)
{
	struct end e = {.ch = ibv_create_comp_channel(dev->ctx)};
	struct t_spec spec = {0};

	t_true(e.ch, "ibv_create_comp_channel: %s", strerror(errno));
	e.cq = ibv_create_cq(dev->ctx, depth, NULL, e.ch, 0);
	t_true(e.cq, "ibv_create_cq: %s", strerror(errno));
	spec.rcq = e.cq;
	e.pair = t_pair(dev, &spec, NULL, 4096);
	e.to = t_sge(&e.pair.bb, 0, 8);
	return e;
}

static void close_end(struct end *end)
{
	t_pair_free(&end->pair);
	t_ok(ibv_destroy_cq(end->cq));
	t_ok(ibv_destroy_comp_channel(end->ch));
}

static void moderate(struct end *end, unsigned count, unsigned period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = (uint16_t)count, .cq_period = (uint16_t)period}};

	t_ok(ibv_modify_cq(end->cq, &attr));
}

/* Lets n more completions come, and waits until they are there. */
static void receive(struct end *end, unsigned n, unsigned flags)
{
	struct ibv_sge from = t_sge(&end->pair.ba, 0, 8);

	while (n--) {
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, ++end->sent, &from, 1);

		wr.send_flags |= flags;
		t_recv(end->pair.b, end->sent, &end->to, 1);
		t_post(end->pair.a, &wr);
		t_next(end->pair.a->scq, end->sent, IBV_WC_SUCCESS);
	}
}

static void poll_all(struct end *end)
{
	while (end->polled < end->sent)
		t_next(end->cq, ++end->polled, IBV_WC_SUCCESS);
}

static void arm(struct end *end, int solicited_only)
{
	t_ok(ibv_req_notify_cq(end->cq, solicited_only));
}

/* Waits for the event, and returns the time at which it came. */
static uint64_t event(struct end *end)
{
	struct ibv_cq *cq;
	uint64_t at;
	void *context;

	t_true(t_readable(end->ch->fd, T_DEADLINE_MS), "no completion event came");
	at = t_now();
	t_ok(ibv_get_cq_event(end->ch, &cq, &context));
	t_true(cq == end->cq, "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
	return at;
}

static void no_event(struct end *end)
{
	t_true(!t_readable(end->ch->fd, 0), "an event came early");
}

static void event_now(struct end *end)
{
	t_true(t_readable(end->ch->fd, 0), "the event is held back");
	event(end);
}

/* Counts: completions of before the arming count, too, and those of before the last event don't. */
static void test_count(void **state)
{
	struct end e = open_end(32);
	uint64_t since;

	(void)state;
	moderate(&e, 4, PERIOD);
	since = t_now();
	arm(&e, 0);
	receive(&e, 3, 0);
	no_event(&e);
	receive(&e, 1, 0);
	event_now(&e);
	receive(&e, 3, 0);
	poll_all(&e);
	arm(&e, 0);
	no_event(&e);
	receive(&e, 1, 0);
	event_now(&e);
	poll_all(&e);
	arm(&e, 0);
	receive(&e, 3, 0);
	no_event(&e);
	/* Armed twice is armed once. */
	arm(&e, 0);
	receive(&e, 1, 0);
	event_now(&e);
	receive(&e, 5, 0);
	no_event(&e);
	t_true(t_now() - since < PERIOD * NS, "the test took a whole period");
	close_end(&e);
}

/* The first period begins with the moderation, the others with the last event. */
static void test_period(void **state)
{
	struct end e = open_end(32);
	uint64_t last, at;

	(void)state;
	moderate(&e, 100, PERIOD);
	last = t_now();
	arm(&e, 0);
	receive(&e, 1, 0);
	no_event(&e);
	at = event(&e);
	t_eq(at - last, PERIOD * NS);
	for (unsigned i = 0; i < 3; i++) {
		last = at;
		poll_all(&e);
		arm(&e, 0);
		receive(&e, 2, 0);
		/* Polled or not, the completions have made the event. */
		if (i == 1)
			poll_all(&e);
		at = event(&e);
		t_eq(at - last, PERIOD * NS);
	}
	/* The period has passed: nothing is held back. */
	t_true(!t_readable(e.ch->fd, 5), "an event without a completion");
	poll_all(&e);
	arm(&e, 0);
	receive(&e, 1, 0);
	event_now(&e);
	close_end(&e);
}

/* New values apply to an event that is held back already. */
static void test_modify_held(void **state)
{
	struct end e = open_end(32);
	uint64_t last;

	(void)state;
	moderate(&e, 100, PERIOD);
	arm(&e, 0);
	receive(&e, 3, 0);
	no_event(&e);
	moderate(&e, 4, PERIOD);
	no_event(&e);
	moderate(&e, 3, PERIOD);
	event_now(&e);
	poll_all(&e);
	/* A shorter period; then a longer one. */
	arm(&e, 0);
	receive(&e, 1, 0);
	last = event(&e);
	poll_all(&e);
	arm(&e, 0);
	receive(&e, 1, 0);
	moderate(&e, 100, 1000);
	no_event(&e);
	last += 1000 * NS;
	t_eq(event(&e), last);
	poll_all(&e);
	arm(&e, 0);
	receive(&e, 1, 0);
	moderate(&e, 100, 2000);
	last += 2000 * NS;
	t_eq(event(&e), last);
	poll_all(&e);
	/* 0 of either turns it off. */
	for (unsigned i = 0; i < 3; i++) {
		arm(&e, 0);
		receive(&e, 1, 0);
		no_event(&e);
		moderate(&e, i & 1 ? 100 : 0, i & 2 ? 100 : 0);
		event_now(&e);
		poll_all(&e);
		arm(&e, 0);
		receive(&e, 1, 0);
		event_now(&e);
		poll_all(&e);
		moderate(&e, 100, PERIOD);
	}
	close_end(&e);
}

/* A completion that isn't solicited counts, but makes no event; an error is like a solicited one.
 */
static void test_solicited(void **state)
{
	struct end e = open_end(32);
	uint64_t last;

	(void)state;
	moderate(&e, 4, PERIOD);
	arm(&e, 1);
	receive(&e, 5, 0);
	no_event(&e);
	receive(&e, 1, IBV_SEND_SOLICITED);
	event_now(&e);
	poll_all(&e);
	arm(&e, 1);
	receive(&e, 1, IBV_SEND_SOLICITED);
	no_event(&e);
	last = event(&e);
	poll_all(&e);
	arm(&e, 1);
	t_recv(e.pair.b, ++e.sent, &e.to, 1);
	t_ok(t_to_state(e.pair.b, IBV_QPS_ERR));
	no_event(&e);
	t_eq(event(&e), last + PERIOD * NS);
	t_next(e.cq, e.sent, IBV_WC_WR_FLUSH_ERR);
	close_end(&e);
}

/* Asynchronous events are never held back, those of the same CQ neither. */
static void test_async(void **state)
{
	struct end e = open_end(1);
	struct ibv_async_event ev;

	(void)state;
	moderate(&e, 100, PERIOD);
	arm(&e, 0);
	receive(&e, 1, 0);
	no_event(&e);
	do {
		struct ibv_sge from = t_sge(&e.pair.ba, 0, 8);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 9, &from, 1);

		t_recv(e.pair.b, 9, &e.to, 1);
		t_post(e.pair.a, &wr);
		t_true(t_readable(dev->ctx->async_fd, 1), "the asynchronous event is late");
		ev = t_event(dev->ctx);
	} while (ev.event_type == IBV_EVENT_COMM_EST);
	t_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	t_true(ev.element.cq == e.cq, "an event of another CQ");
	no_event(&e);
	t_drain_events(dev->ctx);
	close_end(&e);
}

/* An event that is held back ends with its CQ, whose entry another one takes. */
static void test_destroyed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct end e = open_end(32);

		moderate(&e, 100, 100);
		arm(&e, 0);
		receive(&e, 1, 0);
		close_end(&e);
		e = open_end(32);
		arm(&e, 0);
		t_true(!t_readable(e.ch->fd, 1), "the event of a CQ that is gone");
		close_end(&e);
	}
}

/* In real time an event may be late for other reasons, but not early, and a count that was reached
 * doesn't wait for the period. */
static void test_real(void **state)
{
	struct end e = open_end(32);
	unsigned early = 0;

	(void)state;
	moderate(&e, 100, PERIOD);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t last = t_now();

		moderate(&e, 0, 0);
		moderate(&e, 100, PERIOD);
		arm(&e, 0);
		receive(&e, 1, 0);
		t_true(event(&e) - last >= PERIOD * NS, "an event came early");
		poll_all(&e);
	}
	for (unsigned i = 0; i < 20; i++) {
		uint64_t last = t_now();

		moderate(&e, 0, 0);
		moderate(&e, 2, PERIOD);
		arm(&e, 0);
		receive(&e, 2, 0);
		early += event(&e) - last < PERIOD * NS;
		poll_all(&e);
	}
	t_true(early, "each event waited for the period");
	close_end(&e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),       cmocka_unit_test(test_period),
		cmocka_unit_test(test_modify_held), cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_async),       cmocka_unit_test(test_destroyed),
	};
	const struct CMUnitTest real_tests[] = {
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_destroyed),
	};

	return argc > 1 && !strcmp(argv[1], "real")
		       ? cmocka_run_group_tests_name("moderation", real_tests, setup, t_teardown)
		       : cmocka_run_group_tests_name("moderation", tests, setup, t_teardown);
}
