/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_windows_procs.c - memory windows and device memory that another process owns: access by key,
 * invalidation by the peer's send, and the owner's death.
 */
#include "procs.h"
#include "windows.h"

enum { OWNER, PEER };
enum key { K_QP = 0, K_ADDR = 8, K_KEY, K_OTHER_KEY, K_STEP, K_NEVER };

#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define REMOTE   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static const unsigned nodes[] = {0, 1};

struct side {
	struct t_dev *dev;
	struct t_qp *q;
	struct t_buf own; /* of the owner: what windows are bound to */
};

static struct side side_open(unsigned me)
{
	struct side s = {.dev = t_open()};
	struct t_params params = t_params_quick(s.dev, 1);

	s.q = t_qp(s.dev, NULL);
	s.own = t_buf_in(s.dev->pd, T_REGION, me == OWNER ? BINDABLE : T_FULL_ACCESS);
	procs_connect(s.q, !me, K_QP, &params);
	procs_barrier();
	return s;
}

static void side_close(struct side *side)
{
	procs_barrier();
	t_qp_free(side->q);
	t_buf_free(&side->own);
	t_close(side->dev);
}

/* Posts an operation of n bytes from the start of the own buffer. Returns its status. */
static enum ibv_wc_status try(struct side *side, enum ibv_wr_opcode op, uint64_t addr, uint32_t key,
			      size_t n)
{
	struct ibv_sge sge = t_sge(&side->own, 0, n);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, addr, key);
	struct ibv_wc wc;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 9;
	}
	t_post(side->q, &wr);
	t_poll(side->q->scq, &wc, 1);
	t_eq(wc.wr_id, 1);
	return wc.status;
}

/* Writes, reads and changes what the owner's key names, n bytes from addr on: a word is 9 at last.
 */
static void use(struct side *side, uint64_t addr, uint32_t key, size_t n)
{
	uint64_t *word = (uint64_t *)(void *)side->own.addr;

	t_fill(side->own.addr, n, 5);
	t_eq(try(side, IBV_WR_RDMA_WRITE, addr, key, n), IBV_WC_SUCCESS);
	memset(side->own.addr, 0, n);
	t_eq(try(side, IBV_WR_RDMA_READ, addr, key, n), IBV_WC_SUCCESS);
	t_check(side->own.addr, n, 5);
	*word = 0;
	t_eq(try(side, IBV_WR_RDMA_WRITE, addr, key, sizeof(*word)), IBV_WC_SUCCESS);
	t_eq(try(side, IBV_WR_ATOMIC_FETCH_AND_ADD, addr, key, sizeof(*word)), IBV_WC_SUCCESS);
	t_eq(*word, 0);
	t_eq(try(side, IBV_WR_ATOMIC_CMP_AND_SWP, addr, key, sizeof(*word)), IBV_WC_SUCCESS);
	t_eq(*word, 5);
}

/* ---- windows ---- */

/* Tells the peer of a binding. */
static void tell(const struct ibv_mw_bind_info *info, uint32_t key)
{
	procs_put(K_ADDR, info->addr);
	procs_put(K_KEY, key);
}

static void own_type_1(struct side *s)
{
	struct ibv_mw *mw = t_mw(s->dev, IBV_MW_TYPE_1);
	struct ibv_mw_bind_info info = t_part(&s->own, REMOTE);
	uint64_t *word = (uint64_t *)(uintptr_t)info.addr;

	t_eq(t_bind_1(s->q, mw, info), IBV_WC_SUCCESS);
	tell(&info, mw->rkey);
	procs_barrier();
	t_eq(*word, 9);
	t_check_byte(s->own.addr, T_PART, 0);
	info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	t_eq(t_bind_1(s->q, mw, info), IBV_WC_SUCCESS);
	procs_put(K_OTHER_KEY, mw->rkey);
	procs_barrier();
	t_await_state(s->q, IBV_QPS_ERR);
	t_eq(*word, 9);
	t_ok(ibv_dealloc_mw(mw));
}

static void type_1(unsigned me, void *arg)
{
	struct side s = side_open(me);
	uint64_t addr;
	uint32_t key;

	(void)arg;
	if (me == OWNER) {
		memset(s.own.addr, 0, T_REGION);
		own_type_1(&s);
		side_close(&s);
		return;
	}
	addr = procs_get(OWNER, K_ADDR);
	key = (uint32_t)procs_get(OWNER, K_KEY);
	use(&s, addr, key, T_PART);
	procs_barrier();
	/* Another binding: for reads alone. */
	t_eq(try(&s, IBV_WR_RDMA_READ, addr, (uint32_t)procs_get(OWNER, K_OTHER_KEY), 8),
	     IBV_WC_SUCCESS);
	t_eq(try(&s, IBV_WR_RDMA_WRITE, addr, key, 8), IBV_WC_REM_ACCESS_ERR);
	procs_barrier();
	side_close(&s);
}

