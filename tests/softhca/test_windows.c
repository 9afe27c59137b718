/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_windows.c [none|three] - memory windows of both types: binding, access, invalidation and
 * their errors; or, with an argument, their absence, or the limit of three.
 */
#include "windows.h"

#define LEN      T_REGION
#define PART     T_PART
#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define OPS                                                                            \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW | \
	 IBV_QP_EX_WITH_LOCAL_INV)

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void test_type_1(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct t_pair other = t_pair(dev, NULL, NULL, LEN);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_1);
	uint64_t at = (uintptr_t)place.region.addr + PART;
	uint32_t key = mw->rkey;

	(void)state;
	t_refused(&place.pair, IBV_WR_RDMA_WRITE, at, key, 8);
	t_eq(t_bind_1(place.pair.b, mw, t_part(&place.region, IBV_ACCESS_REMOTE_WRITE)),
	     IBV_WC_SUCCESS);
	t_true(mw->rkey != key && mw->rkey >> 8 == key >> 8, "the key is 0x%x after 0x%x", mw->rkey,
	       key);
	t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, at, mw->rkey, PART), IBV_WC_SUCCESS);
	t_check((char *)place.region.addr + PART, PART, 77);
	/* Each QP of the protection domain may use the window. */
	t_eq(t_try(&other, IBV_WR_RDMA_WRITE, at + 8, mw->rkey, 8), IBV_WC_SUCCESS);
	/* The region allows no access to peers; the window only what it was bound for. */
	t_refused(&other, IBV_WR_RDMA_WRITE, at, place.region.mr->rkey, 8);
	t_refused(&other, IBV_WR_RDMA_READ, at, mw->rkey, 8);
	t_refused(&other, IBV_WR_ATOMIC_FETCH_AND_ADD, at, mw->rkey, 8);
	t_refused(&other, IBV_WR_RDMA_WRITE, at - 1, mw->rkey, 8);
	t_refused(&other, IBV_WR_RDMA_WRITE, at + PART - 7, mw->rkey, 8);
	t_refused(&other, IBV_WR_RDMA_WRITE, at, key, 8);
	/* Another binding takes the place of the first one. */
	key = mw->rkey;
	t_eq(t_bind_1(place.pair.b, mw,
		      t_part(&place.region, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)),
	     IBV_WC_SUCCESS);
	t_eq(t_try(&other, IBV_WR_RDMA_READ, at, mw->rkey, 8), IBV_WC_SUCCESS);
	t_eq(t_try(&other, IBV_WR_ATOMIC_FETCH_AND_ADD, at, mw->rkey, 8), IBV_WC_SUCCESS);
	t_refused(&other, IBV_WR_RDMA_WRITE, at, mw->rkey, 8);
	t_refused(&other, IBV_WR_RDMA_READ, at, key, 8);
	/* A binding without a length ends the last one. */
	t_eq(t_bind_1(place.pair.b, mw, (struct ibv_mw_bind_info){0}), IBV_WC_SUCCESS);
	t_refused(&other, IBV_WR_RDMA_READ, at, mw->rkey, 8);
	t_ok(ibv_dealloc_mw(mw));
	t_pair_free(&other);
	t_place_free(&place);
}

/* Checks that the domain of the requester's peer decides. */
static void test_domains(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct t_place place = t_place(dev, BINDABLE);
	struct t_pair other = t_pair(dev, &(struct t_spec){.pd = pd}, NULL, LEN);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_1), *foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind_info info = t_part(&place.region, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw_bind bind = {.bind_info = info};

	(void)state;
	t_true(foreign, "ibv_alloc_mw: %s", strerror(errno));
	t_eq(t_bind_1(place.pair.b, mw, info), IBV_WC_SUCCESS);
	t_buf_free(&other.ba);
	other.ba = t_buf_in(pd, LEN, T_FULL_ACCESS);
	t_refused(&other, IBV_WR_RDMA_WRITE, info.addr, mw->rkey, 8);
	t_rc(ibv_bind_mw(place.pair.b->qp, foreign, &bind), EPERM);
	/* The QP and the window are of different domains. */
	t_eq(t_bind_2(other.b, mw, mw->rkey + 1, info), IBV_WC_MW_BIND_ERR);
	t_await_state(other.b, IBV_QPS_ERR);
	t_ok(ibv_dealloc_mw(foreign));
	t_ok(ibv_dealloc_mw(mw));
	t_pair_free(&other);
	t_place_free(&place);
	t_ok(ibv_dealloc_pd(pd));
}

