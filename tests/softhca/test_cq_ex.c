/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cq_ex.c - extended completion queues: the polling protocol, the readable fields, timestamps.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "util.h"

#define FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static struct ibv_cq_ex *make(uint64_t flags, struct ibv_comp_channel *ch, void *context)
{
	struct ibv_cq_init_attr_ex a = {
		.cqe = 64, .wc_flags = flags, .channel = ch, .cq_context = context};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev->ctx, &a);

	t_true(cq, "ibv_create_cq_ex: %s", strerror(errno));
	return cq;
}

static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr a = {0};
	uint64_t t0 = t_now();
	int rc;

	while ((rc = ibv_start_poll(cq, &a)) == ENOENT) {
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "no completion came");
		sched_yield();
	}
	t_ok(rc);
}

/* Compares every field with the request, and goes on to the next completion, if any, without
 * leaving the poll. */
static void test_fields(void **state)
{
	struct ibv_cq_ex *cq = make(FLAGS, NULL, NULL);
	struct t_spec s = {.rcq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_poll_cq_attr a = {0};
	struct ibv_sge from = t_sge(&p.ba, 0, 100), to = t_sge(&p.bb, 0, 200);
	uint64_t last = 0;

	(void)state;
	t_eq(ibv_start_poll(cq, &a), ENOENT);
	for (uint32_t i = 0; i < 10; i++) {
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_IMM, i, &from, 1);

		wr.imm_data = htonl(i + 1000);
		t_recv(p.b, 50 + i, &to, 1);
		t_post(p.a, &wr);
		t_next(p.a->scq, i, IBV_WC_SUCCESS);
	}
	for (uint32_t i = 0; i < 10; i++) {
		int rc = i & 3 ? ibv_next_poll(cq) : ENOENT;

		if (i && rc == ENOENT)
			ibv_end_poll(cq);
		if (rc == ENOENT)
			start(cq);
		t_eq(cq->wr_id, 50 + i);
		t_eq(cq->status, IBV_WC_SUCCESS);
		t_eq(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		t_eq(ibv_wc_read_byte_len(cq), 100);
		t_eq(ibv_wc_read_imm_data(cq), htonl(i + 1000));
		t_eq(ibv_wc_read_qp_num(cq), p.b->qp->qp_num);
		t_eq(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM | (dev->roce ? IBV_WC_GRH : 0));
		t_eq(ibv_wc_read_vendor_err(cq), 0);
		t_eq(ibv_wc_read_sl(cq), 0);
		t_eq(ibv_wc_read_dlid_path_bits(cq), 0);
		t_true(ibv_wc_read_completion_ts(cq) >= last, "timestamps go back");
		last = ibv_wc_read_completion_ts(cq);
		t_true(last, "a timestamp of 0");
	}
	t_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks that all twelve extra fields may be asked for, as with mlx5, and are zero if nothing
 * fills them, and that an unknown flag is refused. */
static void test_all_flags(void **state)
{
	struct ibv_cq_ex *cq = make(IBV_CREATE_CQ_SUP_WC_FLAGS, NULL, NULL);
	struct ibv_cq_init_attr_ex unknown = {
		.cqe = 64, .wc_flags = (IBV_CREATE_CQ_SUP_WC_FLAGS + 1) | IBV_WC_STANDARD_FLAGS};
	struct t_spec s = {.rcq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge from = t_sge(&p.ba, 0, 100), to = t_sge(&p.bb, 0, 200);
	struct ibv_wc_tm_info tm = {.tag = 5, .priv = 6};

	(void)state;
	t_recv(p.b, 1, &to, 1);
	t_send(p.a, 2, from);
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	start(cq);
	t_eq(cq->wr_id, 1);
	t_eq(ibv_wc_read_byte_len(cq), 100);
	t_eq(ibv_wc_read_cvlan(cq), 0);
	t_eq(ibv_wc_read_flow_tag(cq), 0);
	ibv_wc_read_tm_info(cq, &tm);
	t_eq(tm.tag, 0);
	t_eq(tm.priv, 0);
	t_true(ibv_wc_read_completion_ts(cq) && ibv_wc_read_completion_wallclock_ns(cq),
	       "no time stamps");
	ibv_end_poll(cq);
	t_null(ibv_create_cq_ex(dev->ctx, &unknown), EOPNOTSUPP);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks the fields of a UD receive: source and GRH. */
static void test_ud(void **state)
{
	struct ibv_cq_ex *cq = make(IBV_WC_STANDARD_FLAGS, NULL, NULL);
	struct t_spec s = {.type = IBV_QPT_UD, .rcq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct t_addr ab = t_addr(p.b);
	struct ibv_ah *ah = t_ah(dev, &ab, true);
	struct ibv_sge from = t_sge(&p.ba, 0, 10), to = t_sge(&p.bb, 0, 200);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &from, 1);

	(void)state;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ab.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	t_recv(p.b, 2, &to, 1);
	t_post(p.a, &wr);
	start(cq);
	t_eq(cq->wr_id, 2);
	t_eq(ibv_wc_read_byte_len(cq), T_GRH + 10);
	t_eq(ibv_wc_read_src_qp(cq), p.a->qp->qp_num);
	t_eq(ibv_wc_read_slid(cq), dev->port.lid);
	t_eq(ibv_wc_read_wc_flags(cq), IBV_WC_GRH);
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_ah(ah));
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks errors and sends, with the opcode by the read function. */
static void test_send_side(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const enum ibv_wc_opcode wcs[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
						 IBV_WC_FETCH_ADD};
	struct ibv_cq_ex *cq = make(FLAGS, NULL, NULL);
	struct t_spec s = {.scq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge one = t_sge(&p.ba, 0, 8);

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_send_wr wr =
			t_rdma(ops[i], i, &one, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

		t_post(p.a, &wr);
		start(cq);
		t_eq(cq->wr_id, i);
		t_eq(cq->status, IBV_WC_SUCCESS);
		t_eq(ibv_wc_read_opcode(cq), wcs[i]);
		ibv_end_poll(cq);
	}
	one.lkey ^= 0x200;
	t_send(p.a, 9, one);
	start(cq);
	t_eq(cq->wr_id, 9);
	t_eq(cq->status, IBV_WC_LOC_PROT_ERR);
	t_eq(ibv_wc_read_qp_num(cq), p.a->qp->qp_num);
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks that this way of polling frees send-queue slots, too, and that plain polling works on an
 * extended CQ. */
static void test_slots(void **state)
{
	struct ibv_cq_ex *cq = make(IBV_WC_STANDARD_FLAGS, NULL, NULL);
	struct t_spec s = {.scq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge one = t_sge(&p.ba, 0, 8);
	unsigned n = p.a->cap.max_send_wr;

	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < n; i++) {
			struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, i, &one, 1,
						       (uintptr_t)p.bb.addr, p.bb.mr->rkey);

			wr.send_flags = i == n - 1 ? IBV_SEND_SIGNALED : 0;
			t_post(p.a, &wr);
		}
		if (round & 1) {
			t_done(ibv_cq_ex_to_cq(cq), n - 1, IBV_WC_RDMA_WRITE);
			continue;
		}
		start(cq);
		t_eq(cq->wr_id, n - 1);
		ibv_end_poll(cq);
	}
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks that the device clock can be read, and that completion times lie on it. */
static void test_clock(void **state)
{
	struct ibv_cq_ex *cq = make(FLAGS, NULL, NULL);
	struct t_spec s = {.scq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_sge one = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &one, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	uint64_t ts, b, a, hz = dev->attr.hca_core_clock * 1000;

	(void)state;
	t_true(dev->attr.completion_timestamp_mask && hz, "no device clock");
	t_ok(ibv_query_rt_values_ex(dev->ctx, &before));
	t_post(p.a, &wr);
	start(cq);
	ts = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	t_ok(ibv_query_rt_values_ex(dev->ctx, &after));
	/* raw_clock is a timespec whose nanoseconds hold cycles, as mlx5 fills it in, or both parts
	 * are used. */
	b = (uint64_t)before.raw_clock.tv_sec * hz + (uint64_t)before.raw_clock.tv_nsec;
	a = (uint64_t)after.raw_clock.tv_sec * hz + (uint64_t)after.raw_clock.tv_nsec;
	t_true(b <= ts && ts <= a, "completion at %llu, not between %llu and %llu",
	       (unsigned long long)ts, (unsigned long long)b, (unsigned long long)a);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks that the time is that of the completion, not that of the poll. */
static void test_stamp(void **state)
{
	struct ibv_cq_ex *cq = make(FLAGS, NULL, NULL);
	struct t_spec s = {.rcq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_values_ex now = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	(void)state;
	t_recv(p.b, 1, NULL, 0);
	t_send(p.a, 2, t_sge(&p.ba, 0, 0));
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	t_ok(ibv_query_rt_values_ex(dev->ctx, &now));
	usleep(20000);
	start(cq);
	t_eq(cq->wr_id, 1);
	/* Under --reorder the receive may appear later than the sender's completion. */
	t_true(ibv_wc_read_completion_ts(cq) < (uint64_t)now.raw_clock.tv_sec * 1000000000 +
						       (uint64_t)now.raw_clock.tv_nsec + 10000000,
	       "the completion bears the time of the poll");
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

/* Checks an extended CQ on a channel. */
static void test_channel(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq_ex *cq = make(IBV_WC_STANDARD_FLAGS, ch, &ch);
	struct t_spec s = {.rcq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge one = t_sge(&p.ba, 0, 8), to = t_sge(&p.bb, 0, 8);
	struct ibv_cq *got;
	void *context;

	(void)state;
	t_ok(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0));
	t_recv(p.b, 1, &to, 1);
	t_send(p.a, 2, one);
	t_true(t_readable(ch->fd, T_DEADLINE_MS), "no completion event came");
	t_ok(ibv_get_cq_event(ch, &got, &context));
	t_true(got == ibv_cq_ex_to_cq(cq) && context == &ch, "another CQ or context");
	ibv_ack_cq_events(got, 1);
	start(cq);
	t_eq(cq->wr_id, 1);
	ibv_end_poll(cq);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(got));
	t_ok(ibv_destroy_comp_channel(ch));
}

static struct ibv_cq_ex *polled;
static atomic_int polling;

static struct ibv_mr *region(void)
{
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, malloc(64), 64, IBV_ACCESS_LOCAL_WRITE);

	t_true(mr, "ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static void deregister(struct ibv_mr *mr)
{
	void *addr = mr->addr;

	t_ok(ibv_dereg_mr(mr));
	free(addr);
}

/* Deregisters between start_poll and end_poll, while the other thread does so, too. */
static void *polls(void *arg)
{
	struct ibv_mr *mr = region();

	(void)arg;
	start(polled);
	polling = 1;
	while (polling != 2)
		sched_yield();
	usleep(50000); /* the other thread is in ibv_dereg_mr() by now, or through */
	deregister(mr);
	ibv_end_poll(polled);
	return NULL;
}

/* Checks that the user's code may do anything between start_poll and end_poll. */
static void test_calls_while_polling(void **state)
{
	struct t_spec s = {0};
	struct ibv_mr *mr = region();
	pthread_t thread;
	struct t_pair p;

	(void)state;
	polled = make(IBV_WC_STANDARD_FLAGS, NULL, NULL);
	s.rcq = ibv_cq_ex_to_cq(polled);
	p = t_pair(dev, &s, NULL, 4096);
	t_recv(p.b, 1, NULL, 0);
	t_send(p.a, 2, t_sge(&p.ba, 0, 0));
	t_ok(pthread_create(&thread, NULL, polls, NULL));
	while (polling != 1)
		sched_yield();
	polling = 2;
	deregister(mr);
	t_ok(pthread_join(thread, NULL));
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(s.rcq));
}

static void test_bad_args(void **state)
{
	struct ibv_cq_init_attr_ex a = {.cqe = 4, .wc_flags = 1ull << 40};
	struct ibv_cq_ex *cq;

	(void)state;
	cq = ibv_create_cq_ex(dev->ctx, &a);
	t_true(!cq && (errno == EINVAL || errno == EOPNOTSUPP), "unknown wc_flags: errno %d",
	       errno);
	a.wc_flags = 0;
	a.cqe = 0;
	cq = ibv_create_cq_ex(dev->ctx, &a);
	t_true(!cq && errno == EINVAL, "0 entries: errno %d", errno);
}

/* Checks that moderation of events is taken within mlx5's limits. */
static void test_moderation(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 8, NULL, NULL, 0);
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE};

	(void)state;
	t_eq(dev->attr.cq_mod_caps.max_cq_count, 65535);
	t_eq(dev->attr.cq_mod_caps.max_cq_period, 4095);
	t_ok(ibv_modify_cq(cq, &attr));
	attr.moderate.cq_count = 65535;
	attr.moderate.cq_period = 4095;
	t_ok(ibv_modify_cq(cq, &attr));
	attr.moderate.cq_period = 4096;
	t_rc(ibv_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = 0;
	t_rc(ibv_modify_cq(cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_MODERATE << 1;
	t_rc(ibv_modify_cq(cq, &attr), EOPNOTSUPP);
	t_ok(ibv_destroy_cq(cq));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moderation),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_all_flags),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_send_side),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_channel),
		cmocka_unit_test(test_bad_args),
		cmocka_unit_test(test_stamp),
		cmocka_unit_test(test_calls_while_polling),
	};

	return cmocka_run_group_tests_name("cq-ex", tests, setup, t_teardown);
}
