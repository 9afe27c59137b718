/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_segment_life.c [copied] - regions in System V shared memory that end while a peer uses them:
 * deregistered, registered again, detached, and with their process. The argument is that of
 * test_segment.
 */
#define _GNU_SOURCE 1
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "segment.h"

enum key { K_STEP = SEG_K_FREE, K_DONE };

static bool copied;

/* Checks that nothing is written after the region is gone, however fast a peer writes, and that the
 * peer lets go of the segment. */
static void deregister(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	uint64_t i = 0;

	(void)arg;
	if (me == 0) {
		while (seg_write_word(&s, 8, ++i) == IBV_WC_SUCCESS)
			procs_put(K_STEP, i);
		procs_put(K_DONE, 1);
		procs_barrier();
		seg_requester_close(&s);
		return;
	}
	procs_wait_for(0, K_STEP, 100);
	t_ok(ibv_dereg_mr(s.own.mr));
	s.own.mr = NULL;
	i = seg_word_at(s.own.addr + 8);
	procs_wait_for(0, K_DONE, 1);
	t_eq(seg_word_at(s.own.addr + 8), i);
	seg_await_attached(s.id, 1);
	procs_barrier();
	seg_owner_close(&s);
}

static void test_deregister(void **state)
{
	(void)state;
	seg_run(deregister);
}

/* Checks that a region which is registered again is found at its new place, in the segment or
 * elsewhere. */
static void reregister(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	char *other;

	(void)arg;
	if (me == 0) {
		t_eq(seg_write_word(&s, 0, 1), IBV_WC_SUCCESS);
		for (uint64_t i = 2; i < 4; i++) {
			procs_barrier();
			procs_barrier();
			s.there = procs_get_buf(1, SEG_K_BUF);
			t_eq(seg_write_word(&s, 0, i), IBV_WC_SUCCESS);
		}
		procs_barrier();
		seg_requester_close(&s);
		return;
	}
	other = mmap(NULL, SEG_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 2; i < 4; i++) {
		char *to = i == 2 ? s.own.addr + 4096 : other;

		procs_barrier();
		t_eq(ibv_rereg_mr(s.own.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, to, 4096, 0), 0);
		procs_put_buf(SEG_K_BUF, &(struct t_buf){to, 4096, s.own.mr});
		procs_barrier();
	}
	procs_barrier();
	t_eq(seg_word_at(s.own.addr), 1);
	t_eq(seg_word_at(s.own.addr + 4096), 2);
	t_eq(seg_word_at(other), 3);
	seg_await_attached(s.id, 1);
	munmap(other, SEG_LEN);
	seg_owner_close(&s);
}

static void test_reregister(void **state)
{
	(void)state;
	seg_run(reregister);
}

/*
 * Checks that registered memory is pinned: a write goes there although the owner has detached the
 * segment, and not to the memory that is mapped at that address later. One peer had reached the
 * segment before, another had not. A change of the region's access has nothing to do with that.
 */
enum { REACHED_BEFORE = 1, ACCESS_CHANGED };

static void remap(unsigned me, void *arg)
{
	unsigned how = *(const unsigned *)arg;
	bool reached_before = how & REACHED_BEFORE;
	struct seg_side s = me ? seg_owner() : seg_requester();
	char *segment, *at;

	if (me == 0) {
		if (reached_before)
			t_eq(seg_write_word(&s, 0, 1), IBV_WC_SUCCESS);
		procs_barrier();
		procs_barrier();
		t_eq(seg_write_word(&s, 8, 2), IBV_WC_SUCCESS);
		procs_barrier();
		seg_requester_close(&s);
		return;
	}
	procs_barrier();
	segment = seg_attach(s.id);
	t_true(!shmdt(s.own.addr), "shmdt: %s", strerror(errno));
	at = mmap(s.own.addr, SEG_LEN, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	t_true(at == s.own.addr, "mmap: %s", strerror(errno));
	if (how & ACCESS_CHANGED)
		t_ok(ibv_rereg_mr(s.own.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	procs_barrier();
	procs_barrier();
	t_check_byte(at, SEG_LEN, 0);
	t_eq(seg_word_at(segment), reached_before);
	t_eq(seg_word_at(segment + 8), 2);
	munmap(at, SEG_LEN);
	shmdt(segment);
	seg_owner_close(&s);
}

static void test_remap(void **state)
{
	unsigned nodes[] = {0, 1};

	(void)state;
	if (copied)
		t_skip("system calls copy all data, by the addresses of the owner");
	for (unsigned how = 0; how < 4; how++)
		procs_run(2, nodes, remap, &how);
}

/* Checks that a segment outlives its process, but that the process's regions are not written to
 * any more, even before its objects are reaped. */
static void death(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	enum ibv_wc_status status;
	uint64_t i = 0;

	(void)arg;
	if (me)
		for (;;)
			pause();
	while ((status = seg_write_word(&s, 0, ++i)) == IBV_WC_SUCCESS)
		procs_put(K_STEP, i);
	t_eq(status, IBV_WC_RETRY_EXC_ERR);
	procs_put(K_DONE, 1);
	seg_await_attached(s.id, 1); /* the parent has it attached */
	seg_requester_close(&s);
}

static void test_death(void **state)
{
	unsigned nodes[] = {0, 1};
	char *segment;
	uint64_t last;

	(void)state;
	procs_start(2, nodes, death, NULL);
	procs_wait_for(0, K_STEP, 100);
	segment = seg_attach((int)procs_get(1, SEG_K_ID));
	procs_kill(1);
	last = seg_word_at(segment);
	procs_wait_for(0, K_DONE, 1);
	/* One request may have been on its way. */
	t_true(seg_word_at(segment) <= last + 1, "%llu writes after the end",
	       (unsigned long long)(seg_word_at(segment) - last));
	procs_finish();
	shmdt(segment);
}

/* Checks that a forked child doesn't keep its parent's segments attached. */
static void forked(unsigned me, void *arg)
{
	struct seg_side s = me ? seg_owner() : seg_requester();
	int hold[2];
	pid_t child;
	char c;

	(void)arg;
	if (me) {
		procs_barrier();
		t_ok(ibv_dereg_mr(s.own.mr));
		s.own.mr = NULL;
		seg_await_attached(s.id, 1);
		procs_barrier();
		seg_owner_close(&s);
		return;
	}
	t_eq(seg_write_word(&s, 0, 1), IBV_WC_SUCCESS);
	t_true(!pipe(hold), "pipe: %s", strerror(errno));
	child = fork();
	t_true(child >= 0, "fork: %s", strerror(errno));
	if (!child) {
		close(hold[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	procs_barrier();
	procs_barrier();
	close(hold[1]);
	close(hold[0]);
	seg_requester_close(&s);
}

static void test_forked(void **state)
{
	(void)state;
	seg_run(forked);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deregister), cmocka_unit_test(test_reregister),
		cmocka_unit_test(test_remap),      cmocka_unit_test(test_death),
		cmocka_unit_test(test_forked),
	};

	copied = seg_copied(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
