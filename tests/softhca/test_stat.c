/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stat.c - the counters and objects that "softhca stat --json" shows are right for known work.
 * With "hold" it makes known objects, prints its pid and stays until its input ends, for
 * test_fabric.sh.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <unistd.h>

#include "stat.h"
#include "util.h"
#include "xrc.h"

/* A counter and its last value, to measure its growth. */
struct watch {
	const char *name;
	uint64_t before;
};

static struct watch watch(const char *name)
{
	return (struct watch){name, stat_counter(name)};
}

static void grew(struct watch *watch, uint64_t by)
{
	uint64_t now = stat_counter(watch->name);

	t_true(now - watch->before == by, "%s grew by %llu, not %llu", watch->name,
	       (unsigned long long)(now - watch->before), (unsigned long long)by);
	watch->before = now;
}

static struct t_params quick(const struct t_dev *dev)
{
	struct t_params p = t_params_quick(dev, 3);

	p.min_rnr_timer = 1;
	p.rnr_retry = 2;
	return p;
}

static void test_traffic(void **state)
{
	enum { LEN = 10000, PACKETS = 3 }; /* at an MTU of 4096 */
	struct t_pair p = t_pair(*state, NULL, NULL, 65536);
	struct watch w[] = {watch("sends"),      watch("writes"),   watch("reads"),
			    watch("atomics"),    watch("tx_bytes"), watch("rx_bytes"),
			    watch("rnr_naks"),   watch("retries"),  watch("tx_packets"),
			    watch("rx_packets"), watch("flushed")};
	struct ibv_sge in = t_sge(&p.bb, 0, LEN), out = t_sge(&p.ba, 0, LEN),
		       word = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < 5; i++) {
		t_recv(p.b, i, &in, 1);
		t_send(p.a, i, out);
		t_done(p.a->scq, i, IBV_WC_SEND);
		t_next(p.b->rcq, i, IBV_WC_SUCCESS);
	}
	grew(&w[0], 5);
	grew(&w[4], 5 * LEN);
	grew(&w[5], 5 * LEN);
	grew(&w[8], 5 * PACKETS);
	grew(&w[9], 5 * PACKETS);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 1, &out, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	t_post(p.a, &wr);
	t_done(p.a->scq, 1, IBV_WC_RDMA_WRITE);
	wr.opcode = IBV_WR_RDMA_READ;
	for (unsigned i = 0; i < 2; i++) {
		t_post(p.a, &wr);
		t_done(p.a->scq, 1, IBV_WC_RDMA_READ);
	}
	wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &word, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	for (unsigned i = 0; i < 3; i++) {
		t_post(p.a, &wr);
		t_done(p.a->scq, 1, IBV_WC_FETCH_ADD);
	}
	grew(&w[0], 0);
	grew(&w[1], 1);
	grew(&w[2], 2);
	grew(&w[3], 3);
	grew(&w[6], 0);
	grew(&w[7], 0);
	grew(&w[10], 0);
	t_pair_free(&p);
}

