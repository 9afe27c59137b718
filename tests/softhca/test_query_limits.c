/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_query_limits.c - features and resources that options take away are neither advertised nor
 * given. The program's line in suite.list has the options.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>

#include <infiniband/verbs.h>

#include "util.h"

static void test_devices(void **state)
{
	struct ibv_device **list;
	struct ibv_context *other;
	struct ibv_port_attr a, b;
	int n;

	(void)state;
	list = ibv_get_device_list(&n);
	t_holds(list != NULL);
	t_eq(n, 2);
	t_holds(list[2] == NULL);
	t_str_eq(ibv_get_device_name(list[0]), "softhca0");
	t_str_eq(ibv_get_device_name(list[1]), "softhca1");
	t_str_eq(list[1]->dev_name, "uverbs1");
	t_eq(ibv_get_device_index(list[1]), 1);
	t_holds(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	other = ibv_open_device(list[1]);
	t_holds(other != NULL);
	t_eq(ibv_query_port(t_ctx, 1, &a), 0);
	t_eq(ibv_query_port(other, 1, &b), 0);
	t_holds(a.lid != b.lid);
	t_eq(ibv_close_device(other), 0);
	ibv_free_device_list(list);
}

static void test_limits(void **state)
{
	struct ibv_device_attr a;

	(void)state;
	t_eq(ibv_query_device(t_ctx, &a), 0);
	t_eq(a.vendor_id, 0x8086);
	t_eq(a.vendor_part_id, 5522);
	t_eq(a.max_qp, 8);
	t_eq(a.max_qp_wr, 60);
	t_eq(a.max_sge, 4);
	t_eq(a.max_sge_rd, 4);
	t_eq(a.max_qp_rd_atom, 2);
	t_eq(a.max_qp_init_rd_atom, 2);
	t_eq(a.max_res_rd_atom, 16);
	t_eq(a.max_cq, 6);
	t_eq(a.max_cqe, 100);
	t_eq(a.max_srq, 3);
	t_eq(a.max_srq_wr, 32);
	t_eq(a.max_srq_sge, 2);
	t_eq(a.max_mr, 9);
	t_holds(a.max_mr_size == 1 << 20);
	t_eq(a.max_pd, 4);
	t_eq(a.max_mcast_grp, 2);
	t_eq(a.max_pkeys, 2);
	t_eq(a.atomic_cap, IBV_ATOMIC_NONE);
	t_holds(!(a.device_cap_flags & IBV_DEVICE_XRC));
}

static void test_caps(void **state)
{
	struct ibv_device_attr_ex a;

	(void)state;
	t_eq(ibv_query_device_ex(t_ctx, NULL, &a), 0);
	t_holds(a.odp_caps.general_caps == 0);
	t_eq(a.odp_caps.per_transport_caps.rc_odp_caps, 0);
	t_eq(a.odp_caps.per_transport_caps.uc_odp_caps, 0);
	t_eq(a.odp_caps.per_transport_caps.ud_odp_caps, 0);
	t_eq(a.xrc_odp_caps, 0);
	t_holds(!(a.device_cap_flags_ex & IBV_DEVICE_XRC));
}

static void test_port(void **state)
{
	struct ibv_port_attr a;

	(void)state;
	t_eq(ibv_query_port(t_ctx, 1, &a), 0);
	t_eq(a.max_msg_sz, 65536);
	t_eq(a.active_mtu, IBV_MTU_1024);
	t_eq(a.max_mtu, IBV_MTU_4096);
	t_eq(a.pkey_tbl_len, 2);
}

static void test_pkeys(void **state)
{
	__be16 pkey;

	(void)state;
	t_eq(ibv_query_pkey(t_ctx, 1, 1, &pkey), 0);
	t_eq(be16toh(pkey), 0x8001);
	t_eq(ibv_get_pkey_index(t_ctx, 1, htobe16(0x8001)), 1);
	/* The partition with limited membership is another entry of the table. */
	t_holds(ibv_get_pkey_index(t_ctx, 1, htobe16(0x0001)) < 0);
	t_holds(ibv_query_pkey(t_ctx, 1, 2, &pkey) != 0);
}

static void test_max_pd(void **state)
{
	struct ibv_pd *pd[4];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			pd[i] = ibv_alloc_pd(t_ctx);
			t_holds(pd[i] != NULL);
		}
		errno = 0;
		t_holds(ibv_alloc_pd(t_ctx) == NULL);
		t_eq(errno, ENOMEM);
		for (int i = 0; i < 4; i++)
			t_eq(ibv_dealloc_pd(pd[i]), 0);
	}
}

static void test_refused(void **state)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
	};
	struct ibv_qp_open_attr open = {0};
	struct ibv_sge sge = {0};
	struct ibv_pd *pd = ibv_alloc_pd(t_ctx);

	(void)state;
	t_holds(pd != NULL);
	errno = 0;
	t_holds(ibv_open_xrcd(t_ctx, &xrcd) == NULL);
	t_eq(errno, EOPNOTSUPP);
	errno = 0;
	t_holds(ibv_open_qp(t_ctx, &open) == NULL);
	t_eq(errno, EOPNOTSUPP);
	errno = 0;
	t_holds(ibv_alloc_null_mr(pd) == NULL);
	t_eq(errno, EOPNOTSUPP);
	t_eq(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
	t_eq(ibv_dealloc_pd(pd), 0);
}

