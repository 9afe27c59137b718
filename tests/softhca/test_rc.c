/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rc.c - the RC data path: every opcode, size and way of posting, and the fields of the
 * completions.
 */
#include <arpa/inet.h>

#include "util.h"

#define BIG (5u << 20)
#define PAD 64 /* guard bytes before and after the target */

static const size_t sizes[] = {0,   1,   2,   7,    8,    9,    24,    63,      64, 65,
			       191, 192, 193, 4095, 4096, 4097, 65536, 1 << 20, BIG};
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Fills the source with a pattern, and the target with a guard byte. */
static void arm(struct t_buf *src, struct t_buf *dst, size_t size, unsigned seed)
{
	t_fill(src->addr, size, seed);
	memset(dst->addr, 0xa5, size + 2 * PAD);
}

static void check_guarded(const struct t_buf *dst, size_t size, unsigned seed)
{
	t_check(dst->addr + PAD, size, seed);
	t_check_byte(dst->addr, PAD, 0xa5);
	t_check_byte(dst->addr + PAD + size, PAD, 0xa5);
}

/* Sends SEND or SEND_IMM of every size, into a receive that fits exactly or is larger. */
static void sends(enum ibv_wr_opcode op)
{
	struct t_pair p = t_pair(dev, NULL, NULL, BIG + 2 * PAD);

	for (size_t i = 0; i < NSIZES; i++) {
		size_t n = sizes[i];
		struct ibv_sge from = t_sge(&p.ba, 0, n);
		struct ibv_sge to = t_sge(&p.bb, PAD, i & 1 ? n + PAD : n);
		struct ibv_send_wr wr = t_wr(op, 100 + i, &from, n ? 1 : 0);
		struct ibv_wc wc;

		arm(&p.ba, &p.bb, n, (unsigned)i);
		wr.imm_data = htonl(0xabcd0000u + (uint32_t)i);
		t_recv(p.b, 200 + i, &to, to.length ? 1 : 0);
		t_post(p.a, &wr);
		wc = t_next(p.b->rcq, 200 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV);
		t_eq(wc.byte_len, n);
		t_eq(wc.qp_num, p.b->qp->qp_num);
		t_eq(!!(wc.wc_flags & IBV_WC_GRH), dev->roce);
		if (op == IBV_WR_SEND_WITH_IMM) {
			t_eq(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
			t_eq(wc.imm_data, wr.imm_data);
		} else {
			t_eq(wc.wc_flags & IBV_WC_WITH_IMM, 0);
		}
		check_guarded(&p.bb, n, (unsigned)i);
		wc = t_next(p.a->scq, 100 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_SEND);
		t_eq(wc.qp_num, p.a->qp->qp_num);
	}
	t_empty(p.a->scq);
	t_empty(p.b->rcq);
	t_pair_free(&p);
}

static void test_send(void **state)
{
	(void)state;
	sends(IBV_WR_SEND);
}

static void test_send_imm(void **state)
{
	(void)state;
	sends(IBV_WR_SEND_WITH_IMM);
}

static void test_write(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, BIG + 2 * PAD);

	(void)state;
	for (size_t i = 0; i < NSIZES; i++) {
		struct ibv_sge from = t_sge(&p.ba, 0, sizes[i]);
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, i, &from, 1,
					       (uintptr_t)p.bb.addr + PAD, p.bb.mr->rkey);

		arm(&p.ba, &p.bb, sizes[i], (unsigned)i);
		t_post(p.a, &wr);
		t_done(p.a->scq, i, IBV_WC_RDMA_WRITE);
		check_guarded(&p.bb, sizes[i], (unsigned)i);
	}
	t_empty(p.b->rcq);
	t_pair_free(&p);
}

/* Checks that a write with immediate consumes the receive without touching its buffer; byte_len
 * counts the written bytes. */
