/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_garbage.c - values that other processes may have written wrongly into shared memory are used
 * as bounded values: nothing beyond their place is read or written, and work goes on.
 */
#include <sched.h>

#include "fabric/proc.h"
#include "hca/process.h"
#include "inside.h"

enum {
	FAR = 0x10000000, /* a WQE slot in no mapping */
	LEN = 64 << 10,
	UNTOUCHED = 0x5a,
	MANY_SGES = 40,         /* more than a message may have */
	COPY_BYTES = 256 << 10, /* of a bounce buffer of peer_copy.c */
};

static struct t_pair pair_of(struct t_dev *dev, enum ibv_qp_type type)
{
	struct t_spec spec = {.type = type};
	struct t_pair p = t_pair(dev, &spec, NULL, 2 * LEN);

	memset(p.bb.addr, UNTOUCHED, p.bb.len);
	return p;
}

/* Sends `len` bytes from a to a receive of LEN bytes of b, and returns b's completion, which was
 * not polled. */
static struct shca_cqe *deliver(struct t_pair *p, size_t len)
{
	struct ibv_sge in = t_sge(&p->bb, 0, LEN);

	t_fill(p->ba.addr, len, 1);
	t_recv(p->b, 1, &in, 1);
	t_send(p->a, 1, t_sge(&p->ba, 0, len));
	t_next(p->a->scq, 1, IBV_WC_SUCCESS);
	return t_cq_newest(p->b->rcq);
}

/* Returns how many bytes of a message the slot of a completion can hold. */
static size_t slot_room(const struct ibv_cq *cq)
{
	return t_cq_entry(cq)->stride - offsetof(struct shca_cqe, data);
}

/* Checks that more messages than a queue has slots go from a to b. */
static void goes_on(struct t_pair *p)
{
	for (unsigned i = 0; i < 3 * p->a->cap.max_send_wr; i++) {
		struct ibv_sge in = t_sge(&p->bb, 0, LEN);

		t_fill(p->ba.addr, 100, i);
		t_recv(p->b, i, &in, 1);
		t_send(p->a, i, t_sge(&p->ba, 0, 100));
		t_next(p->a->scq, i, IBV_WC_SUCCESS);
		t_next(p->b->rcq, i, IBV_WC_SUCCESS);
		t_check(p->bb.addr, 100, i);
	}
}

/* Checks that a message in its completion is no longer than the slot. */
static void test_payload(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_RC);
	struct shca_cqe *cqe = deliver(&p, 100);
	size_t room = slot_room(p.b->rcq);

	t_eq(cqe->payload, 100);
	cqe->payload = UINT16_MAX;
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_check(p.bb.addr, 100, 1);
	t_check_byte(p.bb.addr + room, p.bb.len - room, UNTOUCHED);
	goes_on(&p);
	t_pair_free(&p);
}

/* Checks that a bounce buffer is one of the CQ's. */
static void test_bounce(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_RC);
	struct shca_cqe *cqe = deliver(&p, 1000);
	size_t room = slot_room(p.b->rcq);

	t_holds(cqe->bounce);
	cqe->bounce = UINT16_MAX;
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_check_byte(p.bb.addr + room, p.bb.len - room, UNTOUCHED);
	goes_on(&p);
	t_pair_free(&p);
}

/* Checks that a polled receive is one of the queue's. */
static void test_receive(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_RC);

	deliver(&p, 100)->wqe |= FAR;
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_check(p.bb.addr, 100, 1);
	goes_on(&p);
	t_pair_free(&p);
}

/* Checks that a completion of a send that isn't outstanding is an error, and leaves the queue as it
 * is. */
static void test_send(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_RC);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	uint64_t began = t_now();
	struct ibv_wc wc;
	int rc;

	t_recv(p.b, 1, &in, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 100));
	t_cq_newest(p.a->scq)->wqe += FAR;
	while (!(rc = ibv_poll_cq(p.a->scq, 1, &wc))) /* until it may be seen, on a link */
		t_true(t_ms_since(began) < T_DEADLINE_MS, "no completion came");
	t_true(rc < 0, "the poll returned %d", rc);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	goes_on(&p);
	t_pair_free(&p);
}

/* Checks that completions that aren't polled but dropped, or delivered with their memory, are
 * bounded, too. */