static void test_type_2(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct t_pair other = t_pair(dev, NULL, NULL, LEN);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = t_part(&place.region, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw_bind bind = {.bind_info = info};
	uint64_t at = (uintptr_t)place.region.addr + PART;
	uint32_t key = ibv_inc_rkey(mw->rkey);

	(void)state;
	t_rc(ibv_bind_mw(place.pair.b->qp, mw, &bind), EINVAL);
	t_eq(t_bind_2(place.pair.b, mw, key, info), IBV_WC_SUCCESS);
	t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, at, key, PART), IBV_WC_SUCCESS);
	t_check((char *)place.region.addr + PART, PART, 77);
	/* Only the QP that bound the window may be used, and only it ends the binding. */
	t_refused(&other, IBV_WR_RDMA_WRITE, at, key, 8);
	t_eq(t_invalidate(other.b, key), IBV_WC_MW_BIND_ERR);
	t_mend(&other);
	/* A window that is bound can't be bound again. */
	t_eq(t_bind_2(other.b, mw, key + 1, info), IBV_WC_MW_BIND_ERR);
	t_mend(&other);
	t_eq(t_invalidate(place.pair.b, key ^ 0x80), IBV_WC_MW_BIND_ERR);
	t_mend(&place.pair);
	t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, at, key, 8), IBV_WC_SUCCESS);
	t_eq(t_invalidate(place.pair.b, key), IBV_WC_SUCCESS);
	t_refused(&place.pair, IBV_WR_RDMA_WRITE, at, key, 8);
	t_eq(t_invalidate(place.pair.b, key), IBV_WC_MW_BIND_ERR);
	t_mend(&place.pair);
	/* The last 8 bits of a key are the user's, and the others the window's. */
	t_eq(t_bind_2(place.pair.b, mw, (uint32_t)0x12345600 | ((key + 9) & 0xff), info),
	     IBV_WC_SUCCESS);
	key = (key & ~0xffu) | ((key + 9) & 0xff);
	t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, at, key, 8), IBV_WC_SUCCESS);
	t_ok(ibv_dealloc_mw(mw)); /* a window may be bound when it is given back */
	t_refused(&place.pair, IBV_WR_RDMA_WRITE, at, key, 8);
	t_pair_free(&other);
	t_place_free(&place);
}

/* Checks that addresses in a zero-based window begin at 0. */
static void test_zero_based(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info =
		t_part(&place.region, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	struct ibv_mw_bind bind = {.bind_info = info};
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_mw *one = t_mw(dev, IBV_MW_TYPE_1);

	(void)state;
	t_eq(t_bind_2(place.pair.b, mw, key, info), IBV_WC_SUCCESS);
	t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, 100, key, 1000), IBV_WC_SUCCESS);
	t_check((char *)place.region.addr + PART + 100, 1000, 77);
	t_refused(&place.pair, IBV_WR_RDMA_WRITE, PART - 7, key, 8);
	t_rc(ibv_bind_mw(place.pair.b->qp, one, &bind), EINVAL);
	t_ok(ibv_dealloc_mw(one));
	t_ok(ibv_dealloc_mw(mw));
	t_place_free(&place);
}

/* Checks the places that a window can't be bound to. */
static void test_bind_errors(void **state)
{
	static const int regions[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, BINDABLE};
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct t_place place = t_place(dev, regions[i]);
		struct ibv_mw_bind_info info = t_part(&place.region, IBV_ACCESS_REMOTE_WRITE);

		if (i == 2)
			info.length = LEN; /* beyond the region's end */
		t_eq(t_bind_2(place.pair.b, mw, mw->rkey + 1, info), IBV_WC_MW_BIND_ERR);
		t_await_state(place.pair.b, IBV_QPS_ERR);
		t_place_free(&place);
	}
	t_ok(ibv_dealloc_mw(mw));
}

static void test_arguments(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct ibv_mw_bind bind = {.bind_info = t_part(&place.region, 0)};
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_1);
	struct ibv_send_wr wr = t_wr(IBV_WR_BIND_MW, 1, NULL, 0);
	struct ibv_mr *null = ibv_alloc_null_mr(dev->pd);

	(void)state;
	errno = 0;
	t_true(!ibv_alloc_mw(dev->pd, 3) && errno == EINVAL, "type 3: errno %d", errno);
	/* The field for the length in an entry of the send queue has 31 bits. */
	wr.bind_mw.mw = mw;
	wr.bind_mw.bind_info = bind.bind_info;
	wr.bind_mw.bind_info.length = (1ull << 31) + 1;
	t_rc(t_post_try(place.pair.b, &wr), EOPNOTSUPP);
	wr.bind_mw.bind_info = bind.bind_info;
	wr.send_flags |= IBV_SEND_INLINE;
	t_rc(t_post_try(place.pair.b, &wr), EINVAL);
	if (null) {
		bind.bind_info.mr = null;
		t_rc(ibv_bind_mw(place.pair.b->qp, mw, &bind), ENOTSUP);
		t_ok(ibv_dereg_mr(null));
	}
	t_rc(ibv_dealloc_pd(dev->pd), EBUSY);
	t_ok(ibv_dealloc_mw(mw));
	t_place_free(&place);
}

