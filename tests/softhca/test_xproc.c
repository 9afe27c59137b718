/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_xproc.c - RC and UC between two processes, on one node and on two: every opcode and sizes
 * around every limit of the implementation and of the packet. Nothing here depends on how data
 * cross processes, so the suite runs it under every --copy, --reorder and the recoverable faults.
 */
#include <sched.h>

#include "procs.h"
#include "xproc_shared.h"

#define REGION (4u << 20)

enum key { K_QP = 0, K_BUF = 16, K_STEP = 18 };

static const size_t sizes[] = {1,       8,    9,     63,    64,       191,
			       192,     193,  511,   512,   4095,     4096,
			       4097,    8192, 65536, 65537, 1u << 20, (1u << 20) + 1,
			       3u << 20};
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

struct side {
	struct t_dev *dev;
	struct t_qp *q;
	struct t_buf out, in;
	struct procs_buf peer;
	unsigned me, other;
};

static struct side side_open(unsigned me, enum ibv_qp_type type)
{
	struct side s = {.me = me, .other = !me};
	struct t_spec spec = {.type = type};

	s.dev = t_open();
	s.q = t_qp(s.dev, &spec);
	s.out = t_buf(s.dev, REGION);
	s.in = t_buf(s.dev, REGION);
	procs_put_buf(K_BUF, &s.in);
	s.peer = procs_get_buf(s.other, K_BUF);
	procs_connect(s.q, s.other, K_QP, NULL);
	procs_barrier();
	return s;
}

static void side_close(struct side *side)
{
	procs_barrier();
	t_qp_free(side->q);
	t_buf_free(&side->in);
	t_buf_free(&side->out);
	t_close(side->dev);
}

/* Sends messages both ways at the same time, each checked, in order. */
static void sends(unsigned me, void *arg)
{
	struct side s = side_open(me, IBV_QPT_RC);

	(void)arg;
	for (unsigned i = 0; i < NSIZES; i++) {
		struct ibv_sge in = t_sge(&s.in, 0, sizes[i]), out = t_sge(&s.out, 0, sizes[i]);
		bool imm = i & 1;
		struct ibv_send_wr wr = t_wr(imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i, &out, 1);
		struct ibv_wc wc;

		memset(s.in.addr, 0xee, sizes[i] + 1);
		t_fill(s.out.addr, sizes[i], i * 2 + me);
		t_recv(s.q, 100 + i, &in, 1);
		procs_barrier();
		wr.imm_data = htobe32(0xabc00000 + i);
		t_post(s.q, &wr);
		wc = t_next(s.q->rcq, 100 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV);
		t_eq(wc.byte_len, sizes[i]);
		t_eq(wc.qp_num, s.q->qp->qp_num);
		t_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
		if (imm)
			t_eq(be32toh(wc.imm_data), 0xabc00000 + i);
		t_check(s.in.addr, sizes[i], i * 2 + !me);
		t_check_byte(s.in.addr + sizes[i], 1, 0xee);
		t_done(s.q->scq, i, IBV_WC_SEND);
		procs_barrier();
	}
	side_close(&s);
}

static void empty_messages(unsigned me, void *arg)
{
	struct side s = side_open(me, IBV_QPT_RC);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_send_wr im = t_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 2, NULL, 0, 0, 0);
	struct ibv_wc wc;

	(void)arg;
	t_recv(s.q, 1, NULL, 0);
	t_recv(s.q, 2, NULL, 0);
	procs_barrier();
	im.imm_data = htobe32(77);
	t_post(s.q, &wr);
	t_post(s.q, &im);
	wc = t_next(s.q->rcq, 1, IBV_WC_SUCCESS);
	t_eq(wc.byte_len, 0);
	wc = t_next(s.q->rcq, 2, IBV_WC_SUCCESS);
	t_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	t_eq(wc.byte_len, 0);
	t_eq(be32toh(wc.imm_data), 77);
	t_done(s.q->scq, 1, IBV_WC_SEND);
	t_done(s.q->scq, 2, IBV_WC_RDMA_WRITE);
	side_close(&s);
}

