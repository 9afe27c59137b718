/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_segment.c [copied [twice]] - regions in System V shared memory, into which small requests go
 * without a system call; with the arguments, by a system call, or through shared memory. Child 1
 * has the memory, child 0 a connection to it. The rules are those of any other memory.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../forbid.h"
#include "segment.h"
#include "stat.h"

#define SMALL 4224 /* --cqe-payload */

static bool copied, twice;

/* Checks that the counter grew by n, or not at all if system calls copy all data. */
static void grew(uint64_t before, uint64_t n)
{
	uint64_t now = stat_counter("direct_accesses");

	t_eq(now - before, copied ? 0 : n);
}

static const size_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 16, 31, 64, 100, SMALL, SMALL + 1, 5000};
#define NSIZES     (sizeof(sizes) / sizeof(*sizes))
#define NSMALL     (NSIZES - 2)
#define NOFFSETS   9
#define PLACE(off) (4096 + (off))

/* Copies every size at every alignment there and back, and checks that nothing beside it
 * changes. */
static void transfers(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	uint64_t before;

	(void)arg;
	if (me) {
		procs_barrier();
		seg_owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	for (size_t i = 0; i < NSIZES * NOFFSETS; i++) {
		size_t n = sizes[i % NSIZES], off = PLACE(i / NSIZES);
		unsigned seed = (unsigned)i;

		memset(s.own.addr, 0xee, n + 16);
		t_eq(seg_request(&s, IBV_WR_RDMA_WRITE, off - 8, n + 16), IBV_WC_SUCCESS);
		t_fill(s.own.addr, n, seed);
		t_eq(seg_request(&s, IBV_WR_RDMA_WRITE, off, n), IBV_WC_SUCCESS);
		memset(s.own.addr, 0, n + 16);
		t_eq(seg_request(&s, IBV_WR_RDMA_READ, off, n), IBV_WC_SUCCESS);
		t_check(s.own.addr, n, seed);
		t_check_byte(s.own.addr + n, 16, 0);
		t_eq(seg_request(&s, IBV_WR_RDMA_READ, off - 8, n + 16), IBV_WC_SUCCESS);
		t_check_byte(s.own.addr, 8, 0xee);
		t_check(s.own.addr + 8, n, seed);
		t_check_byte(s.own.addr + 8 + n, 8, 0xee);
	}
	/* With 16 bytes more the largest of the small requests is not small any more. */
	grew(before, NOFFSETS * (2 * NSMALL + 2 * (NSMALL - 1)));
	procs_barrier();
	seg_requester_close(&s);
}

static void test_transfers(void **state)
{
	(void)state;
	seg_run(transfers);
}

static void atomics(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	uint64_t before;

	(void)arg;
	if (me) {
		procs_barrier();
		t_eq(seg_word_at(s.own.addr + 64), 100);
		t_eq(seg_word_at(s.own.addr + 72), 1);
		t_eq(seg_word_at(s.own.addr + 80), 77);
		seg_owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	for (uint64_t i = 0; i < 100; i++) {
		t_eq(seg_request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8), IBV_WC_SUCCESS);
		t_eq(seg_word_at(s.own.addr), i);
	}
	t_eq(seg_request(&s, IBV_WR_ATOMIC_CMP_AND_SWP, 80, 8), IBV_WC_SUCCESS);
	t_eq(seg_word_at(s.own.addr), 0);
	t_eq(seg_write_word(&s, 80, 1), IBV_WC_SUCCESS);
	t_eq(seg_request(&s, IBV_WR_ATOMIC_CMP_AND_SWP, 80, 8), IBV_WC_SUCCESS);
	t_eq(seg_word_at(s.own.addr), 1);
	t_eq(seg_request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 72, 8), IBV_WC_SUCCESS);
	grew(before, 104);
	procs_barrier();
	seg_requester_close(&s);
}

static void test_atomics(void **state)
{
	(void)state;
	seg_run(atomics);
}

/* Checks that words appear complete, and writes in their order: of two words the second is never
 * ahead. */
static void order(unsigned me, void *arg)
{
	enum { ROUNDS = 20000, MOST_MS = 5000 };
	struct seg_side s = me ? seg_owner() : seg_requester();
	uint64_t t0 = t_now();

	(void)arg;
	for (uint64_t i = 1; me == 0 && i <= ROUNDS; i++) {
		/* Beside other programs a write may take until the next tick: end sooner. */
		if (t_ms_since(t0) > MOST_MS)
			i = ROUNDS;
		t_eq(seg_write_word(&s, 0, i << 32 | i), IBV_WC_SUCCESS);
		t_eq(seg_write_word(&s, SEG_LEN - 8, i << 32 | i), IBV_WC_SUCCESS);
	}
	for (uint64_t seen = 0; me && seen < ROUNDS;) {
		uint64_t second = seg_word_at(s.own.addr + SEG_LEN - 8),
			 first = seg_word_at(s.own.addr);

		t_true(first >> 32 == (first & 0xffffffff), "half a word: %llx",
		       (unsigned long long)first);
		t_true(first >= second, "the second word comes first");
		t_true(second >> 32 >= seen, "a word goes back");
		seen = second >> 32;
		sched_yield();
	}
	procs_barrier();
	if (me)
		seg_owner_close(&s);
	else
		seg_requester_close(&s);
}