/* Posts a SEND of n bytes that ends the binding of that key. */
static void send_inv(struct t_qp *qp, struct t_buf *from, size_t n, uint32_t key, unsigned flags)
{
	struct ibv_sge sge = t_sge(from, 0, n);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_INV, 21, &sge, 1);

	wr.invalidate_rkey = key;
	wr.send_flags |= flags;
	t_fill(from->addr, n, 5);
	t_post(qp, &wr);
}

static void test_send_with_inv(void **state)
{
	static const size_t sizes[] = {0, 100, 60000};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct t_place place = {.pair = t_pair(dev,
						       &(struct t_spec){.cap = {16, 16, 4, 4, 128}},
						       NULL, 65536),
					.region = t_buf_in(dev->pd, LEN, BINDABLE)};
		struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);
		struct ibv_sge to = t_sge(&place.pair.bb, 0, 65536);
		uint32_t key = ibv_inc_rkey(mw->rkey);
		struct ibv_wc wc;

		t_eq(t_bind_2(place.pair.b, mw, key,
			      t_part(&place.region, IBV_ACCESS_REMOTE_WRITE)),
		     IBV_WC_SUCCESS);
		t_recv(place.pair.b, 20, &to, 1);
		t_recv(place.pair.b, 22, &to, 1);
		send_inv(place.pair.a, &place.pair.ba, sizes[i], key,
			 sizes[i] == 100 ? IBV_SEND_INLINE : 0);
		wc = t_next(place.pair.b->rcq, 20, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV);
		t_eq(wc.wc_flags & (IBV_WC_WITH_INV | IBV_WC_WITH_IMM), IBV_WC_WITH_INV);
		t_eq(wc.invalidated_rkey, key);
		t_eq(wc.byte_len, sizes[i]);
		t_check(place.pair.bb.addr, sizes[i], 5);
		t_done(place.pair.a->scq, 21, IBV_WC_SEND);
		/* The key names no binding any more. */
		send_inv(place.pair.a, &place.pair.ba, sizes[i], key, 0);
		t_next(place.pair.a->scq, 21, IBV_WC_REM_ACCESS_ERR);
		t_next(place.pair.b->rcq, 22, IBV_WC_LOC_PROT_ERR);
		t_await_state(place.pair.b, IBV_QPS_ERR);
		t_ok(ibv_dereg_mr(place.region.mr));
		place.region.mr = ibv_reg_mr(dev->pd, place.region.addr, LEN, BINDABLE);
		t_ok(ibv_dealloc_mw(mw));
		t_place_free(&place);
	}
}

