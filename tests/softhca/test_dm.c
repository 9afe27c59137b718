/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dm.c [none] - device memory: allocation, access by the program and by messages; or, with the
 * argument, its absence.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

#define LEN    4096
#define ACCESS (T_FULL_ACCESS | IBV_ACCESS_ZERO_BASED)

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static struct ibv_dm *try_alloc(size_t length, uint32_t log_align, uint32_t comp_mask)
{
	struct ibv_alloc_dm_attr attr = {length, log_align, comp_mask};

	errno = 0;
	return ibv_alloc_dm(dev->ctx, &attr);
}

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_dm *dm = try_alloc(length, 0, 0);

	t_true(dm, "ibv_alloc_dm: %s", strerror(errno));
	t_true(dm->context == dev->ctx, "context");
	return dm;
}

static struct ibv_mr *reg(struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
	errno = 0;
	return ibv_reg_dm_mr(dev->pd, dm, offset, length, access);
}

/* Checks how much there is, and that all of it comes back. */
static void test_size(void **state)
{
	size_t all = dev->attr.max_dm_size;

	(void)state;
	t_true(all >= 2 * LEN, "%zu bytes", all);
	t_true(!try_alloc(all + 1, 0, 0) && errno == EINVAL, "too much: errno %d", errno);
	t_true(!try_alloc(0, 0, 0) && errno == EINVAL, "nothing: errno %d", errno);
	t_true(!try_alloc(64, 7, 0) && errno == EINVAL, "alignment of 128: errno %d", errno);
	t_true(!try_alloc(64, 200, 0) && errno == EINVAL, "alignment of 2^200: errno %d", errno);
	t_true(!try_alloc(64, 0, 1), "an unknown mask");
	for (int i = 0; i < 3; i++) {
		struct ibv_dm *one = alloc(all / 2), *other = alloc(all / 2);

		t_true(!try_alloc(64, 0, 0) && errno == ENOMEM, "the rest: errno %d", errno);
		t_ok(ibv_free_dm(one));
		t_ok(ibv_free_dm(other));
	}
}

/* Checks access by the program: in words of 4 bytes, and within what was allocated. */
static void test_words(void **state)
{
	struct ibv_dm *dm = alloc(100);
	char data[100], back[100];

	(void)state;
	t_fill(data, 100, 3);
	t_ok(ibv_memcpy_to_dm(dm, 0, data, 100));
	t_ok(ibv_memcpy_from_dm(back, dm, 0, 100));
	t_check(back, 100, 3);
	t_ok(ibv_memcpy_to_dm(dm, 8, data + 1, 4)); /* the program's side needs no alignment */
	t_ok(ibv_memcpy_from_dm(back + 3, dm, 8, 4));
	t_mem_eq(back + 3, data + 1, 4);
	t_rc(ibv_memcpy_to_dm(dm, 2, data, 4), EINVAL);
	t_rc(ibv_memcpy_to_dm(dm, 4, data, 3), EINVAL);
	t_rc(ibv_memcpy_to_dm(dm, 104, data, 4), EFAULT);
	t_rc(ibv_memcpy_from_dm(back, dm, 0, 104), EFAULT);
	t_rc(ibv_memcpy_from_dm(back, dm, UINT64_MAX - 3, 8), EFAULT);
	t_ok(ibv_free_dm(dm));
}

static void test_register(void **state)
{
	struct ibv_dm *dm = alloc(100);
	struct ibv_mr *mr;

	(void)state;
	t_true(!reg(dm, 0, 104, ACCESS) && errno == EINVAL, "beyond the end: errno %d", errno);
	t_true(!reg(dm, 4, 100, ACCESS) && errno == EINVAL, "beyond the end: errno %d", errno);
	t_true(!reg(dm, 0, 100, T_FULL_ACCESS) && errno == EINVAL, "not zero-based: errno %d",
	       errno);
	t_true(!reg(dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
	       "remote write without local write: errno %d", errno);
	t_true(!reg(dm, 0, 100, ACCESS | IBV_ACCESS_ON_DEMAND) && errno == EINVAL,
	       "on demand: errno %d", errno);
	mr = reg(dm, 4, 96, ACCESS);
	t_true(mr, "ibv_reg_dm_mr: %s", strerror(errno));
	t_true(mr->pd == dev->pd && mr->context == dev->ctx && mr->length == 96, "fields");
	t_rc(ibv_free_dm(dm), EBUSY);
	t_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS),
	     IBV_REREG_MR_ERR_CMD);
	t_eq(errno, EINVAL);
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_free_dm(dm));
}