static void test_order(void **state)
{
	(void)state;
	seg_run(order);
}

/* Checks that the bounds and rights are those of the region, not of the segment. */
static void refused(unsigned me, void *arg)
{
	size_t off = *(const size_t *)arg;
	bool beyond = off != 0;
	int id = me ? seg_make() : -1;
	char *addr = me ? seg_attach(id) : NULL;
	struct seg_side s;

	if (me) {
		s = seg_owner_with(id, addr,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					   (beyond ? IBV_ACCESS_REMOTE_WRITE : 0));
		shmctl(id, IPC_RMID, NULL);
		procs_barrier();
		t_check_byte(addr, SEG_LEN, 0);
		seg_owner_close(&s);
		return;
	}
	s = seg_requester();
	t_eq(seg_request(&s, IBV_WR_RDMA_READ, 0, 8), IBV_WC_SUCCESS);
	t_eq(seg_write_word(&s, off, 1), IBV_WC_REM_ACCESS_ERR);
	procs_barrier();
	seg_requester_close(&s);
}

static void test_refused(void **state)
{
	size_t offs[] = {0, SEG_LEN - 7, SEG_LEN, (size_t)-8};
	unsigned nodes[] = {0, 1};

	(void)state;
	for (size_t i = 0; i < sizeof(offs) / sizeof(*offs); i++)
		procs_run(2, nodes, refused, &offs[i]);
}

static void forbidden(unsigned me, void *arg)
{
	struct seg_side s;
	uint64_t before;

	(void)arg;
	if (!me)
		t_forbid(SYS_shmat, EACCES); /* the engine's thread too */
	s = me ? seg_owner() : seg_requester();
	if (me) {
		procs_barrier();
		t_eq(seg_word_at(s.own.addr), 5);
		seg_owner_close(&s);
		return;
	}
	before = stat_counter("direct_accesses");
	t_eq(seg_write_word(&s, 0, 4), IBV_WC_SUCCESS);
	t_eq(seg_request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8), IBV_WC_SUCCESS);
	t_eq(seg_word_at(s.own.addr), 4);
	grew(before, 0);
	procs_barrier();
	seg_requester_close(&s);
}

static void test_forbidden(void **state)
{
	(void)state;
	seg_run(forbidden);
}

/* Checks that data for memory that isn't in a segment, or isn't pinned, are copied. */
static void other_memory(unsigned me, void *arg)
{
	bool odp = *(const bool *)arg;
	struct seg_side s;
	uint64_t before;

	if (me) {
		int fd = memfd_create("SYSV00000000", MFD_CLOEXEC);
		int id = seg_make();
		char *addr;

		t_true(fd >= 0 && !ftruncate(fd, SEG_LEN), "memfd: %s", strerror(errno));
		addr = odp ? seg_attach(id)
			   : mmap(NULL, SEG_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		shmctl(id, IPC_RMID, NULL);
		s = seg_owner_with(id, addr, T_FULL_ACCESS | (odp ? IBV_ACCESS_ON_DEMAND : 0));
		procs_barrier();
		t_eq(seg_word_at(addr), 9);
		seg_owner_close(&s);
		return;
	}
	s = seg_requester();
	before = stat_counter("direct_accesses");
	t_eq(seg_write_word(&s, 0, 9), IBV_WC_SUCCESS);
	grew(before, 0);
	procs_barrier();
	seg_requester_close(&s);
}

static void test_other_memory(void **state)
{
	unsigned nodes[] = {0, 1};

	(void)state;
	for (int i = 0; i < 2; i++) {
		bool odp = i;

		procs_run(2, nodes, other_memory, &odp);
	}
}

/* Checks memory of the requester that is paged on demand and gone: an error, no SIGSEGV, if the
 * kernel copies. */
static void absent(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();

	(void)arg;
	if (me) {
		procs_barrier();
		seg_owner_close(&s);
		return;
	}
	t_ok(ibv_dereg_mr(s.own.mr));
	s.own.mr = ibv_reg_mr(s.dev->pd, s.own.addr, SEG_LEN,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	t_true(s.own.mr, "ibv_reg_mr: %s", strerror(errno));
	t_eq(seg_request(&s, IBV_WR_RDMA_WRITE, PLACE(0), 1000), IBV_WC_SUCCESS);
	t_ok(mprotect(s.own.addr, SEG_LEN, PROT_NONE));
	t_eq(seg_request(&s, IBV_WR_RDMA_WRITE, PLACE(0), 1000), IBV_WC_LOC_PROT_ERR);
	procs_barrier();
	seg_requester_close(&s);
}

static void test_absent(void **state)
{
	(void)state;
	if (twice)
		t_skip("no system call copies from the requester's memory");
	seg_run(absent);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_transfers), cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_order),     cmocka_unit_test(test_refused),
		cmocka_unit_test(test_forbidden), cmocka_unit_test(test_other_memory),
		cmocka_unit_test(test_absent),
	};

	copied = seg_copied(argc, argv);
	twice = argc > 2 && !strcmp(argv[2], "twice");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
