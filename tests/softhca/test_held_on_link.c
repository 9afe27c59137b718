/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_held_on_link.c - a message that finds no receive takes the link only until its sender has
 * the NAK, and holds up nothing that is sent behind it. One adapter whose link to itself is a tenth
 * as fast as the others, in virtual time.
 */
#include "inside.h"

enum {
	LEN = 1 << 20,
	LATENCY_NS = 1000000,
	WHOLE_NS = LEN * 10, /* time of the whole message on the link, at 100 MB/s */
	PART_NS = WHOLE_NS / 4,
};

static uint64_t now(void)
{
	return atomic_load(&t_fab.hdr->clock.now);
}

/* Checks that at most a part of a message without a receive is on the link. */
static void test_port(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	uint64_t began, busy;

	t_inside_open();
	began = now();
	t_send(p.a, 1, t_sge(&p.ba, 0, LEN));
	busy = atomic_load(&t_fab.hdr->hcas[0].egress_free) - began;
	t_true(busy > 0 && busy < PART_NS, "the port is reserved for %llu ns",
	       (unsigned long long)busy);
	t_recv(p.b, 1, &in, 1);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_true(now() - began >= WHOLE_NS, "the message takes too little time");
	t_inside_close();
	t_pair_free(&p);
}

/* Checks that a message behind one without a receive doesn't wait for it. */
static void test_behind(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair held = t_pair(dev, NULL, NULL, LEN), next = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge in = t_sge(&held.bb, 0, LEN), in_next = t_sge(&next.bb, 0, LEN);
	uint64_t began, took;

	t_inside_open();
	t_recv(next.b, 2, &in_next, 1);
	began = now();
	t_send(held.a, 1, t_sge(&held.ba, 0, LEN));
	t_send(next.a, 2, t_sge(&next.ba, 0, LEN));
	t_next(next.b->rcq, 2, IBV_WC_SUCCESS);
	took = now() - began;
	t_true(took >= WHOLE_NS && took < WHOLE_NS + PART_NS + 2 * LATENCY_NS,
	       "the next message took %llu ns", (unsigned long long)took);
	t_next(next.a->scq, 2, IBV_WC_SUCCESS);
	t_recv(held.b, 1, &in, 1);
	t_next(held.b->rcq, 1, IBV_WC_SUCCESS);
	t_next(held.a->scq, 1, IBV_WC_SUCCESS);
	t_inside_close();
	t_pair_free(&held);
	t_pair_free(&next);
}

/* Checks that too where the port is busy when both are posted. */
static void test_behind_busy(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair first = t_pair(dev, NULL, NULL, LEN), held = t_pair(dev, NULL, NULL, LEN),
		      next = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge in = t_sge(&held.bb, 0, LEN), in_first = t_sge(&first.bb, 0, LEN),
		       in_next = t_sge(&next.bb, 0, LEN);
	uint64_t began, took;

	t_inside_open();
	t_recv(first.b, 1, &in_first, 1);
	t_recv(next.b, 3, &in_next, 1);
	began = now();
	t_send(first.a, 1, t_sge(&first.ba, 0, LEN));
	t_send(held.a, 2, t_sge(&held.ba, 0, LEN));
	t_send(next.a, 3, t_sge(&next.ba, 0, LEN));
	t_next(next.b->rcq, 3, IBV_WC_SUCCESS);
	took = now() - began;
	t_true(took >= 2 * WHOLE_NS && took < 2 * WHOLE_NS + PART_NS + 2 * LATENCY_NS,
	       "the last message took %llu ns", (unsigned long long)took);
	t_next(first.b->rcq, 1, IBV_WC_SUCCESS);
	t_next(first.a->scq, 1, IBV_WC_SUCCESS);
	t_next(next.a->scq, 3, IBV_WC_SUCCESS);
	t_recv(held.b, 2, &in, 1);
	t_next(held.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(held.a->scq, 2, IBV_WC_SUCCESS);
	t_inside_close();
	t_pair_free(&first);
	t_pair_free(&held);
	t_pair_free(&next);
}

/* Checks that a receive that is posted before the message arrives takes all of it. */
static void test_in_time(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	uint64_t began, took;

	t_inside_open();
	began = now();
	t_send(p.a, 1, t_sge(&p.ba, 0, LEN));
	t_recv(p.b, 1, &in, 1);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	took = now() - began;
	t_true(took >= WHOLE_NS && took < WHOLE_NS + PART_NS, "it took %llu ns",
	       (unsigned long long)took);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_inside_close();
	t_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_port, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_behind, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_behind_busy, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_in_time, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
