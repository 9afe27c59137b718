/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uc_procs.c - UC between processes: a message that is lost half-way, because its receiver is
 * stopped, takes no receive with it. The next message gets that receive (IBA 9.8.2.2).
 */
#include "procs.h"

enum key { K_ADDR, K_POSTED = 4, K_STOPPED, K_SENT, K_GOES_ON, K_ALL };

enum { RECEIVES = 4, LONG = 60000 };

static void receiver(struct t_qp *qp, struct ibv_sge sge)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < RECEIVES; i++)
		t_recv(qp, i, &sge, 1);
	procs_put(K_POSTED, 1);
	procs_get(1, K_ALL);
	t_ok(t_to_state(qp, IBV_QPS_ERR));
	/* Received or flushed, in their order. */
	for (unsigned i = 0; i < RECEIVES; i++) {
		t_poll(qp->rcq, &wc, 1);
		t_eq(wc.wr_id, i);
		t_true(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR,
		       "receive %u: status %d", i, wc.status);
	}
	t_empty(qp->rcq);
}

static void sender(struct t_qp *qp, struct ibv_sge sge)
{
	procs_get(PROCS_PARENT, K_STOPPED);
	t_send(qp, 1, sge);
	t_next(qp->scq, 1, IBV_WC_SUCCESS);
	procs_put(K_SENT, 1);
	procs_get(PROCS_PARENT, K_GOES_ON);
	t_send(qp, 2, sge);
	t_next(qp->scq, 2, IBV_WC_SUCCESS);
	procs_put(K_ALL, 1);
}

static void both(unsigned me, void *arg)
{
	struct t_spec spec = {.type = IBV_QPT_UC};
	struct t_dev *dev = t_open();
	struct t_qp *qp = t_qp(dev, &spec);
	struct t_buf b = t_buf(dev, LONG);

	(void)arg;
	procs_connect(qp, !me, K_ADDR, NULL);
	if (me)
		sender(qp, t_sge(&b, 0, LONG));
	else
		receiver(qp, t_sge(&b, 0, LONG));
	procs_barrier();
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void test_lost_half_way(void **state)
{
	static const unsigned nodes[] = {0, 1};

	(void)state;
	procs_start(2, nodes, both, NULL);
	procs_get(0, K_POSTED);
	procs_stop(0);
	procs_put(K_STOPPED, 1);
	procs_get(1, K_SENT);
	procs_cont(0);
	procs_put(K_GOES_ON, 1);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