/* Checks messages from and to device memory. */
static void test_messages(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, LEN);
	struct ibv_dm *dm = alloc(LEN + 4);
	struct ibv_mr *mr = reg(dm, 4, LEN, ACCESS);
	static const size_t sizes[] = {4, 100, LEN};
	struct ibv_sge in = t_sge(&p.bb, 0, LEN);
	uint64_t word[2];
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	char back[LEN];

	(void)state;
	t_true(mr, "ibv_reg_dm_mr: %s", strerror(errno));
	for (int i = 0; i < 3; i++) {
		sge = (struct ibv_sge){0, (uint32_t)sizes[i], mr->lkey};
		/* A receive, and a send. */
		t_fill(p.ba.addr, sizes[i], 4);
		t_recv(p.b, 1, &sge, 1);
		t_send(p.a, 2, t_sge(&p.ba, 0, sizes[i]));
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
		t_next(p.a->scq, 2, IBV_WC_SUCCESS);
		t_ok(ibv_memcpy_from_dm(back, dm, 4, sizes[i]));
		t_check(back, sizes[i], 4);
		memset(p.bb.addr, 0, LEN);
		t_recv(p.b, 1, &in, 1);
		t_send(p.a, 2, sge);
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
		t_next(p.a->scq, 2, IBV_WC_SUCCESS);
		t_check(p.bb.addr, sizes[i], 4);
		/* A write, and a read. */
		t_fill(p.ba.addr, sizes[i], 5);
		in = t_sge(&p.ba, 0, sizes[i]);
		wr = t_rdma(IBV_WR_RDMA_WRITE, 3, &in, 1, 0, mr->rkey);
		t_post(p.a, &wr);
		t_next(p.a->scq, 3, IBV_WC_SUCCESS);
		memset(p.ba.addr, 0, LEN);
		wr = t_rdma(IBV_WR_RDMA_READ, 4, &in, 1, 0, mr->rkey);
		t_post(p.a, &wr);
		t_next(p.a->scq, 4, IBV_WC_SUCCESS);
		t_check(p.ba.addr, sizes[i], 5);
		in = t_sge(&p.bb, 0, LEN);
	}
	word[0] = 40;
	t_ok(ibv_memcpy_to_dm(dm, 4, word, 8));
	in = t_sge(&p.ba, 0, 8);
	wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, &in, 1, 0, mr->rkey);
	wr.wr.atomic.compare_add = 2;
	t_post(p.a, &wr);
	t_next(p.a->scq, 5, IBV_WC_SUCCESS);
	t_ok(ibv_memcpy_from_dm(&word[1], dm, 4, 8));
	t_eq(word[1], 42);
	in = t_sge(&p.ba, 0, 8);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 6, &in, 1, LEN - 4, mr->rkey);
	t_post(p.a, &wr);
	t_next(p.a->scq, 6, IBV_WC_REM_ACCESS_ERR);
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_free_dm(dm));
	t_pair_free(&p);
}

/* Checks that a context that is closed gives its memory back. */
static void test_left(void **state)
{
	struct ibv_alloc_dm_attr attr = {.length = dev->attr.max_dm_size};
	struct t_dev *own = t_open();
	struct ibv_dm *dm = ibv_alloc_dm(own->ctx, &attr);

	(void)state;
	t_true(dm && ibv_reg_dm_mr(own->pd, dm, 0, 64, ACCESS), "set-up: %s", strerror(errno));
	t_ok(ibv_close_device(own->ctx));
	t_untidy();
	t_ok(ibv_free_dm(alloc(attr.length)));
}

/* Checks that a forked child may allocate in its parent's context, for the parent. */
static void test_child(void **state)
{
	size_t all = dev->attr.max_dm_size;
	struct ibv_dm *dm;
	pid_t child;
	int status;

	(void)state;
	child = fork();
	if (!child) {
		t_child_begin();
		dm = alloc(all);
		t_ok(ibv_memcpy_to_dm(dm, 0, "word", 4));
		t_true(!reg(dm, 0, 64, ACCESS), "a child registers memory in its parent's domain");
		t_ok(ibv_free_dm(dm));
		alloc(all / 2);
		t_untidy();
		_exit(0);
	}
	t_true(waitpid(child, &status, 0) == child && !status, "the child: status %d", status);
	dm = try_alloc(all, 0, 0);
	t_true(!dm && errno == ENOMEM, "what the child left is there: errno %d", errno);
	t_ok(ibv_free_dm(alloc(all / 2)));
}

static void test_none(void **state)
{
	(void)state;
	t_eq(dev->attr.max_dm_size, 0);
	t_true(!try_alloc(64, 0, 0) && errno == EOPNOTSUPP, "ibv_alloc_dm: errno %d", errno);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),     cmocka_unit_test(test_words),
		cmocka_unit_test(test_register), cmocka_unit_test(test_messages),
		cmocka_unit_test(test_left),     cmocka_unit_test(test_child),
	};
	const struct CMUnitTest absent[] = {cmocka_unit_test(test_none)};

	if (argc > 1 && !strcmp(argv[1], "none"))
		return cmocka_run_group_tests_name("no device memory", absent, setup, t_teardown);
	return cmocka_run_group_tests_name("device memory", tests, setup, t_teardown);
}
