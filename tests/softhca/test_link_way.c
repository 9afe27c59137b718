/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_link_way.c LATENCY_US - on a link of this latency, changes made while a message is on its
 * way take effect on it. One process. A try whose second step comes late proves nothing and is
 * repeated.
 */
#include <sched.h>
#include <unistd.h>

#include "procs.h"

#define TRIES 50

static double latency; /* seconds */

static double seconds_since(uint64_t t0)
{
	return (double)(t_now() - t0) / 1e9;
}

/* Sends from a to b, and posts the receive `pause` seconds later, until that is in time once.
 * Checks that the message then takes the receive, and not before it arrives. */
static void send_before_receive(struct t_pair *p, struct ibv_send_wr *wr, struct ibv_sge *in,
				double pause)
{
	bool in_time = false;

	for (unsigned i = 0; i < TRIES && !in_time; i++) {
		struct ibv_wc wc;
		uint64_t t0 = t_now();

		t_post(p->a, wr);
		if (pause)
			usleep((useconds_t)(pause * 1e6));
		t_recv(p->b, i, in, 1);
		in_time = seconds_since(t0) < latency / 2;
		t_next(p->a->scq, 1, IBV_WC_SUCCESS);
		while (in_time && ibv_poll_cq(p->b->rcq, 1, &wc) == 0)
			t_true(t_ms_since(t0) < T_DEADLINE_MS, "the message was dropped");
		if (in_time)
			t_true(seconds_since(t0) >= latency, "it came too early");
	}
	t_true(in_time, "no try was in time");
}

/* Checks that a datagram, to a QP or to a group, finds a receive that was posted after it was
 * sent. */
static void late_receive(unsigned me, void *arg)
{
	struct t_spec spec = {.type = IBV_QPT_UD};
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct t_addr to = t_addr(p.b);
	bool *group = arg;
	struct ibv_sge out = t_sge(&p.ba, 0, 8), in = t_sge(&p.bb, 0, 64);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &out, 1);

	(void)me;
	if (*group) {
		to = (struct t_addr){.lid = 0xc001, .qpn = 0xffffff, .gid.raw = {0xff, 0x12, 7}};
		t_ok(ibv_attach_mcast(p.b->qp, &to.gid, to.lid));
	}
	wr.wr.ud.ah = t_ah(dev, &to, *group);
	wr.wr.ud.remote_qpn = to.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	send_before_receive(&p, &wr, &in, 0);
	if (*group)
		t_ok(ibv_detach_mcast(p.b->qp, &to.gid, to.lid));
	t_ok(ibv_destroy_ah(wr.wr.ud.ah));
	t_pair_free(&p);
	t_close(dev);
}

static void test_late_receive(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		bool group = i;

		procs_run(1, NULL, late_receive, &group);
	}
}

/* Checks that a message of an unreliable connection finds a receive that was posted after it was
 * sent: no answer tells its sender anything. */
static void late_receive_uc(unsigned me, void *arg)
{
	const enum ibv_wr_opcode *op = arg;
	struct t_spec spec = {.type = IBV_QPT_UC};
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct ibv_sge out = t_sge(&p.ba, 0, 4096), in = t_sge(&p.bb, 0, 4096);
	struct ibv_send_wr wr = t_rdma(*op, 1, &out, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	(void)me;
	send_before_receive(&p, &wr, &in, latency / 4);
	t_pair_free(&p);
	t_close(dev);
}

static void test_late_receive_uc(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};

	(void)state;
	for (int i = 0; i < 2; i++) {
		enum ibv_wr_opcode op = ops[i];

		procs_run(1, NULL, late_receive_uc, &op);
	}
}

/* Checks that a read returns the memory at its arrival, and that an atomic has no effect before.
 * The memory changes while the adapter uses it, which ThreadSanitizer would report. */
__attribute__((no_sanitize("thread"))) static void remote_effects(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_READ, 1, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	volatile uint64_t *there = (void *)p.bb.addr, *here = (void *)p.ba.addr;
	bool in_time = false;
	uint64_t t0;

	(void)me;
	(void)arg;
	for (unsigned i = 0; i < TRIES && !in_time; i++) {
		*there = 0;
		t0 = t_now();
		t_post(p.a, &wr);
		*there = 5;
		in_time = seconds_since(t0) < latency / 2;
		t_done(p.a->scq, 1, IBV_WC_RDMA_READ);
		if (in_time)
			t_eq(*here, 5);
		t_true(seconds_since(t0) >= 2 * latency, "a read came too early");
	}
	t_true(in_time, "no try was in time");
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)p.bb.addr;
	wr.wr.atomic.rkey = p.bb.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	t0 = t_now();
	t_post(p.a, &wr);
	while (*there == 5) {
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "the atomic was not executed");
		sched_yield();
	}
	t_true(seconds_since(t0) >= latency, "its effect came too early");
	t_done(p.a->scq, 1, IBV_WC_FETCH_ADD);
	t_true(seconds_since(t0) >= 2 * latency, "an atomic came too early");
	t_eq(*here, 5);
	t_pair_free(&p);
	t_close(dev);
}

static void test_remote_effects(void **state)
{
	(void)state;
	procs_run(1, NULL, remote_effects, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_receive),
		cmocka_unit_test(test_late_receive_uc),
		cmocka_unit_test(test_remote_effects),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: test_link_way LATENCY_US\n");
		return 2;
	}
	latency = atof(argv[1]) / 1e6;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
