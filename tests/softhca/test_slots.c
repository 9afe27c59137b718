/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_slots.c - queue accounting of an RC QP: when send-queue slots come free, where bad_wr
 * points, and posting to oneself.
 */
#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static struct ibv_send_wr write_wr(struct t_pair *pair, struct ibv_sge *sge, uint64_t id, int flags)
{
	struct ibv_send_wr wr;

	*sge = t_sge(&pair->ba, 0, 8);
	wr = t_rdma(IBV_WR_RDMA_WRITE, id, sge, 1, (uintptr_t)pair->bb.addr, pair->bb.mr->rkey);
	wr.send_flags = (unsigned)flags;
	return wr;
}

static void write_n(struct t_pair *pair, unsigned n, uint64_t id, int flags)
{
	struct ibv_sge sge;

	for (unsigned i = 0; i < n; i++) {
		struct ibv_send_wr wr = write_wr(pair, &sge, id + i, flags);

		t_post(pair->a, &wr);
	}
}

/* Fills the queue with unsignalled writes. Returns how many it took. */
static unsigned fill(struct t_pair *pair)
{
	struct ibv_sge sge;

	for (unsigned n = 0;; n++) {
		struct ibv_send_wr wr = write_wr(pair, &sge, 1, 0), *bad = NULL;
		int rc = ibv_post_send(pair->a->qp, &wr, &bad);

		if (!rc)
			continue;
		t_eq(rc, ENOMEM);
		t_true(bad == &wr, "bad_wr doesn't point to the refused request");
		return n;
	}
}

/* Waits until a write has set the byte. */
static void await_executed(const volatile char *flag)
{
	uint64_t t0 = t_now();

	while (!*flag)
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "a write was not executed");
}

/* Checks that executed requests keep the queue full if neither they nor a later one are
 * signalled. */
static void test_unsignalled(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);

	(void)state;
	p.ba.addr[0] = 1;
	t_eq(fill(&p), p.a->cap.max_send_wr);
	await_executed(p.bb.addr);
	t_none(p.a->scq, T_QUIET_MS);
	t_eq(fill(&p), 0);
	t_pair_free(&p);
}

/* Checks that a signalled request frees itself and all before it when it is polled, not when it is
 * done. */
static void test_freed_by_poll(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	unsigned n = p.a->cap.max_send_wr, k = n / 2;

	(void)state;
	p.ba.addr[0] = 1;
	for (int round = 0; round < 40; round++) {
		p.bb.addr[0] = 0;
		write_n(&p, k, 50, 0);
		write_n(&p, 1, 7, IBV_SEND_SIGNALED);
		t_eq(fill(&p), n - k - 1);
		await_executed(p.bb.addr);
		t_eq(fill(&p), 0);
		t_done(p.a->scq, 7, IBV_WC_RDMA_WRITE);
		/* k + 1 slots are free; those behind the signalled one are not. */
		write_n(&p, k, 60, 0);
		write_n(&p, 1, 8, IBV_SEND_SIGNALED);
		t_eq(fill(&p), 0);
		t_done(p.a->scq, 8, IBV_WC_RDMA_WRITE);
		write_n(&p, n - 1, 70, 0);
		write_n(&p, 1, 9, IBV_SEND_SIGNALED);
		t_done(p.a->scq, 9, IBV_WC_RDMA_WRITE);
	}
	t_pair_free(&p);
}

/* Checks that RESET frees everything. */
static void test_freed_by_reset(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct t_addr a = t_addr(p.a), b = t_addr(p.b);

	(void)state;
	t_eq(fill(&p), p.a->cap.max_send_wr);
	t_ok(t_to_state(p.a, IBV_QPS_RESET));
	t_ok(t_to_state(p.b, IBV_QPS_RESET));
	t_up(p.a, NULL, &b);
	t_up(p.b, NULL, &a);
	t_eq(fill(&p), p.a->cap.max_send_wr);
	t_empty(p.a->scq);
	t_pair_free(&p);
}

/* Checks that a list is posted up to the request that doesn't fit. */
static void test_list_overflow(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	unsigned n = p.a->cap.max_send_wr;
	struct ibv_send_wr *wr = calloc(n + 3, sizeof(*wr)), *bad = NULL;
	struct ibv_sge sge;

	(void)state;
	t_true(wr, "out of memory");
	for (unsigned i = 0; i < n + 3; i++) {
		wr[i] = write_wr(&p, &sge, i, IBV_SEND_SIGNALED);
		wr[i].next = i < n + 2 ? &wr[i + 1] : NULL;
	}
	t_rc(ibv_post_send(p.a->qp, wr, &bad), ENOMEM);
	t_true(bad == wr + n, "bad_wr is request %td, not %u", bad - wr, n);
	for (unsigned i = 0; i < n; i++)
		t_done(p.a->scq, i, IBV_WC_RDMA_WRITE);
	t_none(p.a->scq, 1);
	free(wr);
	t_pair_free(&p);
}