static void write_one(struct side *side, unsigned i, bool imm)
{
	struct ibv_sge out = t_sge(&side->out, 0, sizes[i]);
	struct ibv_send_wr wr = t_rdma(imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, i,
				       &out, 1, side->peer.addr + 7, side->peer.rkey);
	struct ibv_wc wc;

	t_fill(side->out.addr, sizes[i], i * 2 + side->me);
	memset(side->in.addr, 0xee, sizes[i] + 8);
	if (imm)
		t_recv(side->q, 100 + i, NULL, 0);
	procs_barrier();
	wr.imm_data = htobe32(i);
	t_post(side->q, &wr);
	if (imm) {
		wc = t_next(side->q->rcq, 100 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		t_eq(wc.byte_len, sizes[i]);
		t_eq(be32toh(wc.imm_data), i);
		t_check(side->in.addr + 7, sizes[i], i * 2 + side->other);
	}
	t_done(side->q->scq, i, IBV_WC_RDMA_WRITE);
	procs_barrier();
	t_check(side->in.addr + 7, sizes[i], i * 2 + side->other);
	t_check_byte(side->in.addr, 7, 0xee);
	t_check_byte(side->in.addr + 7 + sizes[i], 1, 0xee);
	procs_barrier();
}

static void writes(unsigned me, void *arg)
{
	struct side s = side_open(me, IBV_QPT_RC);

	(void)arg;
	for (unsigned i = 0; i < NSIZES; i++) {
		write_one(&s, i, false);
		write_one(&s, i, true);
	}
	side_close(&s);
}

static void reads(unsigned me, void *arg)
{
	struct side s = side_open(me, IBV_QPT_RC);

	(void)arg;
	for (unsigned i = 0; i < NSIZES; i++) {
		struct ibv_sge to = t_sge(&s.out, 0, sizes[i]);
		struct ibv_send_wr wr =
			t_rdma(IBV_WR_RDMA_READ, i, &to, 1, s.peer.addr + 3, s.peer.rkey);

		t_fill(s.in.addr + 3, sizes[i], i * 2 + me);
		memset(s.out.addr, 0xee, sizes[i] + 1);
		procs_barrier();
		t_post(s.q, &wr);
		t_done(s.q->scq, i, IBV_WC_RDMA_READ);
		t_check(s.out.addr, sizes[i], i * 2 + !me);
		t_check_byte(s.out.addr + sizes[i], 1, 0xee);
		procs_barrier();
	}
	side_close(&s);
}

/* Sends atomics to the peer's word: each returns the value that the one before left. */
static void atomics(unsigned me, void *arg)
{
	enum { N = 200 };
	struct side s = side_open(me, IBV_QPT_RC);
	uint64_t *old = (uint64_t *)s.out.addr, last = 0;
	volatile uint64_t *word = (uint64_t *)s.in.addr;
	struct ibv_sge to = t_sge(&s.out, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &to, 1, s.peer.addr, s.peer.rkey);

	(void)arg;
	wr.wr.atomic.compare_add = 3;
	for (unsigned i = 0; i < N; i++) {
		t_post(s.q, &wr);
		t_done(s.q->scq, 1, IBV_WC_FETCH_ADD);
		t_eq(*old, last);
		last += 3;
	}
	procs_barrier();
	t_eq(*word, 3 * N);
	procs_barrier();
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	for (unsigned i = 0; i < 2; i++) { /* the first one matches */
		wr.wr.atomic.compare_add = 3 * N;
		wr.wr.atomic.swap = 0x1122334455667788;
		t_post(s.q, &wr);
		t_done(s.q->scq, 1, IBV_WC_COMP_SWAP);
		t_eq(*old, i ? 0x1122334455667788 : 3 * N);
	}
	procs_barrier();
	t_eq(*word, 0x1122334455667788);
	side_close(&s);
}

/*
 * Checks that a program which polls the last byte of a peer's write finds all of it written,
 * because adapters place data in order of address. Protocols of eager RDMA rely on that.
 */
static void last_byte(unsigned me, void *arg)
{
	static const size_t bytes[] = {256, 1000, 4096, 20000};
	enum { ROUNDS = 2000 };
	struct side s = side_open(me, IBV_QPT_RC);

	(void)arg;
	for (unsigned i = 0; i < 4 * ROUNDS; i++) {
		size_t len = bytes[i / ROUNDS], wrong = 0;
		/* Another place each time: data that no cache holds arrive last. */
		size_t at = i * 8220ul % (REGION - len);
		char fill = (char)(i % 127 + 1);
		struct ibv_sge out = t_sge(&s.out, 0, len);
		struct ibv_send_wr wr =
			t_rdma(IBV_WR_RDMA_WRITE, i, &out, 1, s.peer.addr + at, s.peer.rkey);
		volatile char *in = s.in.addr + at;

		if (!me) {
			in[len - 1] = 0;
			procs_put(K_STEP, i + 1);
			while (in[len - 1] != fill)
				sched_yield();
			for (size_t k = len; k-- > 0;)
				wrong += in[k] != fill;
			t_true(!wrong,
			       "write %u of %zu bytes: %zu were not there with the last one", i,
			       len, wrong);
		} else {
			memset(s.out.addr, fill, len);
			procs_wait_for(0, K_STEP, i + 1);
			t_post(s.q, &wr);
			t_done(s.q->scq, i, IBV_WC_RDMA_WRITE);
		}
	}
	side_close(&s);
}

static void test_last_byte(void **state)
{
	const unsigned nodes[] = {0, 1};

	(void)state;
	procs_run(2, nodes, last_byte, NULL);
}

/* Posts a list of many requests, scattered and gathered over odd pieces; only the last is
 * signalled. */
static void lists(unsigned me, void *arg)
{
	enum { N = 12 };
	struct side s = side_open(me, IBV_QPT_RC);
	struct ibv_send_wr wr[N];
	struct ibv_sge out[N][3], in[N][4];

	(void)arg;
	t_fill(s.out.addr, REGION / 2, me);
	for (unsigned i = 0; i < N; i++) {
		size_t base = i * 100000;

		in[i][0] = t_sge(&s.in, base, 1);
		in[i][1] = t_sge(&s.in, base + 1, 30000);
		in[i][2] = t_sge(&s.in, base + 30001, 7);
		in[i][3] = t_sge(&s.in, base + 30008, 69992);
		t_recv(s.q, i, in[i], 4);
		out[i][0] = t_sge(&s.out, base, 33333);
		out[i][1] = t_sge(&s.out, base + 33333, 0);
		out[i][2] = t_sge(&s.out, base + 33333, 66667);
		/* A zero-length entry in the middle of a gather list adds nothing (mlx5 skips it).
		 */
		wr[i] = t_wr(IBV_WR_SEND, i, out[i], 3);
		wr[i].send_flags = i == N - 1 ? IBV_SEND_SIGNALED : 0;
		wr[i].next = i == N - 1 ? NULL : &wr[i + 1];
	}
	procs_barrier();
	t_post(s.q, wr);
	for (unsigned i = 0; i < N; i++)
		t_eq(t_next(s.q->rcq, i, IBV_WC_SUCCESS).byte_len, 100000);
	t_check(s.in.addr, N * 100000, !me);
	t_done(s.q->scq, N - 1, IBV_WC_SEND);
	t_empty(s.q->scq);
	side_close(&s);
}

/* Sends 1000 numbered messages of mixed sizes through 8 slots: none is lost, doubled or out of
 * order. */
static void stream(unsigned me, void *arg)
{
	enum { N = 1000, SLOT = 20000, DEPTH = 8 };
	struct side s = side_open(me, IBV_QPT_RC);
	unsigned sent = 0, done = 0, got = 0, recvs = 0;
	struct ibv_wc wc;

	(void)arg;
	for (; recvs < DEPTH; recvs++) {
		struct ibv_sge in = t_sge(&s.in, recvs * SLOT, SLOT);

		t_recv(s.q, recvs, &in, 1);
	}
	procs_barrier();
	while (done < N || got < N) {
		if (sent < N && sent - done < DEPTH) {
			size_t off = sent % DEPTH * SLOT, len = 8 + sent * 37 % (SLOT - 8);

			t_fill(s.out.addr + off, len, sent * 2 + me);
			t_send(s.q, sent, t_sge(&s.out, off, len));
			sent++;
		}
		if (got < N && ibv_poll_cq(s.q->rcq, 1, &wc) == 1) {
			struct ibv_sge in = t_sge(&s.in, got % DEPTH * SLOT, SLOT);

			t_eq(wc.status, IBV_WC_SUCCESS);
			t_eq(wc.wr_id, got);
			t_eq(wc.byte_len, 8 + got * 37 % (SLOT - 8));
			t_check(s.in.addr + got % DEPTH * SLOT, wc.byte_len, got * 2 + !me);
			got++;
			if (recvs < N) {
				t_recv(s.q, recvs++, &in, 1);
			}
		}
		if (done < sent && ibv_poll_cq(s.q->scq, 1, &wc) == 1) {
			t_eq(wc.status, IBV_WC_SUCCESS);
			t_eq(wc.wr_id, done);
			done++;
		}
	}
	side_close(&s);
}

static void uc_ops(unsigned me, void *arg)
{
	struct side s = side_open(me, IBV_QPT_UC);
	struct ibv_sge in = t_sge(&s.in, 0, 1u << 20), out = t_sge(&s.out, 0, 300000);
	struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 2, &out, 1,
				       s.peer.addr + (1u << 20), s.peer.rkey);

	(void)arg;
	t_fill(s.out.addr, 300000, me);
	t_recv(s.q, 1, &in, 1);
	t_recv(s.q, 2, NULL, 0);
	procs_barrier();
	t_send(s.q, 1, out);
	t_post(s.q, &wr);
	t_eq(t_next(s.q->rcq, 1, IBV_WC_SUCCESS).byte_len, 300000);
	t_check(s.in.addr, 300000, !me);
	t_eq(t_next(s.q->rcq, 2, IBV_WC_SUCCESS).byte_len, 300000);
	t_check(s.in.addr + (1u << 20), 300000, !me);
	t_done(s.q->scq, 1, IBV_WC_SEND);
	t_done(s.q->scq, 2, IBV_WC_RDMA_WRITE);
	side_close(&s);
}

static void on_both(procs_fn fn)
{
	static const unsigned two[] = {0, 1};

	procs_run(2, NULL, fn, NULL);
	procs_run(2, two, fn, NULL);
}

#define ON_BOTH(fn)                         \
	static void test_##fn(void **state) \
	{                                   \
		(void)state;                \
		on_both(fn);                \
	}
ON_BOTH(sends)
ON_BOTH(empty_messages)
ON_BOTH(writes)
ON_BOTH(reads)
ON_BOTH(atomics)
ON_BOTH(lists)
ON_BOTH(stream)
ON_BOTH(uc_ops)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends),       cmocka_unit_test(test_empty_messages),
		cmocka_unit_test(test_writes),      cmocka_unit_test(test_reads),
		cmocka_unit_test(test_atomics),     cmocka_unit_test(test_lists),
		cmocka_unit_test(test_shared_word), cmocka_unit_test(test_stream),
		cmocka_unit_test(test_shared_page), cmocka_unit_test(test_last_byte),
		cmocka_unit_test(test_uc_ops),
	};

	/* "rc": without UC, which may lose messages under faults. */
	if (argc > 1 && !strcmp(argv[1], "rc"))
		cmocka_set_skip_filter("test_uc*");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