static void test_rnr(void **state)
{
	struct t_params params = quick(*state);
	struct t_pair p = t_pair(*state, NULL, &params, 4096);
	struct watch naks = watch("rnr_naks"), over = watch("rnr_retry_exceeded"),
		     flushed = watch("flushed");

	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_send(p.a, 2, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	grew(&naks, 3); /* the first try and two more */
	grew(&over, 1);
	grew(&flushed, 1);
	t_pair_free(&p);
}

/* Checks that a process that was stopped for many periods of the timer has tried no more often than
 * it may. */
static void test_late(void **state)
{
	struct t_params params = quick(*state);
	struct watch naks = watch("rnr_naks");
	char command[80];
	struct t_pair p;

	params.min_rnr_timer = 20; /* 10.24 ms */
	p = t_pair(*state, NULL, &params, 4096);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	snprintf(command, sizeof(command), "kill -STOP %d; sleep 0.1; kill -CONT %d", (int)getpid(),
		 (int)getpid());
	t_eq(system(command), 0);
	t_next(p.a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	grew(&naks, 3);
	t_pair_free(&p);
}

static void test_retries(void **state)
{
	struct t_params params = quick(*state);
	struct t_pair p = t_pair(*state, NULL, &params, 4096);
	struct watch retries = watch("retries"), over = watch("retry_exceeded");

	t_eq(t_to_state(p.b, IBV_QPS_RESET), 0);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	grew(&retries, 3);
	grew(&over, 1);
	t_pair_free(&p);
}

/* Checks that a failing send makes the counter of its kind grow by one. */
static void one_error(struct t_dev *dev, const char *counter, enum ibv_wc_status status,
		      size_t in_len, uint32_t lkey_xor, uint32_t rkey_xor)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct watch w = watch(counter);
	struct ibv_sge in = t_sge(&p.bb, 0, in_len), out = t_sge(&p.ba, 0, 100);
	struct ibv_send_wr wr = rkey_xor ? t_rdma(IBV_WR_RDMA_WRITE, 1, &out, 1,
						  (uintptr_t)p.bb.addr, p.bb.mr->rkey ^ rkey_xor)
					 : t_wr(IBV_WR_SEND, 1, &out, 1);

	out.lkey ^= lkey_xor;
	t_recv(p.b, 1, &in, 1);
	t_post(p.a, &wr);
	t_next(p.a->scq, 1, status);
	grew(&w, 1);
	t_drain_events(dev->ctx);
	t_pair_free(&p);
}

static void test_errors(void **state)
{
	one_error(*state, "local_length_errors", IBV_WC_REM_INV_REQ_ERR, 99, 0, 0);
	one_error(*state, "remote_invalid_requests", IBV_WC_REM_INV_REQ_ERR, 99, 0, 0);
	one_error(*state, "local_protection_errors", IBV_WC_LOC_PROT_ERR, 100, 0x55500, 0);
	one_error(*state, "remote_access_errors", IBV_WC_REM_ACCESS_ERR, 100, 0, 0x55500);
}

static void test_unreliable(void **state)
{
	struct t_dev *dev = *state;
	struct t_spec ud = {.type = IBV_QPT_UD}, uc = {.type = IBV_QPT_UC};
	struct t_pair p = t_pair(dev, &ud, NULL, 4096), q = t_pair(dev, &uc, NULL, 4096);
	struct watch lost = watch("ud_dropped"), qkey = watch("qkey_violations"),
		     uc_lost = watch("uc_dropped");
	struct t_addr to = t_addr(p.b);
	struct ibv_ah *ah = t_ah(dev, &to, false);
	struct ibv_sge out = t_sge(&p.ba, 0, 8), in = t_sge(&p.bb, 0, 100);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &out, 1);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p.b->qp->qp_num;
	wr.wr.ud.remote_qkey = T_QKEY;
	t_post(p.a, &wr); /* no receive */
	t_done(p.a->scq, 1, IBV_WC_SEND);
	grew(&lost, 1);
	t_recv(p.b, 1, &in, 1);
	wr.wr.ud.remote_qkey = T_QKEY + 1;
	t_post(p.a, &wr);
	t_done(p.a->scq, 1, IBV_WC_SEND);
	grew(&qkey, 1);
	t_empty(p.b->rcq);
	t_send(q.a, 1, t_sge(&q.ba, 0, 8));
	t_done(q.a->scq, 1, IBV_WC_SEND);
	grew(&uc_lost, 1);
	t_ok(ibv_destroy_ah(ah));
	t_pair_free(&p);
	t_pair_free(&q);
}

static void test_objects(void **state)
{
	struct t_dev *dev = *state;
	unsigned before = stat_objects_of(getpid());
	struct x_set x = x_set(dev, NULL);

	/* Two QPs, an SRQ, a memory region, the domain, the SRQ's CQ and two of the initiator. */
	t_eq(stat_objects_of(getpid()), before + 8);
	x_set_free(&x);
	t_eq(stat_objects_of(getpid()), before);
}

/* Checks the completions that wait in a CQ, before and after a resize, when the positions in its
 * ring begin anew. */
static void test_unpolled(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge in = t_sge(&p.bb, 0, 8);

	for (unsigned i = 0; i < 7; i++) {
		t_recv(p.b, i, &in, 1);
		t_send(p.a, i, t_sge(&p.ba, 0, 8));
		t_done(p.a->scq, i, IBV_WC_SEND);
	}
	for (unsigned i = 0; i < 4; i++)
		t_next(p.b->rcq, i, IBV_WC_SUCCESS);
	t_eq(stat_counter("unpolled"), 3);
	t_ok(ibv_resize_cq(p.b->rcq, 100));
	t_eq(stat_counter("unpolled"), 3);
	t_next(p.b->rcq, 4, IBV_WC_SUCCESS);
	t_eq(stat_counter("unpolled"), 2);
	t_pair_free(&p);
}

/* Checks that regions without a length show none. */
static void test_no_length(void **state)
{
	struct t_dev *dev = *state;
	struct t_buf b = t_buf(dev, 4096);
	uint64_t before = stat_counter("length");
	struct ibv_mr *null = ibv_alloc_null_mr(dev->pd);
	struct ibv_mr *all =
		ibv_reg_mr(dev->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);

	t_true(null && all, "set-up: %s", strerror(errno));
	t_eq(stat_counter("length"), before);
	t_ok(ibv_dereg_mr(null));
	t_ok(ibv_dereg_mr(all));
	t_buf_free(&b);
}

/* Holds two RC QPs in RTS with a CQ each way (4) and a region each (2), and an x_set: 2 QPs, 3 CQs,
 * an SRQ, a region, a domain. */
static int hold(void)
{
	struct t_dev *dev;
	char c;

	t_child_begin();
	t_untidy();
	dev = t_open();
	t_pair(dev, NULL, NULL, 4096);
	x_set(dev, NULL);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_traffic), TEST(test_rnr),      TEST(test_late),
		TEST(test_retries), TEST(test_errors),   TEST(test_unreliable),
		TEST(test_objects), TEST(test_unpolled), TEST(test_no_length),
	};

	if (argc > 1 && !strcmp(argv[1], "hold"))
		return hold();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
