/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mr.c [no-null] - memory regions: access flags, addresses, keys, re-registration, on-demand
 * paging, the null MR (or, with the argument, its absence).
 */
#include <sys/mman.h>

#include "util.h"

#define LEN 65536

static struct t_dev *dev;
static bool no_null;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Returns the status of an RDMA operation of n bytes with that key, on a connection of its own. */
static enum ibv_wc_status try_rdma(enum ibv_wr_opcode op, uint64_t raddr, uint32_t rkey, size_t n)
{
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge sge = t_sge(&p.ba, 0, n);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, raddr, rkey);
	struct ibv_wc wc;

	t_fill(p.ba.addr, n, 77);
	t_post(p.a, &wr);
	t_poll(p.a->scq, &wc, 1);
	t_pair_free(&p);
	return wc.status;
}

/* Returns the status of a send of data at addr under that lkey. Checks the received data against
 * seed. */
static enum ibv_wc_status try_send(uint64_t addr, uint32_t lkey, size_t n, unsigned seed)
{
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_sge sge = {addr, (uint32_t)n, lkey}, to = t_sge(&p.bb, 0, LEN);
	struct ibv_wc wc;

	t_recv(p.b, 1, &to, 1);
	t_send(p.a, 2, sge);
	t_poll(p.a->scq, &wc, 1);
	if (wc.status == IBV_WC_SUCCESS) {
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
		t_check(p.bb.addr, n, seed);
	}
	t_pair_free(&p);
	return wc.status;
}

static void *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	t_true(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

/* Checks that remote writing and atomics need local writing (IBA 10.6.3.2). */
static void test_access(void **state)
{
	void *m = map(LEN, PROT_READ | PROT_WRITE);

	(void)state;
	for (unsigned a = 0; a < 16; a++) {
		bool bad = !(a & IBV_ACCESS_LOCAL_WRITE) &&
			   (a & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(dev->pd, m, LEN, a);
		t_true(bad ? !mr && errno == EINVAL : !!mr, "access 0x%x: errno %d", a, errno);
		if (!mr)
			continue;
		t_true(mr->addr == m && mr->length == LEN && mr->pd == dev->pd, "fields");
		t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 64),
		     (a & IBV_ACCESS_REMOTE_WRITE) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		t_eq(try_rdma(IBV_WR_RDMA_READ, (uintptr_t)m, mr->rkey, 64),
		     (a & IBV_ACCESS_REMOTE_READ) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		t_eq(try_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)m, mr->rkey, 8),
		     (a & IBV_ACCESS_REMOTE_ATOMIC) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		t_ok(ibv_dereg_mr(mr));
	}
	errno = 0;
	t_true(!ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_LOCAL_WRITE | 1u << 15) && errno == EINVAL,
	       "an unknown access flag: errno %d", errno);
	/* Flags for windows and huge pages permit more, and are ignored where there is no more. */
	for (int i = 0; i < 2; i++) {
		unsigned a = i ? IBV_ACCESS_MW_BIND : IBV_ACCESS_HUGETLB;
		struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_LOCAL_WRITE | a);

		t_true(mr, "access 0x%x: %s", a, strerror(errno));
		t_ok(ibv_dereg_mr(mr));
	}
	/* Optional flags that a device doesn't know are ignored. */
	for (unsigned a = IBV_ACCESS_OPTIONAL_FIRST; a && a <= 1u << 29; a <<= 3) {
		struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_LOCAL_WRITE | a);

		t_true(mr, "access 0x%x: %s", a, strerror(errno));
		t_ok(ibv_dereg_mr(mr));
	}
	munmap(m, LEN);
}

