/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bounce.c - messages that travel with their completion through bounce buffers: more messages
 * than a CQ has buffers for, and buffers that are free again however a completion leaves the queue.
 */
#include "util.h"

enum {
	LEN = 1000,
	MANY = 300,    /* more than BOUNCES */
	BOUNCES = 128, /* bounce buffers of a CQ */
};

/* A connection whose receiver b takes message i at i * LEN, into a CQ that holds them all. */
struct side {
	struct ibv_cq *cq;
	struct t_pair p;
};

static struct side open_side(struct t_dev *dev, int cq_depth)
{
	struct t_spec s = {.cap = {MANY, MANY, 1, 1, 0}, .cq_depth = MANY};
	struct side side = {.cq = ibv_create_cq(dev->ctx, cq_depth, NULL, NULL, 0)};

	t_true(side.cq, "ibv_create_cq: %s", strerror(errno));
	s.rcq = side.cq;
	side.p = t_pair(dev, &s, NULL, MANY * LEN);
	return side;
}

static void close_side(struct side *side)
{
	t_pair_free(&side->p);
	t_ok(ibv_destroy_cq(side->cq));
}

/* Sends message i from a to b, and waits until it is in b's queue. */
static void send_message(struct side *side, unsigned i)
{
	struct ibv_sge in = t_sge(&side->p.bb, i * LEN, LEN);

	t_fill(side->p.ba.addr, LEN, i);
	memset(side->p.bb.addr + i * LEN, 0, LEN);
	t_recv(side->p.b, i, &in, 1);
	t_send(side->p.a, i, t_sge(&side->p.ba, 0, LEN));
	t_next(side->p.a->scq, i, IBV_WC_SUCCESS);
}

static void poll_them(struct side *side, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		t_eq(t_next(side->cq, i, IBV_WC_SUCCESS).byte_len, LEN);
		t_check(side->p.bb.addr + i * LEN, LEN, i);
	}
}

/* Returns how many of the first n messages are still in bounce buffers, not in their receives. */
static unsigned waiting(const struct side *side, unsigned n)
{
	unsigned w = 0;

	for (unsigned i = 0; i < n; i++) {
		char last[LEN];

		t_fill(last, LEN, i);
		w += memcmp(side->p.bb.addr + i * LEN, last, LEN) != 0;
	}
	return w;
}

/* Fills all buffers of the CQ with n messages, which proves that all were free. */
static void all_free(struct side *side, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		send_message(side, i);
	t_eq(waiting(side, n), n);
	poll_them(side, 0, n);
}

/* Checks that messages without a buffer go to their receives at once. */
static void test_full(void **state)
{
	struct side s = open_side(*state, MANY);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < MANY; i++)
			send_message(&s, i);
		t_eq(waiting(&s, MANY), BOUNCES);
		poll_them(&s, 0, MANY);
	}
	t_none(s.cq, 1);
	close_side(&s);
}

/* Checks that 4 KiB with a header of 128 bytes travel with their completion by default, and that a
 * message of one byte more is in its receive at once. */
static void test_with_header(void **state)
{
	enum { MOST = 4096 + 128 };
	struct t_pair p = t_pair(*state, NULL, NULL, MOST + 1);

	for (size_t len = MOST; len <= MOST + 1; len++) {
		struct ibv_sge in = t_sge(&p.bb, 0, len);

		t_fill(p.ba.addr, len, (unsigned)len);
		memset(p.bb.addr, 0, len);
		t_recv(p.b, len, &in, 1);
		t_send(p.a, len, t_sge(&p.ba, 0, len));
		t_next(p.a->scq, len, IBV_WC_SUCCESS);
		if (len == MOST)
			t_check_byte(p.bb.addr, len, 0);
		else
			t_check(p.bb.addr, len, (unsigned)len);
		t_next(p.b->rcq, len, IBV_WC_SUCCESS);
		t_check(p.bb.addr, len, (unsigned)len);
	}
	t_pair_free(&p);
}

/* Checks that buffers of completions are freed with their QP. */
static void test_purged(void **state)
{
	struct t_dev *dev = *state;
	struct side s = open_side(dev, MANY);
	struct t_spec other = {.cap = {MANY, MANY, 1, 1, 0}, .cq_depth = MANY, .rcq = s.cq};

	for (unsigned i = 0; i < BOUNCES; i++)
		send_message(&s, i);
	t_pair_free(&s.p);
	t_none(s.cq, 1);
	s.p = t_pair(dev, &other, NULL, MANY * LEN);
	all_free(&s, BOUNCES);
	close_side(&s);
}

/* Checks that a resize takes the messages along, and that their buffers are free afterwards. */
static void test_resized(void **state)
{
	struct side s = open_side(*state, BOUNCES);

	for (unsigned i = 0; i < BOUNCES; i++)
		send_message(&s, i);
	t_ok(ibv_resize_cq(s.cq, MANY));
	for (unsigned i = BOUNCES; i < MANY; i++)
		send_message(&s, i);
	t_eq(waiting(&s, MANY), 2 * BOUNCES);
	poll_them(&s, 0, MANY);
	close_side(&s);
}

/* Checks that the deregistration of any memory puts all waiting messages into their receives, and
 * that their buffers are free afterwards. */
static void test_deregistered(void **state)
{
	struct t_dev *dev = *state;
	struct side s = open_side(dev, MANY);
	struct ibv_mr *mr;

	for (unsigned i = 0; i < BOUNCES; i++)
		send_message(&s, i);
	mr = ibv_reg_mr(dev->pd, s.p.ba.addr, LEN, 0);
	t_true(mr, "ibv_reg_mr: %s", strerror(errno));
	t_ok(ibv_dereg_mr(mr));
	t_eq(waiting(&s, BOUNCES), 0);
	poll_them(&s, 0, BOUNCES);
	all_free(&s, BOUNCES);
	close_side(&s);
}

/* Checks that a CQ of three completions has buffers for three messages. */
static void test_few(void **state)
{
	struct side s = open_side(*state, 3);

	for (unsigned round = 0; round < 5; round++)
		all_free(&s, 3);
	close_side(&s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_full),    TEST(test_with_header),  TEST(test_purged),
		TEST(test_resized), TEST(test_deregistered), TEST(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