static void test_write_imm(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, BIG + 2 * PAD);
	struct t_buf other = t_buf(dev, 4096);

	(void)state;
	memset(other.addr, 0x77, other.len);
	for (size_t i = 0; i < NSIZES; i++) {
		struct ibv_sge from = t_sge(&p.ba, 0, sizes[i]), to = t_sge(&other, 0, 8);
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, i, &from, 1,
					       (uintptr_t)p.bb.addr + PAD, p.bb.mr->rkey);
		struct ibv_wc wc;

		arm(&p.ba, &p.bb, sizes[i], (unsigned)i);
		wr.imm_data = htonl(77 + (uint32_t)i);
		t_recv(p.b, 500 + i, &to, (int)(i & 1));
		t_post(p.a, &wr);
		wc = t_next(p.b->rcq, 500 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		t_eq(wc.byte_len, sizes[i]);
		t_eq(wc.imm_data, wr.imm_data);
		t_true(wc.wc_flags & IBV_WC_WITH_IMM, "no IBV_WC_WITH_IMM");
		check_guarded(&p.bb, sizes[i], (unsigned)i);
		t_done(p.a->scq, i, IBV_WC_RDMA_WRITE);
	}
	t_check_byte(other.addr, other.len, 0x77);
	t_pair_free(&p);
	t_buf_free(&other);
}

static void test_read(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, BIG + 2 * PAD);

	(void)state;
	for (size_t i = 0; i < NSIZES; i++) {
		struct ibv_sge to = t_sge(&p.ba, PAD, sizes[i]);
		struct ibv_send_wr wr =
			t_rdma(IBV_WR_RDMA_READ, i, &to, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		struct ibv_wc wc;

		arm(&p.bb, &p.ba, sizes[i], (unsigned)i);
		t_post(p.a, &wr);
		wc = t_next(p.a->scq, i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RDMA_READ);
		t_eq(wc.byte_len, sizes[i]);
		check_guarded(&p.ba, sizes[i], (unsigned)i);
	}
	t_pair_free(&p);
}

/* Checks that the R_Key of an RDMA operation of length zero is not checked (C9-88). */
static void test_rdma_zero_key(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ibv_send_wr wr = t_rdma(ops[i], (uint64_t)i, NULL, 0, 0x10, 0xdead00);

		t_post(p.a, &wr);
		t_next(p.a->scq, (uint64_t)i, IBV_WC_SUCCESS);
	}
	t_pair_free(&p);
}