static void test_type_1(void **state)
{
	(void)state;
	procs_run(2, nodes, type_1, NULL);
}

/* Checks an access that the binding doesn't allow: a case of the table each. */
static const struct refused {
	enum ibv_wr_opcode op;
	unsigned access; /* of the binding */
	int64_t offset;
	size_t n;
} refusals[] = {
	{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ, 0, 8},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE, 0, 8},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_WRITE, 0, 8},
	{IBV_WR_RDMA_WRITE, REMOTE, -1, 8},
	{IBV_WR_RDMA_WRITE, REMOTE, T_PART - 7, 8},
	{IBV_WR_RDMA_WRITE, REMOTE, 0, T_PART + 1},
};

static void refusal(unsigned me, void *arg)
{
	const struct refused *refused = arg;
	struct side s = side_open(me);
	struct ibv_mw *mw = NULL;

	if (me == OWNER) {
		struct ibv_mw_bind_info info = t_part(&s.own, refused->access);

		memset(s.own.addr, 0, T_REGION);
		mw = t_mw(s.dev, IBV_MW_TYPE_2);
		t_eq(t_bind_2(s.q, mw, ibv_inc_rkey(mw->rkey), info), IBV_WC_SUCCESS);
		tell(&info, ibv_inc_rkey(mw->rkey));
	} else {
		uint64_t addr = procs_get(OWNER, K_ADDR) + (uint64_t)refused->offset;

		memset(s.own.addr, 0xee, refused->n);
		t_eq(try(&s, refused->op, addr, (uint32_t)procs_get(OWNER, K_KEY), refused->n),
		     IBV_WC_REM_ACCESS_ERR);
	}
	procs_barrier();
	if (mw) {
		t_check_byte(s.own.addr, T_REGION, 0);
		t_ok(ibv_dealloc_mw(mw));
	}
	side_close(&s);
}

static void test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		procs_run(2, nodes, refusal, (void *)(uintptr_t)&refusals[i]);
}

/* ---- invalidation ---- */

static void own_invalidated(struct side *s)
{
	struct ibv_mw *mw = t_mw(s->dev, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = t_part(&s->own, REMOTE);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_wc wc;

	t_recv(s->q, 2, NULL, 0);
	t_recv(s->q, 3, NULL, 0);
	t_eq(t_bind_2(s->q, mw, key, info), IBV_WC_SUCCESS);
	tell(&info, key);
	wc = t_next(s->q->rcq, 2, IBV_WC_SUCCESS);
	t_true(wc.wc_flags & IBV_WC_WITH_INV, "the receive names no key");
	t_eq(wc.invalidated_rkey, key);
	/* The window is free again: it can be bound by another key. */
	key = ibv_inc_rkey(key);
	t_eq(t_bind_2(s->q, mw, key, info), IBV_WC_SUCCESS);
	procs_put(K_OTHER_KEY, key);
	t_next(s->q->rcq, 3, IBV_WC_LOC_PROT_ERR);
	procs_barrier();
	t_ok(ibv_dealloc_mw(mw));
}

static enum ibv_wc_status send_with_inv(struct side *s, uint32_t key)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_INV, 4, NULL, 0);
	struct ibv_wc wc;

	wr.invalidate_rkey = key;
	t_post(s->q, &wr);
	t_poll(s->q->scq, &wc, 1);
	t_eq(wc.wr_id, 4);
	return wc.status;
}

static void invalidated(unsigned me, void *arg)
{
	struct side s = side_open(me);
	uint32_t key;

	(void)arg;
	if (me == OWNER) {
		own_invalidated(&s);
		side_close(&s);
		return;
	}
	key = (uint32_t)procs_get(OWNER, K_KEY);
	use(&s, procs_get(OWNER, K_ADDR), key, T_PART);
	t_eq(send_with_inv(&s, key), IBV_WC_SUCCESS);
	use(&s, procs_get(OWNER, K_ADDR), (uint32_t)procs_get(OWNER, K_OTHER_KEY), T_PART);
	t_eq(send_with_inv(&s, key), IBV_WC_REM_ACCESS_ERR);
	procs_barrier();
	side_close(&s);
}

static void test_invalidated(void **state)
{
	(void)state;
	procs_run(2, nodes, invalidated, NULL);
}