/* Checks that without atomics none can be posted, and no QP can be created for them. */
static void test_no_atomics(void **state)
{
	struct t_dev *dev = t_open();
	struct t_spec spec = {.cap = {4, 4, 1, 1, 0}};
	struct ibv_send_wr wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, NULL, 0, 0, 0);
	struct t_params p = t_params(dev);
	struct t_qp *qp = t_qp(dev, &spec);

	(void)state;
	p.max_rd_atomic = p.max_dest_rd_atomic = 2;
	t_connect(qp, qp, &p);
	t_rc(t_post_try(qp, &wr), EOPNOTSUPP);
	t_qp_free(qp);
	spec.send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
	t_null(t_qp_try(dev, &spec), EOPNOTSUPP);
	spec.send_ops = IBV_QP_EX_WITH_SEND;
	t_qp_free(t_qp(dev, &spec));
	t_close(dev);
}

/* Checks that as many objects as were advertised can be made, and not one more; then again. */
static void test_counts(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(t_ctx);
	struct ibv_qp_init_attr qa = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 4, .max_sge = 1}};
	static char mem[4096];
	struct ibv_cq *cq[6];
	struct ibv_qp *qp[8];
	struct ibv_srq *srq[3];
	struct ibv_mr *mr[9];

	(void)state;
	t_holds(pd != NULL);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 6; i++)
			t_holds((cq[i] = ibv_create_cq(t_ctx, 10, NULL, NULL, 0)) != NULL);
		t_holds(ibv_create_cq(t_ctx, 10, NULL, NULL, 0) == NULL);
		t_eq(errno, ENOMEM);
		qa.send_cq = qa.recv_cq = cq[0];
		for (int i = 0; i < 8; i++)
			t_holds((qp[i] = ibv_create_qp(pd, &qa)) != NULL);
		t_holds(ibv_create_qp(pd, &qa) == NULL);
		t_eq(errno, ENOMEM);
		for (int i = 0; i < 3; i++)
			t_holds((srq[i] = ibv_create_srq(pd, &sa)) != NULL);
		t_holds(ibv_create_srq(pd, &sa) == NULL);
		t_eq(errno, ENOMEM);
		for (int i = 0; i < 9; i++)
			t_holds((mr[i] = ibv_reg_mr(pd, mem, sizeof(mem), 0)) != NULL);
		t_holds(ibv_reg_mr(pd, mem, sizeof(mem), 0) == NULL);
		t_eq(errno, ENOMEM);
		for (int i = 0; i < 9; i++)
			t_eq(ibv_dereg_mr(mr[i]), 0);
		for (int i = 0; i < 3; i++)
			t_eq(ibv_destroy_srq(srq[i]), 0);
		for (int i = 0; i < 8; i++)
			t_eq(ibv_destroy_qp(qp[i]), 0);
		for (int i = 0; i < 6; i++)
			t_eq(ibv_destroy_cq(cq[i]), 0);
	}
	t_eq(ibv_dealloc_pd(pd), 0);
}

/* Checks that no object is larger than advertised. */
static void test_sizes(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(t_ctx);
	struct ibv_cq *cq = ibv_create_cq(t_ctx, 100, NULL, NULL, 0);
	static const struct ibv_qp_cap good = {60, 60, 4, 4, 0}, bad[] = {{61, 1, 1, 1, 0},
									  {1, 61, 1, 1, 0},
									  {1, 1, 5, 1, 0},
									  {1, 1, 1, 5, 0}};
	struct ibv_qp_init_attr qa = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = good};
	struct ibv_srq_init_attr sa = {.attr = {.max_wr = 33, .max_sge = 1}};
	static char mem[(1 << 20) + 4096];
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;

	(void)state;
	t_holds(pd && cq);
	t_holds(ibv_create_cq(t_ctx, 101, NULL, NULL, 0) == NULL);
	t_eq(errno, EINVAL);
	t_holds((qp = ibv_create_qp(pd, &qa)) != NULL);
	/* Rounding up ends at the limit, too. */
	t_eq(qa.cap.max_send_wr, 60);
	t_eq(qa.cap.max_recv_wr, 60);
	t_eq(ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     0);
	for (int i = 0; i < 60; i++)
		t_eq(ibv_post_recv(qp, &recv, &bad_recv), 0);
	t_eq(ibv_post_recv(qp, &recv, &bad_recv), ENOMEM);
	t_eq(ibv_destroy_qp(qp), 0);
	t_eq(cq->cqe, 100);
	t_eq(ibv_resize_cq(cq, 70), 0);
	t_eq(cq->cqe, 100);
	for (int i = 0; i < 4; i++) {
		qa.cap = bad[i];
		errno = 0;
		t_holds(ibv_create_qp(pd, &qa) == NULL);
		t_holds(errno == EINVAL || errno == ENOMEM);
	}
	errno = 0;
	t_holds(ibv_create_srq(pd, &sa) == NULL);
	t_holds(errno == EINVAL || errno == ENOMEM);
	sa.attr.max_wr = 32;
	t_holds((srq = ibv_create_srq(pd, &sa)) != NULL);
	t_eq(sa.attr.max_wr, 32);
	t_eq(ibv_destroy_srq(srq), 0);
	t_holds((mr = ibv_reg_mr(pd, mem, 1 << 20, 0)) != NULL);
	t_eq(ibv_dereg_mr(mr), 0);
	t_holds(ibv_reg_mr(pd, mem, (1 << 20) + 1, 0) == NULL);
	t_eq(errno, EINVAL);
	t_eq(ibv_destroy_cq(cq), 0);
	t_eq(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_caps),    cmocka_unit_test(test_port),
		cmocka_unit_test(test_pkeys),   cmocka_unit_test(test_max_pd),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_sizes),   cmocka_unit_test(test_no_atomics),
	};

	return cmocka_run_group_tests(tests, t_context_setup, t_context_teardown);
}
