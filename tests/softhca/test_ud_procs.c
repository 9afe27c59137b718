/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ud_procs.c - UD between processes and nodes: datagrams by LID and with a GRH, an answer by
 * the completion's fields, and multicast. Child 0 is on the first node, the others on the second.
 */
#include <arpa/inet.h>

#include "procs.h"

enum key { K_QP = 0, K_STEP = 8, K_NEVER };
enum { LEN = 1000, SLOT = 2048 };

static const unsigned nodes[] = {0, 1, 1};

struct end {
	struct t_dev *dev;
	struct t_qp *q;
	struct t_buf b; /* a message to send, then a slot that receives */
};

static struct end open_end(void)
{
	struct t_spec spec = {.type = IBV_QPT_UD};
	struct end e = {.dev = t_open()};
	struct ibv_sge in;

	e.q = t_qp(e.dev, &spec);
	e.b = t_buf(e.dev, 2 * SLOT);
	in = t_sge(&e.b, SLOT, SLOT);
	t_up(e.q, NULL, NULL);
	procs_put_addr(K_QP, e.q);
	for (unsigned i = 0; i < 4; i++)
		t_recv(e.q, i, &in, 1);
	procs_barrier();
	return e;
}

static void free_end(struct end *end)
{
	t_qp_free(end->q);
	t_buf_free(&end->b);
	t_close(end->dev);
}

static void close_end(struct end *end)
{
	procs_barrier();
	free_end(end);
}

static void send_to(struct end *end, struct ibv_ah *ah, uint32_t qpn, unsigned seed)
{
	struct ibv_sge out = t_sge(&end->b, 0, LEN);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, seed, &out, 1);

	t_fill(end->b.addr, LEN, seed);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	t_post(end->q, &wr);
	t_done(end->q->scq, seed, IBV_WC_SEND);
}

/* Takes the next message, which is in the n-th receive. */
static struct ibv_wc take(struct end *end, uint64_t n, unsigned seed)
{
	struct ibv_wc wc = t_next(end->q->rcq, n, IBV_WC_SUCCESS);

	t_eq(wc.byte_len, T_GRH + LEN);
	t_check(end->b.addr + SLOT + T_GRH, LEN, seed);
	return wc;
}

static void unicast(unsigned me, void *arg)
{
	bool grh = *(bool *)arg;
	struct end e = open_end();
	struct t_addr peer = procs_get_addr(!me, K_QP);
	struct ibv_ah *ah;

	if (me == 0) {
		ah = t_ah(e.dev, &peer, grh);
		send_to(&e, ah, peer.qpn, 5);
		take(&e, 0, 6); /* the answer */
	} else {
		struct ibv_wc wc = take(&e, 0, 5);

		t_eq(wc.src_qp, peer.qpn);
		t_eq(wc.slid, peer.lid);
		t_eq(!!(wc.wc_flags & IBV_WC_GRH), grh || e.dev->roce);
		ah = ibv_create_ah_from_wc(e.dev->pd, &wc, (struct ibv_grh *)(e.b.addr + SLOT), 1);
		t_true(ah, "ibv_create_ah_from_wc: %s", strerror(errno));
		send_to(&e, ah, wc.src_qp, 6);
	}
	t_ok(ibv_destroy_ah(ah));
	close_end(&e);
}

static void test_unicast(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		bool grh = i;

		procs_run(2, nodes, unicast, &grh);
	}
}

/* Sends to the group: to both receivers, to one, and to none. Its QP isn't a member. */
static void send_to_group(struct end *end, const struct t_addr *group)
{
	struct ibv_ah *ah = t_ah(end->dev, group, true);

	for (unsigned i = 0; i < 3; i++) {
		if (i == 2)
			procs_get(PROCS_PARENT, K_STEP);
		send_to(end, ah, group->qpn, i);
		procs_put(K_STEP, i + 1);
		if (i < 2)
			procs_barrier();
	}
	t_empty(end->q->rcq);
	t_ok(ibv_destroy_ah(ah));
}

/* Receives as a member of the group. After the first message receiver 1 leaves the group, and after
 * the second one receiver 2 is killed. */
static void receive_from_group(struct end *end, const struct t_addr *group, unsigned me)
{
	procs_wait_for(0, K_STEP, 1);
	take(end, 0, 0);
	if (me == 1)
		t_ok(ibv_detach_mcast(end->q->qp, &group->gid, group->lid));
	procs_barrier();
	procs_wait_for(0, K_STEP, 2);
	if (me == 2)
		take(end, 1, 1);
	procs_barrier();
	if (me == 2) {
		procs_put(K_STEP, 1);
		procs_get(0, K_NEVER); /* the parent kills this process here */
	}
	procs_wait_for(0, K_STEP, 3);
	t_none(end->q->rcq, 5);
}

static void multicast(unsigned me, void *arg)
{
	struct end e = open_end();
	struct t_addr group = {.lid = 0xc001, .qpn = 0xffffff};

	(void)arg;
	t_eq(inet_pton(AF_INET6, "ff12:401b:ffff::77", &group.gid), 1);
	if (me)
		t_ok(ibv_attach_mcast(e.q->qp, &group.gid, group.lid));
	procs_barrier();
	if (me)
		receive_from_group(&e, &group, me);
	else
		send_to_group(&e, &group);
	free_end(&e);
}

static void test_multicast(void **state)
{
	(void)state;
	procs_start(3, nodes, multicast, NULL);
	procs_get(2, K_STEP);
	procs_kill(2);
	procs_put(K_STEP, 1);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unicast),
		cmocka_unit_test(test_multicast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
