/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hole.c - completions come past a slot whose producer was stopped, and a CQ forgets the hole
 * after its producer has died: then an empty poll takes no lock again.
 */
#include "hca/process.h"
#include "hca/queues/cq.h"
#include "inside.h"

enum {
	DEPTH = 7,
	SLOTS = 8,
	ROUNDS = 3,
	LEN = 64,
};

/* Tag of a process that has its slot no more. */
static unsigned dead_tag(void)
{
	return SHCA_TAG(t_slot, atomic_load(&t_proc->state)) ^ 0x8000;
}

static bool is_holed(const struct ibv_cq *cq)
{
	return ((const struct shca_cq *)(const void *)cq)->holed;
}

/* Claims the next slot of a CQ as a producer that runs and was stopped. Returns its position. */
static uint64_t stop_in_slot(const struct ibv_cq *cq)
{
	uint64_t pos = atomic_fetch_add(&t_cq_ring(cq)->tail, 1);
	unsigned tag = SHCA_TAG(t_slot, atomic_load(&t_proc->state));

	atomic_store(&t_cq_slot(cq, pos)->word, SHCA_SLOT_WORD(pos, tag, SHCA_SLOT_CLAIMED));
	return pos;
}

static void die_in_slot(const struct ibv_cq *cq, uint64_t pos)
{
	atomic_store(&t_cq_slot(cq, pos)->word, SHCA_SLOT_WORD(pos, dead_tag(), SHCA_SLOT_CLAIMED));
}

/* Sends n messages, one after the other. */
static void messages(struct t_pair *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge in = t_sge(&p->bb, 0, LEN);

		t_recv(p->b, i, &in, 1);
		t_send(p->a, i, t_sge(&p->ba, 0, LEN));
		t_next(p->a->scq, i, IBV_WC_SUCCESS);
		t_next(p->b->rcq, i, IBV_WC_SUCCESS);
	}
	t_empty(p->b->rcq);
}

/* Has a producer stop, lets n messages pass, and has the producer die. */
static void hole_for(struct t_dev *dev, unsigned n)
{
	struct t_spec spec = {.rcq = ibv_create_cq(dev->ctx, DEPTH, NULL, NULL, 0)};
	struct t_pair p;
	uint64_t pos;

	t_true(spec.rcq, "ibv_create_cq: %s", strerror(errno));
	p = t_pair(dev, &spec, NULL, LEN);
	for (unsigned round = 0; round < ROUNDS; round++) {
		messages(&p, round);
		t_holds(!is_holed(spec.rcq));
		pos = stop_in_slot(spec.rcq);
		messages(&p, n);
		t_holds(is_holed(spec.rcq));
		die_in_slot(spec.rcq, pos);
		t_empty(spec.rcq);
		messages(&p, 2 * SLOTS);
		t_holds(!is_holed(spec.rcq));
	}
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(spec.rcq));
}

/* Checks a hole that is closed in its round. */
static void test_short(void **state)
{
	hole_for(*state, 1);
}

/* Checks holes that producers pass over: once, and several times. */
static void test_long(void **state)
{
	hole_for(*state, SLOTS);
	hole_for(*state, 5 * SLOTS);
}

static int setup(void **state)
{
	int rc = t_setup(state);

	if (!rc)
		t_inside_open();
	return rc;
}

static int teardown(void **state)
{
	t_inside_close();
	return t_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