/* Checks that the key of a send with invalidation opens nothing any more. */
static void used_after(unsigned me, void *arg)
{
	struct side s = side_open(me);
	struct ibv_mw *mw = NULL;

	(void)arg;
	if (me == OWNER) {
		struct ibv_mw_bind_info info = t_part(&s.own, REMOTE);

		memset(s.own.addr, 0, T_REGION);
		mw = t_mw(s.dev, IBV_MW_TYPE_2);
		t_recv(s.q, 2, NULL, 0);
		t_eq(t_bind_2(s.q, mw, ibv_inc_rkey(mw->rkey), info), IBV_WC_SUCCESS);
		tell(&info, ibv_inc_rkey(mw->rkey));
		t_next(s.q->rcq, 2, IBV_WC_SUCCESS);
	} else {
		uint32_t key = (uint32_t)procs_get(OWNER, K_KEY);

		memset(s.own.addr, 0xee, 8);
		t_eq(send_with_inv(&s, key), IBV_WC_SUCCESS);
		t_eq(try(&s, IBV_WR_RDMA_WRITE, procs_get(OWNER, K_ADDR), key, 8),
		     IBV_WC_REM_ACCESS_ERR);
	}
	procs_barrier();
	if (mw) {
		t_check_byte(s.own.addr, T_REGION, 0);
		t_ok(ibv_dealloc_mw(mw));
	}
	side_close(&s);
}

static void test_used_after(void **state)
{
	(void)state;
	procs_run(2, nodes, used_after, NULL);
}

/* ---- device memory ---- */

/* Allocates device memory and registers all of it. */
static struct ibv_mr *reg_dm(struct side *s, struct ibv_dm **dm)
{
	struct ibv_alloc_dm_attr attr = {.length = T_PART};
	struct ibv_mr *mr;

	*dm = ibv_alloc_dm(s->dev->ctx, &attr);
	t_true(*dm, "ibv_alloc_dm: %s", strerror(errno));
	mr = ibv_reg_dm_mr(s->dev->pd, *dm, 0, T_PART, T_FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
	t_true(mr, "ibv_reg_dm_mr: %s", strerror(errno));
	return mr;
}

static void device_memory(unsigned me, void *arg)
{
	struct side s = side_open(me);
	uint64_t words[2] = {0, 0x0123456789abcdef};
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	(void)arg;
	if (me == PEER) {
		uint32_t key = (uint32_t)procs_get(OWNER, K_KEY);

		use(&s, 0, key, T_PART);
		procs_barrier();
		procs_barrier();
		t_eq(try(&s, IBV_WR_RDMA_READ, 8, key, 8), IBV_WC_SUCCESS);
		t_eq(*(uint64_t *)(void *)s.own.addr, words[1]);
		t_eq(try(&s, IBV_WR_RDMA_READ, T_PART - 7, key, 8), IBV_WC_REM_ACCESS_ERR);
		side_close(&s);
		return;
	}
	mr = reg_dm(&s, &dm);
	procs_put(K_KEY, mr->rkey);
	procs_barrier();
	t_ok(ibv_memcpy_from_dm(words, dm, 0, 8));
	t_eq(words[0], 9);
	t_ok(ibv_memcpy_to_dm(dm, 8, &words[1], 8));
	procs_barrier();
	t_await_state(s.q, IBV_QPS_ERR);
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_free_dm(dm));
	side_close(&s);
}

static void test_device_memory(void **state)
{
	(void)state;
	procs_run(2, nodes, device_memory, NULL);
}

/* ---- an owner that dies ---- */

/* Waits to be killed, as the owner; or uses what is left of it. */
static void orphan(unsigned me, void *arg)
{
	bool of_device = arg != NULL;
	struct side s = side_open(me);

	if (me == OWNER) {
		struct ibv_mw_bind_info info = t_part(&s.own, REMOTE);
		struct ibv_mw *mw;
		struct ibv_dm *dm;

		t_untidy();
		if (of_device) {
			info.addr = 0;
			tell(&info, reg_dm(&s, &dm)->rkey);
		} else {
			mw = t_mw(s.dev, IBV_MW_TYPE_1);
			t_eq(t_bind_1(s.q, mw, info), IBV_WC_SUCCESS);
			tell(&info, mw->rkey);
		}
		procs_get(PROCS_PARENT, K_NEVER);
	}
	use(&s, procs_get(OWNER, K_ADDR), (uint32_t)procs_get(OWNER, K_KEY), T_PART);
	procs_put(K_STEP, 1);
	procs_get(PROCS_PARENT, K_STEP);
	t_eq(try(&s, IBV_WR_RDMA_WRITE, procs_get(OWNER, K_ADDR), (uint32_t)procs_get(OWNER, K_KEY),
		 8),
	     IBV_WC_RETRY_EXC_ERR);
	side_close(&s);
}

static void run_orphan(void *of_device)
{
	procs_start(2, nodes, orphan, of_device);
	procs_wait_for(PEER, K_STEP, 1);
	procs_kill(OWNER);
	procs_put(K_STEP, 1);
	procs_finish();
}

static void test_orphans(void **state)
{
	static char yes;

	(void)state;
	run_orphan(NULL);
	run_orphan(&yes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),        cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_invalidated),   cmocka_unit_test(test_used_after),
		cmocka_unit_test(test_device_memory), cmocka_unit_test(test_orphans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