static uint64_t atomic_op(struct t_pair *pair, enum ibv_wr_opcode op, uint64_t add, uint64_t swap)
{
	struct ibv_sge to = t_sge(&pair->ba, 64, 8);
	struct ibv_send_wr wr =
		t_rdma(op, 9, &to, 1, (uintptr_t)pair->bb.addr + 8, pair->bb.mr->rkey);
	struct ibv_wc wc;
	uint64_t old;

	wr.wr.atomic.compare_add = add;
	wr.wr.atomic.swap = swap;
	t_post(pair->a, &wr);
	wc = t_next(pair->a->scq, 9, IBV_WC_SUCCESS);
	t_eq(wc.opcode, op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
	t_eq(wc.byte_len, 8);
	memcpy(&old, pair->ba.addr + 64, 8);
	return old;
}

static void test_atomics(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	volatile uint64_t *v = (volatile uint64_t *)(void *)(p.bb.addr + 8);

	(void)state;
	*v = 41;
	t_eq(atomic_op(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0), 41);
	t_eq(*v, 42);
	t_eq(atomic_op(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 0x1122334455667788u), 42);
	t_eq(*v, 0x1122334455667788u);
	t_eq(atomic_op(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7), 0x1122334455667788u);
	t_eq(*v, 0x1122334455667788u);
	t_eq(atomic_op(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, ~(uint64_t)0, 0), 0x1122334455667788u);
	t_eq(*v, 0x1122334455667787u);
	t_check_byte(p.bb.addr, 8, 0);
	t_check_byte(p.bb.addr + 16, 48, 0);
	t_pair_free(&p);
}

/* Cuts [off, off + len) of the buffer into n pieces of uneven size, one of them empty. */
static void cut(const struct t_buf *buf, size_t off, size_t len, struct ibv_sge *sge, int n)
{
	for (int i = 0; i < n; i++) {
		size_t k = i == n - 1 ? len : i == 1 ? 0 : len / 3;

		sge[i] = t_sge(buf, off, k);
		off += k;
		len -= k;
	}
}

/* Checks lists of SGEs whose pieces differ on the two sides. On a send or receive queue an SGE of
 * length 0 adds nothing. */
static void test_sges(void **state)
{
	static const size_t n[] = {5, 100, 192, 5000, 300001};
	struct t_pair p = t_pair(dev, NULL, NULL, 1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		struct ibv_sge from[4], to[3];
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, from, 4);
		struct ibv_send_wr rd =
			t_rdma(IBV_WR_RDMA_READ, 2, to, 3, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		struct ibv_send_wr wrt =
			t_rdma(IBV_WR_RDMA_WRITE, 3, from, 4, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

		cut(&p.ba, 3, n[i], from, 4);
		cut(&p.bb, 77, n[i] + 10, to, 3);
		t_fill(p.ba.addr + 3, n[i], (unsigned)i);
		t_recv(p.b, 4, to, 3);
		t_post(p.a, &wr);
		t_eq(t_next(p.b->rcq, 4, IBV_WC_SUCCESS).byte_len, n[i]);
		t_check(p.bb.addr + 77, n[i], (unsigned)i);
		t_done(p.a->scq, 1, IBV_WC_SEND);

		t_post(p.a, &wrt);
		t_done(p.a->scq, 3, IBV_WC_RDMA_WRITE);
		t_check(p.bb.addr, n[i], (unsigned)i);

		cut(&p.ba, 400001, n[i], to, 3);
		t_post(p.a, &rd);
		t_done(p.a->scq, 2, IBV_WC_RDMA_READ);
		t_check(p.ba.addr + 400001, n[i], (unsigned)i);
	}
	t_pair_free(&p);
}

/* Checks that the post takes inline data: from memory that isn't registered and is overwritten at
 * once. */
static void test_inline(void **state)
{
	struct t_spec s = {.cap = {16, 16, 4, 4, 100}};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge to = t_sge(&p.bb, 0, 4096);
	size_t max = p.a->cap.max_inline_data;
	char local[2048];

	(void)state;
	t_true(max >= 100 && max <= sizeof(local), "max_inline_data is %zu", max);
	for (size_t n = 0; n <= max; n += n < 4 ? 1 : n + 17 < max || n == max ? 17 : max - n) {
		struct ibv_sge from[2] = {{(uintptr_t)local, (uint32_t)(n / 2), 0xbad},
					  {(uintptr_t)local + n / 2, (uint32_t)(n - n / 2), 0}};
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, n, from, 2);

		wr.send_flags |= IBV_SEND_INLINE;
		t_fill(local, n, (unsigned)n);
		t_recv(p.b, n, &to, 1);
		t_post(p.a, &wr);
		memset(local, 0xee, n);
		t_eq(t_next(p.b->rcq, n, IBV_WC_SUCCESS).byte_len, n);
		t_check(p.bb.addr, n, (unsigned)n);

		wr = t_rdma(IBV_WR_RDMA_WRITE, n, from, 2, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		wr.send_flags |= IBV_SEND_INLINE;
		t_fill(local, n, (unsigned)n + 1);
		t_post(p.a, &wr);
		memset(local, 0xee, n);
		t_next(p.a->scq, n, IBV_WC_SUCCESS);
		t_next(p.a->scq, n, IBV_WC_SUCCESS);
		t_check(p.bb.addr, n, (unsigned)n + 1);
	}
	t_pair_free(&p);
}

/* Checks that a late receive still gets the inline data of the time of the post. */
static void test_inline_held(void **state)
{
	struct t_spec s = {.cap = {16, 16, 4, 4, 64}};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge to = t_sge(&p.bb, 0, 4096), from = t_sge(&p.ba, 0, 60);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &from, 1);

	(void)state;
	wr.send_flags |= IBV_SEND_INLINE;
	t_fill(p.ba.addr, 60, 3);
	t_post(p.a, &wr);
	memset(p.ba.addr, 0, 60);
	t_none(p.a->scq, 5);
	t_recv(p.b, 2, &to, 1);
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_check(p.bb.addr, 60, 3);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that a fenced SEND waits for the READ before it, and so sends the data that the READ
 * fetched. */
static void test_fence(void **state)
{
	static const size_t n[] = {8, 4096, 1 << 20};
	struct t_pair p = t_pair(dev, NULL, NULL, 2 << 20);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct ibv_sge mid = t_sge(&p.ba, 0, n[i]), to = t_sge(&p.bb, 1 << 20, n[i]);
		struct ibv_send_wr rd =
			t_rdma(IBV_WR_RDMA_READ, 1, &mid, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 2, &mid, 1);

		wr.send_flags |= IBV_SEND_FENCE;
		rd.next = &wr;
		t_fill(p.bb.addr, n[i], 40 + (unsigned)i);
		memset(p.ba.addr, 0, n[i]);
		t_recv(p.b, 3, &to, 1);
		t_post(p.a, &rd);
		t_next(p.b->rcq, 3, IBV_WC_SUCCESS);
		t_check(p.bb.addr + (1 << 20), n[i], 40 + (unsigned)i);
		t_done(p.a->scq, 1, IBV_WC_RDMA_READ);
		t_done(p.a->scq, 2, IBV_WC_SEND);
	}
	t_pair_free(&p);
}

/* Checks that completions and receives of large and small work come in the order of posting. */
static void test_order(void **state)
{
	struct t_spec s = {.cap = {64, 64, 1, 1, 0}};
	struct t_pair p = t_pair(dev, &s, NULL, 1 << 20);
	static const size_t n[] = {300000, 8, 0, 5000, 100, 65536, 1, 192};

	(void)state;
	for (uint64_t i = 0; i < 24; i++) {
		struct ibv_sge from = t_sge(&p.ba, 0, n[i % 8]), to = t_sge(&p.bb, 0, 300000);
		struct ibv_send_wr wr;

		t_recv(p.b, 2 * i, &to, 1);
		wr = t_wr(IBV_WR_SEND, 2 * i, &from, 1);
		if (i % 3 == 1)
			wr.send_flags = 0;
		t_post(p.a, &wr);
		wr = t_rdma(i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 2 * i + 1, &from, 1,
			    (uintptr_t)p.bb.addr + (1 << 19), p.bb.mr->rkey);
		t_post(p.a, &wr);
	}
	for (uint64_t i = 0; i < 24; i++) {
		t_eq(t_next(p.b->rcq, 2 * i, IBV_WC_SUCCESS).byte_len, n[i % 8]);
		if (i % 3 != 1)
			t_done(p.a->scq, 2 * i, IBV_WC_SEND);
		t_done(p.a->scq, 2 * i + 1, i & 1 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
	}
	t_empty(p.a->scq);
	t_pair_free(&p);
}

static void test_sq_sig_all(void **state)
{
	struct t_spec s = {.sq_sig_all = 1};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge from = t_sge(&p.ba, 0, 10), to = t_sge(&p.bb, 0, 10);

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, i, &from, 1);

		wr.send_flags = 0;
		t_recv(p.b, i, &to, 1);
		t_post(p.a, &wr);
	}
	for (uint64_t i = 0; i < 5; i++)
		t_done(p.a->scq, i, IBV_WC_SEND);
	t_pair_free(&p);
}