static void test_unpolled(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = pair_of(dev, IBV_QPT_RC);
	size_t room = slot_room(p.b->rcq);
	struct shca_cqe *cqe = deliver(&p, 100);
	struct t_buf other = t_buf(dev, 4096);

	cqe->payload = UINT16_MAX;
	cqe->wqe |= FAR;
	t_buf_free(&other); /* delivers what waits in completions */
	t_check(p.bb.addr, 100, 1);
	t_check_byte(p.bb.addr + room, p.bb.len - room, UNTOUCHED);
	deliver(&p, 1000)->bounce = UINT16_MAX;
	t_pair_free(&p);
}

/* Checks that a receive has no more entries than a message may have. */
static void test_entries(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_RC);
	struct ibv_sge in = t_sge(&p.bb, 0, 1);
	struct shca_rwqe *wqe = t_rwqe(p.b, 0);

	t_recv(p.b, 1, &in, 1);
	t_qp_entry(p.b)->rq.max_sge = UINT32_MAX;
	wqe->num_sge = UINT32_MAX;
	for (unsigned i = 0; i < MANY_SGES; i++)
		wqe->sge[i] = t_sge(&p.bb, i, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, MANY_SGES));
	t_next(p.a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_next(p.b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	t_pair_free(&p);
}

/* Checks that the receive of a message that was lost half-way is one of the queue's. */
static void test_held(void **state)
{
	struct t_pair p = pair_of(*state, IBV_QPT_UC);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	struct shca_qp_entry *entry = t_qp_entry(p.b);

	t_fill(p.ba.addr, 100, 1);
	t_recv(p.b, 1, &in, 1); /* in slot 0 */
	atomic_store(&entry->inflight_wqe, FAR);
	atomic_store(&entry->inflight_rsc, p.b->qp->handle + 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 100));
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_check(p.bb.addr, 100, 1);
	t_pair_free(&p);
}

/* Checks that a receive that a message held when its QP was reset is one of the SRQ's. */
static void test_reset(void **state)
{
	struct t_dev *dev = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 15, .max_sge = 1}};
	struct t_spec spec = {.srq = ibv_create_srq(dev->pd, &init)};
	struct t_pair p = t_pair(dev, &spec, NULL, LEN);
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	struct shca_qp_entry *entry = t_qp_entry(p.b);

	t_srq_recv(spec.srq, 1, &in, 1);
	atomic_store(&entry->inflight_wqe, FAR);
	atomic_store(&entry->inflight_rsc, spec.srq->handle + 1);
	t_ok(t_to_state(p.b, IBV_QPS_RESET));
	t_srq_recv(spec.srq, 2, &in, 1);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(spec.srq));
}

/* Asks this process, as another one would, to copy into its own memory. Returns how it ended. */
static enum shca_copy_state ask(void *to, uint64_t len)
{
	struct shca_exec *exec = &t_proc->exec[SHCA_MAX_EXEC - 2]; /* no thread has it */
	uint32_t tag = SHCA_TAG(t_slot, atomic_load(&t_proc->state)) << 8, answer;
	uint64_t began = t_now();

	exec->copy_write = 1;
	exec->copy_addr = (uintptr_t)to;
	exec->copy_len = len;
	exec->copy_bounce = 4096;
	atomic_store(&exec->copy, tag | SHCA_COPY_ASKED);
	atomic_fetch_or(&t_proc->copy_asked[t_slot / 64], 1ULL << (t_slot % 64));
	shca_proc_wake(t_proc);
	while ((answer = atomic_load(&exec->copy) & 0xff) == SHCA_COPY_ASKED ||
	       answer == SHCA_COPY_TAKEN) {
		t_true(t_ms_since(began) < T_DEADLINE_MS, "no answer");
		sched_yield();
	}
	atomic_store(&exec->copy, SHCA_COPY_IDLE);
	return answer;
}

/* Checks that a copy for another process is no longer than its buffer, and has a byte. */
static void test_copy(void **state)
{
	struct t_buf b = t_buf(*state, COPY_BYTES + 4096);

	memset(b.addr, UNTOUCHED, b.len);
	t_eq(ask(b.addr, COPY_BYTES + 4096), SHCA_COPY_FAILED);
	t_eq(ask(b.addr, UINT64_MAX), SHCA_COPY_FAILED);
	t_eq(ask(b.addr, 0), SHCA_COPY_FAILED);
	t_check_byte(b.addr, b.len, UNTOUCHED);
	t_eq(ask(b.addr, 1), SHCA_COPY_DONE);
	t_buf_free(&b);
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
		cmocka_unit_test(test_payload),  cmocka_unit_test(test_bounce),
		cmocka_unit_test(test_receive),  cmocka_unit_test(test_send),
		cmocka_unit_test(test_unpolled), cmocka_unit_test(test_entries),
		cmocka_unit_test(test_held),     cmocka_unit_test(test_reset),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