/* Checks that a peer ends no binding of a window of type 1, or of another QP. */
static void test_inv_of_others(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct t_pair other = t_pair(dev, NULL, NULL, LEN);
	struct ibv_mw *one = t_mw(dev, IBV_MW_TYPE_1), *two = t_mw(dev, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = t_part(&place.region, IBV_ACCESS_REMOTE_WRITE);
	uint64_t at = (uintptr_t)place.region.addr + PART;
	struct ibv_sge to = t_sge(&other.bb, 0, LEN);
	uint32_t keys[3] = {0, ibv_inc_rkey(two->rkey), place.region.mr->rkey};

	(void)state;
	t_eq(t_bind_1(place.pair.b, one, info), IBV_WC_SUCCESS);
	keys[0] = one->rkey;
	t_eq(t_bind_2(place.pair.b, two, keys[1], info), IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		t_recv(other.b, 22, &to, 1);
		send_inv(other.a, &other.ba, 8, keys[i], 0);
		t_next(other.a->scq, 21, IBV_WC_REM_ACCESS_ERR);
		t_next(other.b->rcq, 22, IBV_WC_LOC_PROT_ERR);
		t_mend(&other);
	}
	for (int i = 0; i < 2; i++)
		t_eq(t_try(&place.pair, IBV_WR_RDMA_WRITE, at, keys[i], 8), IBV_WC_SUCCESS);
	t_ok(ibv_dealloc_mw(one));
	t_ok(ibv_dealloc_mw(two));
	t_pair_free(&other);
	t_place_free(&place);
}

/* Checks the calls of the extended posting interface. */
static void test_extended(void **state)
{
	const struct t_spec spec = {.cap = {16, 16, 4, 4, 128}, .send_ops = OPS};
	struct t_pair p = t_pair(dev, &spec, NULL, LEN);
	struct t_buf region = t_buf_in(dev->pd, LEN, BINDABLE);
	struct ibv_mw_bind_info info = t_part(&region, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);
	struct ibv_sge to = t_sge(&p.bb, 0, LEN);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_wc wc;

	(void)state;
	ibv_wr_start(p.b->qpx);
	p.b->qpx->wr_flags = IBV_SEND_SIGNALED;
	p.b->qpx->wr_id = 31;
	ibv_wr_bind_mw(p.b->qpx, mw, key, &info);
	p.b->qpx->wr_id = 32;
	ibv_wr_local_inv(p.b->qpx, key);
	p.b->qpx->wr_id = 33;
	ibv_wr_bind_mw(p.b->qpx, mw, key + 1, &info);
	t_ok(ibv_wr_complete(p.b->qpx));
	t_done(p.b->scq, 31, IBV_WC_BIND_MW);
	t_done(p.b->scq, 32, IBV_WC_LOCAL_INV);
	t_done(p.b->scq, 33, IBV_WC_BIND_MW);
	t_recv(p.b, 34, &to, 1);
	ibv_wr_start(p.a->qpx);
	p.a->qpx->wr_flags = IBV_SEND_SIGNALED;
	p.a->qpx->wr_id = 35;
	ibv_wr_send_inv(p.a->qpx, key + 1);
	ibv_wr_set_inline_data(p.a->qpx, "inline", 6);
	t_ok(ibv_wr_complete(p.a->qpx));
	t_done(p.a->scq, 35, IBV_WC_SEND);
	wc = t_next(p.b->rcq, 34, IBV_WC_SUCCESS);
	t_eq(wc.invalidated_rkey, key + 1);
	t_mem_eq(p.bb.addr, "inline", 6);
	info.length = (1ull << 31) + 1;
	ibv_wr_start(p.b->qpx);
	ibv_wr_bind_mw(p.b->qpx, mw, key, &info);
	t_rc(ibv_wr_complete(p.b->qpx), EOPNOTSUPP);
	t_ok(ibv_dealloc_mw(mw));
	t_buf_free(&region);
	t_pair_free(&p);
}

/* Checks that a context that is closed takes its windows along. */
static void test_left(void **state)
{
	struct t_dev *own = t_open();

	(void)state;
	t_true(ibv_alloc_mw(own->pd, IBV_MW_TYPE_2), "ibv_alloc_mw: %s", strerror(errno));
	t_rc(ibv_dealloc_pd(own->pd), EBUSY);
	t_ok(ibv_close_device(own->ctx));
	t_untidy();
}

static void test_none(void **state)
{
	struct t_spec spec = {.send_ops = IBV_QP_EX_WITH_LOCAL_INV};
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_send_wr wr = t_wr(IBV_WR_LOCAL_INV, 1, NULL, 0);
	struct ibv_device_attr attr;

	(void)state;
	errno = 0;
	t_true(!ibv_alloc_mw(dev->pd, IBV_MW_TYPE_1) && errno == EOPNOTSUPP,
	       "ibv_alloc_mw: errno %d", errno);
	t_rc(t_post_try(p.a, &wr), EOPNOTSUPP);
	errno = 0;
	t_true(!t_qp_try(dev, &spec) && errno == EOPNOTSUPP, "ibv_create_qp_ex: errno %d", errno);
	t_ok(ibv_query_device(dev->ctx, &attr));
	t_eq(attr.max_mw, 0);
	t_eq(attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B), 0);
	t_pair_free(&p);
}

static void test_three(void **state)
{
	struct ibv_mw *mw[3];
	struct ibv_device_attr attr;

	(void)state;
	t_ok(ibv_query_device(dev->ctx, &attr));
	t_eq(attr.max_mw, 3);
	for (int i = 0; i < 3; i++)
		mw[i] = t_mw(dev, IBV_MW_TYPE_1);
	errno = 0;
	t_true(!ibv_alloc_mw(dev->pd, IBV_MW_TYPE_1) && errno == ENOMEM, "a fourth: errno %d",
	       errno);
	for (int i = 0; i < 3; i++)
		t_ok(ibv_dealloc_mw(mw[i]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),        cmocka_unit_test(test_domains),
		cmocka_unit_test(test_type_2),        cmocka_unit_test(test_zero_based),
		cmocka_unit_test(test_bind_errors),   cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_send_with_inv), cmocka_unit_test(test_inv_of_others),
		cmocka_unit_test(test_extended),      cmocka_unit_test(test_left),
	};
	const struct CMUnitTest absent[] = {cmocka_unit_test(test_none)};
	const struct CMUnitTest limit[] = {cmocka_unit_test(test_three)};
	const char *kind = argc > 1 ? argv[1] : "";

	if (!strcmp(kind, "none"))
		return cmocka_run_group_tests_name("no windows", absent, setup, t_teardown);
	if (!strcmp(kind, "three"))
		return cmocka_run_group_tests_name("three windows", limit, setup, t_teardown);
	return cmocka_run_group_tests_name("windows", tests, setup, t_teardown);
}