/* Checks that work requests name addresses by iova, whatever the region's own address. */
static void test_iova(void **state)
{
	static const uint64_t at[] = {0, 0x7000, 0x123456789000u, 1ull << 62};
	char *m = map(LEN, PROT_READ | PROT_WRITE);

	(void)state;
	for (int i = 0; i < 4; i++) {
		uint64_t iova = at[i] + ((uintptr_t)(m + 100) & 0xfff);
		struct ibv_mr *mr =
			ibv_reg_mr_iova(dev->pd, m + 100, LEN - 100, iova, T_FULL_ACCESS);

		t_true(mr, "ibv_reg_mr_iova: %s", strerror(errno));
		memset(m, 0, LEN);
		t_eq(try_rdma(IBV_WR_RDMA_WRITE, iova + 8, mr->rkey, 1000), IBV_WC_SUCCESS);
		t_check(m + 108, 1000, 77);
		t_fill(m + 300, 5000, 9);
		t_eq(try_send(iova + 200, mr->lkey, 5000, 9), IBV_WC_SUCCESS);
		t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + 200, mr->rkey, 8),
		     IBV_WC_REM_ACCESS_ERR);
		t_eq(try_rdma(IBV_WR_RDMA_READ, iova + LEN - 100, mr->rkey, 1),
		     IBV_WC_REM_ACCESS_ERR);
		t_eq(try_send(iova + LEN - 100 - 7, mr->lkey, 8, 9), IBV_WC_LOC_PROT_ERR);
		t_ok(ibv_dereg_mr(mr));
	}
	/* A page's offset must not change. */
	t_true(!ibv_reg_mr_iova(dev->pd, m, LEN, 0x10064, T_FULL_ACCESS) && errno == EINVAL,
	       "another offset in a page: errno %d", errno);
	munmap(m, LEN);
}

static void test_zero_based(void **state)
{
	char *m = map(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, T_FULL_ACCESS | IBV_ACCESS_ZERO_BASED);

	(void)state;
	t_true(mr, "zero-based: %s", strerror(errno));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, 500, mr->rkey, 1000), IBV_WC_SUCCESS);
	t_check(m + 500, 1000, 77);
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	t_ok(ibv_dereg_mr(mr));
	/* The address in the region decides about alignment, not the one in memory. */
	mr = ibv_reg_mr(dev->pd, m + 4, LEN - 4, T_FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
	t_true(mr, "zero-based: %s", strerror(errno));
	memset(m, 5, 16);
	t_eq(try_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, mr->rkey, 8), IBV_WC_SUCCESS);
	t_check_byte(m, 16, 5);
	t_ok(ibv_dereg_mr(mr));
	munmap(m, LEN);
}

/* Checks the value and the errno of a call of ibv_rereg_mr(). */
static void refused(int wanted, int errnum, int rc)
{
	t_eq(rc, wanted);
	t_eq(errno, errnum);
	errno = 0;
}

static void test_rereg(void **state)
{
	char *nowhere = map(LEN, PROT_NONE);
	struct t_dev *elsewhere = t_open();
	char *m = map(2 * LEN, PROT_READ | PROT_WRITE);
	struct ibv_pd *pd2 = ibv_alloc_pd(dev->ctx);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_LOCAL_WRITE);

	(void)state;
	t_true(mr && pd2, "set-up: %s", strerror(errno));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, T_FULL_ACCESS));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 8), IBV_WC_SUCCESS);
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m + LEN, LEN / 2, 0));
	t_true(mr->addr == m + LEN && mr->length == LEN / 2, "fields");
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + LEN, mr->rkey, 8), IBV_WC_SUCCESS);
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + LEN + LEN / 2, mr->rkey, 8),
	     IBV_WC_REM_ACCESS_ERR);
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, NULL, 0, 0));
	t_true(mr->pd == pd2, "pd");
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + LEN, mr->rkey, 8), IBV_WC_REM_ACCESS_ERR);
	t_rc(ibv_dealloc_pd(pd2), EBUSY);
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, dev->pd, NULL, 0, 0));
	t_ok(ibv_dealloc_pd(pd2));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + LEN, mr->rkey, 8), IBV_WC_SUCCESS);
	/* Checks that a change that can't be made is refused, and that the region stays as it
	 * was. */
	refused(IBV_REREG_MR_ERR_CMD, EINVAL,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			     IBV_ACCESS_REMOTE_WRITE));
	refused(IBV_REREG_MR_ERR_INPUT, EINVAL, ibv_rereg_mr(mr, 64, NULL, NULL, 0, 0));
	refused(IBV_REREG_MR_ERR_CMD, EINVAL, ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0));
	refused(IBV_REREG_MR_ERR_INPUT, EINVAL,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, dev->pd, NULL, 0, T_FULL_ACCESS));
	refused(IBV_REREG_MR_ERR_INPUT, EINVAL,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m, 0, 0));
	/* The access and the domain are looked at before the memory. */
	refused(IBV_REREG_MR_ERR_CMD, EINVAL,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
			     nowhere, LEN, IBV_ACCESS_LOCAL_WRITE | 1 << 15));
	refused(IBV_REREG_MR_ERR_CMD, EINVAL,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
			     elsewhere->pd, nowhere, LEN, 0));
	refused(IBV_REREG_MR_ERR_CMD, EFAULT,
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, nowhere, LEN, 0));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + LEN, mr->rkey, 8), IBV_WC_SUCCESS);
	t_ok(ibv_dereg_mr(mr));
	t_close(elsewhere);
	munmap(nowhere, LEN);
	munmap(m, 2 * LEN);
}

