/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_memlock.c - the limit of registered memory, under --memlock 1M: a registration above it
 * fails with ENOMEM and is counted, and one message says what to do.
 */
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <unistd.h>

#include "../caught.h"
#include "stat.h"
#include "util.h"

#define KIB 1024u

static void test_limit(void **state)
{
	struct t_dev *dev = *state;
	uint64_t failures = stat_counter("memlock_failures");
	struct ibv_mr *half, *rest, *over[2];
	struct t_caught caught;
	const char *text;
	char *m;
	int code[2];

	m = mmap(NULL, 2048 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t_true(m != MAP_FAILED, "set-up: %s", strerror(errno));
	half = ibv_reg_mr(dev->pd, m, 512 * KIB, IBV_ACCESS_LOCAL_WRITE);
	t_true(half, "half of the limit: %s", strerror(errno));
	t_catch(&caught);
	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		over[i] = ibv_reg_mr(dev->pd, m, 516 * KIB, IBV_ACCESS_LOCAL_WRITE);
		code[i] = errno;
	}
	text = t_caught_end(&caught);
	t_true(!over[0] && !over[1], "registered more than the limit");
	t_eq(code[0], ENOMEM);
	t_eq(code[1], ENOMEM);
	t_true(strstr(text, "memlock") && strstr(text, "1048576"), "stderr says: %s", text);
	t_true(strchr(text, '\n') == text + strlen(text) - 1, "not one line: %s", text);
	t_eq(stat_counter("memlock_failures") - failures, 2);
	/* Exactly the limit. Memory that is given back can be registered again. */
	rest = ibv_reg_mr(dev->pd, m + 512 * KIB, 512 * KIB, IBV_ACCESS_LOCAL_WRITE);
	t_true(rest, "the whole limit: %s", strerror(errno));
	t_ok(ibv_dereg_mr(rest));
	t_ok(ibv_dereg_mr(half));
	half = ibv_reg_mr(dev->pd, m, 1024 * KIB, IBV_ACCESS_LOCAL_WRITE);
	t_true(half, "the limit after deregistering: %s", strerror(errno));
	t_ok(ibv_dereg_mr(half));
	munmap(m, 2048 * KIB);
}

/* Checks that a region whose translation stays needs its memory neither pinned again nor still
 * mapped. */
static void test_rereg(void **state)
{
	struct t_dev *dev = *state;
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct ibv_mr *mr;
	char *m;

	m = mmap(NULL, 1024 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t_true(m != MAP_FAILED && pd, "set-up: %s", strerror(errno));
	mr = ibv_reg_mr(dev->pd, m, 600 * KIB, IBV_ACCESS_LOCAL_WRITE);
	t_true(mr, "ibv_reg_mr: %s", strerror(errno));
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, T_FULL_ACCESS));
	t_true(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_REMOTE_WRITE) != 0,
	       "remote writes without local ones");
	t_ok(munmap(m, 1024 * KIB));
	t_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, dev->pd, NULL, 0, 0));
	t_ok(ibv_dereg_mr(mr));
	t_ok(ibv_dealloc_pd(pd));
	/* No memory is counted any more. */
	m = mmap(NULL, 1024 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(dev->pd, m, 1024 * KIB, IBV_ACCESS_LOCAL_WRITE);
	t_true(mr, "ibv_reg_mr: %s", strerror(errno));
	t_ok(ibv_dereg_mr(mr));
	t_ok(munmap(m, 1024 * KIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limit, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_rereg, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