/* Checks that an atomic uses the first 8 bytes of its SGE. */
static void test_atomic_sge(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge to = t_sge(&p.ba, 0, 24);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &to, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	(void)state;
	memset(p.ba.addr, 0x66, 24);
	t_fill(p.bb.addr, 8, 1);
	t_post(p.a, &wr);
	t_eq(t_next(p.a->scq, 1, IBV_WC_SUCCESS).byte_len, 8);
	t_check(p.ba.addr, 8, 1);
	t_check_byte(p.ba.addr + 8, 16, 0x66);
	t_pair_free(&p);
}

/* Checks that receives show the GRH of a path. */
static void test_grh(void **state)
{
	struct t_params pr = t_params(dev);
	struct t_pair p;

	(void)state;
	pr.grh = true;
	p = t_pair(dev, NULL, &pr, 4096);
	t_recv(p.b, 1, NULL, 0);
	t_send(p.a, 2, t_sge(&p.ba, 0, 0));
	t_eq(t_next(p.b->rcq, 1, IBV_WC_SUCCESS).wc_flags, IBV_WC_GRH);
	t_eq(t_next(p.a->scq, 2, IBV_WC_SUCCESS).wc_flags, 0);
	t_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send),       cmocka_unit_test(test_send_imm),
		cmocka_unit_test(test_write),      cmocka_unit_test(test_write_imm),
		cmocka_unit_test(test_read),       cmocka_unit_test(test_rdma_zero_key),
		cmocka_unit_test(test_atomics),    cmocka_unit_test(test_sges),
		cmocka_unit_test(test_inline),     cmocka_unit_test(test_inline_held),
		cmocka_unit_test(test_fence),      cmocka_unit_test(test_order),
		cmocka_unit_test(test_sq_sig_all), cmocka_unit_test(test_atomic_sge),
		cmocka_unit_test(test_grh),
	};

	return cmocka_run_group_tests_name("rc", tests, setup, t_teardown);
}