/* Checks that neither key works after deregistration, and that none is given again at once. */
static void test_keys(void **state)
{
	char *m = map(LEN, PROT_READ | PROT_WRITE);
	uint32_t old[32];
	int small = 0, step = 0;

	(void)state;
	for (int i = 0; i < 32; i++) {
		struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, T_FULL_ACCESS);

		t_true(mr, "ibv_reg_mr: %s", strerror(errno));
		old[i] = mr->rkey;
		for (int k = 0; k < i; k++)
			t_true(old[k] != mr->rkey, "rkey 0x%x came again", mr->rkey);
		small += mr->rkey < 4096 || mr->lkey < 4096;
		step += i && old[i] - old[i - 1] == 1;
		t_ok(ibv_dereg_mr(mr));
		if (i < 4) {
			t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, old[i], 8),
			     IBV_WC_REM_ACCESS_ERR);
			t_eq(try_send((uintptr_t)m, old[i], 8, 0), IBV_WC_LOC_PROT_ERR);
		}
	}
	t_true(!small && step < 16, "keys look like indices");
	t_check_byte(m, LEN, 0);
	munmap(m, LEN);
}

static void test_bad_memory(void **state)
{
	char *m = map(4 * 4096, PROT_READ | PROT_WRITE), *ro = map(4096, PROT_READ);
	struct ibv_mr *mr;

	(void)state;
	munmap(m + 2 * 4096, 4096);
	t_null(ibv_reg_mr(dev->pd, m, 4 * 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	t_null(ibv_reg_mr(dev->pd, m + 2 * 4096, 10, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	t_null(ibv_reg_mr(dev->pd, ro, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	t_ok(mprotect(m, 4096, PROT_NONE));
	t_null(ibv_reg_mr(dev->pd, m, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	t_null(ibv_reg_mr(dev->pd, m, 4096, 0), EFAULT);
	t_null(ibv_reg_mr(dev->pd, m, SIZE_MAX - 4096, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	mr = ibv_reg_mr(dev->pd, ro, 4096, IBV_ACCESS_REMOTE_READ);
	t_true(mr, "read-only memory: %s", strerror(errno));
	t_eq(try_rdma(IBV_WR_RDMA_READ, (uintptr_t)ro, mr->rkey, 64), IBV_WC_SUCCESS);
	t_ok(ibv_dereg_mr(mr));
	munmap(m, 2 * 4096);
	munmap(m + 3 * 4096, 4096);
	munmap(ro, 4096);
}

static void test_pd_busy(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct t_buf b = t_buf_in(pd, 4096, 0);

	(void)state;
	t_rc(ibv_dealloc_pd(pd), EBUSY);
	t_buf_free(&b);
	t_ok(ibv_dealloc_pd(pd));
}

/* Checks one piece of memory in several regions, each with its own rights, and pieces of one
 * allocation. */
static void test_overlap(void **state)
{
	char *m = map(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *rw = ibv_reg_mr(dev->pd, m, LEN, T_FULL_ACCESS);
	struct ibv_mr *ro = ibv_reg_mr(dev->pd, m + 1000, 3000, IBV_ACCESS_REMOTE_READ);

	(void)state;
	t_true(rw && ro, "ibv_reg_mr: %s", strerror(errno));
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + 1000, rw->rkey, 3000), IBV_WC_SUCCESS);
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + 1000, ro->rkey, 3000),
	     IBV_WC_REM_ACCESS_ERR);
	t_eq(try_rdma(IBV_WR_RDMA_READ, (uintptr_t)m + 1000, ro->rkey, 3000), IBV_WC_SUCCESS);
	t_eq(try_rdma(IBV_WR_RDMA_READ, (uintptr_t)m + 999, ro->rkey, 3000), IBV_WC_REM_ACCESS_ERR);
	t_ok(ibv_dereg_mr(rw));
	t_eq(try_rdma(IBV_WR_RDMA_READ, (uintptr_t)m + 1000, ro->rkey, 3000), IBV_WC_SUCCESS);
	t_ok(ibv_dereg_mr(ro));
	munmap(m, LEN);
}

static void test_odp(void **state)
{
	uint64_t caps = dev->attr.odp_caps.general_caps;
	char *m = map(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, T_FULL_ACCESS | IBV_ACCESS_ON_DEMAND);
	enum ibv_wc_status st;

	(void)state;
	t_true(!!mr == !!(caps & IBV_ODP_SUPPORT), "explicit ODP: %s, caps 0x%llx", strerror(errno),
	       (unsigned long long)caps);
	if (!mr) {
		munmap(m, LEN);
		t_skip("explicit ODP is rightly refused");
	}
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 64), IBV_WC_SUCCESS);
	t_check(m, 64, 77);
	/* Memory that is gone is an error at its use. Adapters name it either way. */
	t_ok(mprotect(m, LEN, PROT_NONE));
	st = try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m, mr->rkey, 64);
	t_true(st == IBV_WC_REM_ACCESS_ERR || st == IBV_WC_REM_OP_ERR, "%s", ibv_wc_status_str(st));
	t_ok(ibv_dereg_mr(mr));
	munmap(m, LEN);
}

static int advise(struct ibv_mr *mr, char *at, uint32_t len, enum ibv_advise_mr_advice advice,
		  uint32_t flags)
{
	struct ibv_sge sge = {(uintptr_t)at, len, mr->lkey};

	return ibv_advise_mr(dev->pd, advice, flags, &sge, 1);
}

/* Checks the errors of advice, which are those of mlx5's driver. */
static void test_advise(void **state)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const enum ibv_advise_mr_advice write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	char *m = map(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *pinned = ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, m, LEN, IBV_ACCESS_ON_DEMAND);
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct ibv_sge sge = {(uintptr_t)m, LEN, mr ? mr->lkey : 0};

	(void)state;
	if (!mr) {
		t_ok(ibv_dereg_mr(pinned));
		t_ok(ibv_dealloc_pd(pd));
		munmap(m, LEN);
		t_skip("explicit ODP is rightly refused");
	}
	t_ok(advise(mr, m, LEN, read, 0));
	t_ok(advise(mr, m, LEN, read, flush));
	t_ok(advise(mr, m, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush));
	t_rc(advise(mr, m, LEN, write, flush), EPERM);
	t_rc(ibv_advise_mr(pd, read, flush, &sge, 1), EPERM);
	t_rc(advise(pinned, m, LEN, read, flush), ENOENT);
	t_rc(advise(mr, m, LEN + 1, read, flush), EFAULT);
	t_ok(advise(mr, m, LEN + 1, read, 0)); /* nobody waits for what comes of it */
	t_rc(advise(mr, m, LEN, (enum ibv_advise_mr_advice)99, flush), EOPNOTSUPP);
	t_rc(advise(mr, m, LEN, read, 1u << 31), EINVAL);
	t_rc(ibv_advise_mr(dev->pd, read, flush, &sge, 0), EINVAL);
	t_ok(munmap(m, LEN));
	t_rc(advise(mr, m, LEN, read, flush), EFAULT);
	t_ok(advise(mr, m, LEN, read, 0));
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_dereg_mr(pinned));
	t_ok(ibv_dealloc_pd(pd));
}

static void test_implicit_odp(void **state)
{
	uint64_t caps = dev->attr.odp_caps.general_caps;
	struct ibv_mr *mr =
		ibv_reg_mr(dev->pd, NULL, SIZE_MAX, T_FULL_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *ro;
	char *m;

	(void)state;
	t_true(!!mr == !!(caps & IBV_ODP_SUPPORT_IMPLICIT), "implicit ODP: %s", strerror(errno));
	if (!mr)
		t_skip("implicit ODP is rightly refused");
	m = map(LEN, PROT_READ | PROT_WRITE); /* after the registration */
	t_eq(try_rdma(IBV_WR_RDMA_WRITE, (uintptr_t)m + 8, mr->rkey, 5000), IBV_WC_SUCCESS);
	t_check(m + 8, 5000, 77);
	t_fill(m, 300, 4);
	t_eq(try_send((uintptr_t)m, mr->lkey, 300, 4), IBV_WC_SUCCESS);
	/* On-demand paging brings pages in with the region's rights, although the send only reads
	 * them. */
	ro = ibv_reg_mr(dev->pd, NULL, SIZE_MAX, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	t_ok(mprotect(m, LEN, PROT_READ));
	t_eq(try_send((uintptr_t)m, mr->lkey, 300, 4), IBV_WC_LOC_PROT_ERR);
	t_eq(try_send((uintptr_t)m, ro->lkey, 300, 4), IBV_WC_SUCCESS);
	t_ok(mprotect(m, LEN, PROT_NONE));
	t_eq(try_send((uintptr_t)m, ro->lkey, 300, 4), IBV_WC_LOC_PROT_ERR);
	t_ok(ibv_dereg_mr(ro));
	t_ok(ibv_dereg_mr(mr));
	munmap(m, LEN);
}

/* Checks that the null MR reads as zeros and drops writes. */
static void test_null_mr(void **state)
{
	struct ibv_mr *null = ibv_alloc_null_mr(dev->pd);
	struct t_pair p;
	struct ibv_sge from[2], to;
	struct ibv_send_wr wr;

	(void)state;
	if (no_null) {
		t_true(!null && errno == EOPNOTSUPP, "ibv_alloc_null_mr: errno %d", errno);
		return;
	}
	t_true(null, "ibv_alloc_null_mr: %s", strerror(errno));
	p = t_pair(dev, NULL, NULL, 8192);
	from[0] = t_sge(&p.ba, 0, 10);
	from[1] = (struct ibv_sge){0x1000, 5000, null->lkey};
	to = t_sge(&p.bb, 0, 8192);
	wr = t_wr(IBV_WR_SEND, 1, from, 2);
	memset(p.ba.addr, 1, 10);
	memset(p.bb.addr, 2, 8192);
	t_recv(p.b, 2, &to, 1);
	t_post(p.a, &wr);
	t_eq(t_next(p.b->rcq, 2, IBV_WC_SUCCESS).byte_len, 5010);
	t_check_byte(p.bb.addr, 10, 1);
	t_check_byte(p.bb.addr + 10, 5000, 0);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	wr = t_rdma(IBV_WR_RDMA_READ, 3, from, 2, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	t_post(p.a, &wr);
	t_next(p.a->scq, 3, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_ok(ibv_dereg_mr(null));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access),     cmocka_unit_test(test_iova),
		cmocka_unit_test(test_zero_based), cmocka_unit_test(test_rereg),
		cmocka_unit_test(test_keys),       cmocka_unit_test(test_bad_memory),
		cmocka_unit_test(test_pd_busy),    cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_odp),        cmocka_unit_test(test_implicit_odp),
		cmocka_unit_test(test_advise),     cmocka_unit_test(test_null_mr),
	};

	no_null = argc > 1 && !strcmp(argv[1], "no-null");
	return cmocka_run_group_tests_name("mr", tests, setup, t_teardown);
}