/* Checks that the list before a bad request is posted, and that request and the rest are not. */
static void test_list_invalid(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_sge sge[64];

	(void)state;
	for (int i = 0; i < 4; i++) {
		wr[i] = write_wr(&p, sge, (uint64_t)i, IBV_SEND_SIGNALED);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	for (int i = 0; i < 64; i++)
		sge[i] = sge[0];
	wr[2].num_sge = (int)p.a->cap.max_send_sge + 1;
	t_rc(ibv_post_send(p.a->qp, wr, &bad), ENOMEM); /* as mlx5; the manual says EINVAL */
	t_true(bad == &wr[2], "bad_wr is request %td, not 2", bad - wr);
	t_done(p.a->scq, 0, IBV_WC_RDMA_WRITE);
	t_done(p.a->scq, 1, IBV_WC_RDMA_WRITE);
	t_none(p.a->scq, 1);

	wr[2].num_sge = 1;
	wr[1].opcode = (enum ibv_wr_opcode)99;
	t_rc(ibv_post_send(p.a->qp, wr, &bad), EINVAL);
	t_true(bad == &wr[1], "bad_wr is request %td, not 1", bad - wr);
	t_done(p.a->scq, 0, IBV_WC_RDMA_WRITE);
	t_none(p.a->scq, 1);
	t_pair_free(&p);
}

/* Checks that more inline data than were granted are refused with ENOMEM, as by mlx5. */
static void test_inline_too_long(void **state)
{
	struct t_spec s = {.cap = {4, 4, 1, 1, 32}};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, p.a->cap.max_inline_data + 1);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &sge, 1), *bad = NULL;

	(void)state;
	wr.send_flags |= IBV_SEND_INLINE;
	t_rc(ibv_post_send(p.a->qp, &wr, &bad), ENOMEM);
	t_true(bad == &wr, "bad_wr was not set");
	t_none(p.a->scq, 1);
	t_pair_free(&p);
}

/* Checks opcodes that don't exist on RC. */
static void test_bad_opcodes(void **state)
{
	static const int ops[] = {IBV_WR_TSO, IBV_WR_DRIVER1, -1, 14, 1000};
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_sge sge = t_sge(&p.ba, 0, 8);
		struct ibv_send_wr wr = t_wr((enum ibv_wr_opcode)ops[i], 1, &sge, 1), *bad = NULL;
		int rc = ibv_post_send(p.a->qp, &wr, &bad);

		t_true(rc == EINVAL || rc == EOPNOTSUPP, "opcode %d: returned %d", ops[i], rc);
		t_true(bad == &wr, "bad_wr was not set");
	}
	t_none(p.a->scq, 1);
	t_eq(t_state(p.a), IBV_QPS_RTS);
	t_pair_free(&p);
}

static void test_recv_overflow(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	unsigned n = p.b->cap.max_recv_wr;
	struct ibv_recv_wr *wr = calloc(n + 2, sizeof(*wr)), *bad = NULL;
	struct ibv_sge sge[64];

	(void)state;
	t_true(wr, "out of memory");
	for (unsigned i = 0; i < 64; i++)
		sge[i] = t_sge(&p.bb, 0, 64);
	for (unsigned i = 0; i < n + 2; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = i,
					     .next = i <= n ? &wr[i + 1] : NULL,
					     .sg_list = sge,
					     .num_sge = 1};
	t_rc(ibv_post_recv(p.b->qp, wr, &bad), ENOMEM);
	t_true(bad == wr + n, "bad_wr is request %td, not %u", bad - wr, n);
	for (unsigned i = 0; i < n; i++) {
		t_send(p.a, i, t_sge(&p.ba, 0, 8));
		t_next(p.b->rcq, i, IBV_WC_SUCCESS);
		t_next(p.a->scq, i, IBV_WC_SUCCESS);
	}
	/* All were polled: there is room for as many again. */
	for (unsigned i = 0; i < n; i++)
		t_recv(p.b, i, sge, 1);
	t_rc(t_recv_try(p.b, 1, sge, 1), ENOMEM);
	/* As with mlx5, room comes first. */
	t_rc(t_recv_try(p.b, 1, sge, (int)p.b->cap.max_recv_sge + 1), ENOMEM);
	free(wr);
	t_pair_free(&p);
}

static void test_recv_too_many_sges(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge sge[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		sge[i] = t_sge(&p.bb, i, 1);
	t_rc(t_recv_try(p.b, 1, sge, (int)p.b->cap.max_recv_sge + 1), EINVAL);
	t_recv(p.b, 2, sge, (int)p.b->cap.max_recv_sge);
	t_send(p.a, 3, t_sge(&p.ba, 0, p.b->cap.max_recv_sge));
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 3, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks a QP that is its own peer. */
static void test_self(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 1 << 20);

	(void)state;
	t_connect(qp, qp, NULL);
	for (unsigned i = 0; i < 4; i++) {
		size_t n = (size_t[]){0, 100, 5000, 400000}[i];
		struct ibv_sge from = t_sge(&b, 0, n), to = t_sge(&b, 1 << 19, n);
		struct ibv_send_wr wr;

		t_fill(b.addr, n, i);
		t_recv(qp, 1, &to, 1);
		t_send(qp, 2, from);
		t_eq(t_next(qp->rcq, 1, IBV_WC_SUCCESS).byte_len, n);
		t_next(qp->scq, 2, IBV_WC_SUCCESS);
		t_check(b.addr + (1 << 19), n, i);
		t_fill(b.addr, n, i + 10);
		wr = t_rdma(IBV_WR_RDMA_READ, 3, &to, 1, (uintptr_t)b.addr, b.mr->rkey);
		t_post(qp, &wr);
		t_next(qp->scq, 3, IBV_WC_SUCCESS);
		t_check(b.addr + (1 << 19), n, i + 10);
	}
	t_qp_free(qp);
	t_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsignalled),        cmocka_unit_test(test_freed_by_poll),
		cmocka_unit_test(test_freed_by_reset),     cmocka_unit_test(test_list_overflow),
		cmocka_unit_test(test_list_invalid),       cmocka_unit_test(test_inline_too_long),
		cmocka_unit_test(test_bad_opcodes),        cmocka_unit_test(test_recv_overflow),
		cmocka_unit_test(test_recv_too_many_sges), cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests_name("slots", tests, setup, t_teardown);
}
