/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_procs.c - virtual time goes on although a process stops, dies, computes or sleeps with
 * the turn. With the argument "look": processes that pass messages through shared memory, under
 * --clock-look 0. With "writes": the test of "look" where the kernel tells of writes to that
 * memory.
 */
#define _GNU_SOURCE 1
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/layout.h"
#include "procs.h"
#include "stat.h"

enum { KEY_QP, KEY_READY = 8, KEY_ROUNDS, KEY_NOW };

/* Computes for ever without a call. This must keep neither the turn nor the time. */
static void hog(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

static void go_on(unsigned me, void *arg)
{
	void (*trouble)(void) = *(void (**)(void))arg;
	struct t_dev *dev = t_open();
	uint64_t since;

	t_qp_free(t_qp(dev, NULL));
	procs_put(KEY_READY, 1);
	procs_get(!me, KEY_READY);
	if (me == 1) {
		trouble();
		/* A process that goes on has the time that the other one has come to. */
		t_true(t_now() >= procs_get(0, KEY_NOW), "time went back");
	}
	since = t_now();
	for (uint64_t i = 1; i <= 20; i++) {
		usleep(1000);
		procs_put(KEY_NOW, t_now());
		procs_put(KEY_ROUNDS, i);
	}
	t_true(t_now() - since >= 20000000, "time stood still");
	t_close(dev);
}

static void stop(void)
{
	raise(SIGSTOP);
}

static void die(void)
{
	raise(SIGKILL);
}

/* Ends without closing anything. */
static void leave(void)
{
	_exit(0);
}

static void wait_for_nothing(void)
{
	syscall(SYS_pause);
}

/* Returns the address at which the library has mapped the fabric's header. */
static uintptr_t mapped_header(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], segment[256];
	unsigned long at = 0, start, offset;

	t_true(maps, "no maps");
	snprintf(segment, sizeof(segment), "%s/seg", getenv("SOFTHCA_FABRIC"));
	while (!at && fgets(line, sizeof(line), maps))
		if (strstr(line, segment) &&
		    sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2 && !offset)
			at = start;
	fclose(maps);
	t_true(at, "the fabric isn't mapped");
	return at;
}

#define ARGUMENT(n) offsetof(struct seccomp_data, args[n])
/* The halves of a 64-bit argument. */
#define LOW(n)  ARGUMENT(n)
#define HIGH(n) (ARGUMENT(n) + 4)

/* Has the kernel kill the process when it is about to wake a thread that it has given the turn. */
static void die_before_wake(void)
{
	uintptr_t actors = mapped_header() +
			   offsetof(struct shca_fabric_header, clock.actors[SHCA_MAX_ADAPTERS]),
		  end = mapped_header() +
			offsetof(struct shca_fabric_header, clock.actors[SHCA_MAX_ACTORS]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 8),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(1)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HIGH(0)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(actors >> 32), 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW(0)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)actors, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)end, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	t_true(actors >> 32 == end >> 32, "the actors are on both sides of a limit of 4 GB");
	t_ok(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	t_ok(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
}

/* Checks that a process goes on while another one is in trouble during its turn. */
static void trouble(void (*fn)(void))
{
	procs_start(2, (unsigned[]){0, 1}, go_on, &fn);
	procs_may_die(1);
	procs_wait_for(0, KEY_ROUNDS, 20);
	procs_kill(1);
	procs_finish();
}

static void test_stopped(void **state)
{
	(void)state;
	trouble(stop);
}

static void test_killed(void **state)
{
	(void)state;
	trouble(die);
}

/* Checks that the monitor wakes the thread to which a killed process had given the turn. */
static void test_killed_before_wake(void **state)
{
	void (*fn)(void) = die_before_wake;
	int status;

	(void)state;
	procs_start(2, (unsigned[]){0, 1}, go_on, &fn);
	procs_may_die(1);
	procs_wait_for(0, KEY_ROUNDS, 20);
	status = procs_wait_end(1);
	t_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status 0x%x", status);
	procs_finish();
}

static void test_left(void **state)
{
	(void)state;
	trouble(leave);
}

/* Checks that a process that was stopped with the turn can be continued, in the time that the other
 * process has come to. */
static void test_continued(void **state)
{
	void (*fn)(void) = stop;

	(void)state;
	procs_start(2, (unsigned[]){0, 1}, go_on, &fn);
	procs_wait_for(0, KEY_ROUNDS, 20);
	t_true(!procs_has(1, KEY_ROUNDS), "it wasn't stopped");
	procs_cont(1);
	procs_wait_for(1, KEY_ROUNDS, 20);
	procs_finish();
}

static void test_hog(void **state)
{
	(void)state;
	trouble(hog);
}

static void test_waiting(void **state)
{
	(void)state;
	trouble(wait_for_nothing);
}

/* ---- locks that processes share ---- */

enum { MS = 1000000 };

struct shared {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t cond;
	enum { BY_MUTEX, BY_RWLOCK, BY_COND, WAYS } way; /* how the lock becomes free */
};

static void take(struct shared *shared)
{
	t_ok(shared->way == BY_RWLOCK ? pthread_rwlock_wrlock(&shared->rwlock)
				      : pthread_mutex_lock(&shared->mutex));
}

static void release(struct shared *shared)
{
	t_ok(shared->way == BY_RWLOCK ? pthread_rwlock_unlock(&shared->rwlock)
				      : pthread_mutex_unlock(&shared->mutex));
}

/* Releases the mutex by waiting for a condition, for a second. */
static void wait_for_cond(struct shared *shared)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	while (!pthread_cond_timedwait(&shared->cond, &shared->mutex, &until))
		;
}

/* Has child 0 hold the lock for 1 ms and then sleep for a second. Child 1 waits for the lock. */
static void pass_lock(unsigned me, void *arg)
{
	struct shared *shared = arg;
	struct t_dev *dev = t_open();
	uint64_t since;

	t_qp_free(t_qp(dev, NULL));
	if (me == 0)
		take(shared);
	procs_barrier();
	since = t_now();
	usleep(me ? 500 : 1000);
	if (me)
		take(shared);
	else if (shared->way == BY_COND)
		wait_for_cond(shared);
	if (me)
		t_true(t_now() - since < 2 * MS, "way %d: the lock came after %llu ns", shared->way,
		       (unsigned long long)(t_now() - since));
	release(shared);
	if (!me)
		usleep(1000000);
	t_close(dev);
}

/* Checks that a process gets a lock as soon as another process releases it, although both have
 * clocks. */
static void test_shared_locks(void **state)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t mutex;
	pthread_rwlockattr_t rwlock;
	pthread_condattr_t cond;

	(void)state;
	t_true(shared != MAP_FAILED, "no memory");
	pthread_mutexattr_init(&mutex);
	pthread_rwlockattr_init(&rwlock);
	pthread_condattr_init(&cond);
	t_ok(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED));
	t_ok(pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED));
	t_ok(pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED));
	t_ok(pthread_mutex_init(&shared->mutex, &mutex));
	t_ok(pthread_rwlock_init(&shared->rwlock, &rwlock));
	t_ok(pthread_cond_init(&shared->cond, &cond));
	for (shared->way = BY_MUTEX; shared->way < WAYS; shared->way++)
		procs_run(2, (unsigned[]){0, 0}, pass_lock, shared);
	t_ok(munmap(shared, sizeof(*shared)));
}

/* ---- shared memory ---- */

enum { PASSES = 1000, PASS_NS = 2000 };

/* Counts a shared number up in turns with the other process. Each polls a CQ until its turn comes,
 * which no completion shows. */
static void take_turns(unsigned me, void *arg)
{
	_Atomic uint32_t *number = arg;
	struct t_dev *dev = t_open();
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_wc wc;
	uint64_t since;

	procs_barrier();
	since = t_now();
	for (uint32_t i = me; i < 2 * PASSES; i += 2) {
		while (atomic_load(number) != i)
			t_eq(ibv_poll_cq(qp->rcq, 1, &wc), 0);
		atomic_store(number, i + 1);
	}
	since = t_now() - since;
	t_true(since < 2 * PASSES * PASS_NS, "it took %llu ns", (unsigned long long)since);
	t_qp_free(qp);
	t_close(dev);
}

static void test_look(void **state)
{
	void *number = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	t_true(number != MAP_FAILED, "no memory");
	procs_run(2, (unsigned[]){0, 0}, take_turns, number);
	t_ok(munmap(number, sizeof(uint32_t)));
}

static bool sees_writes(void)
{
	json_t *fabric = stat_json();
	bool sees = json_integer_value(json_object_get(
		json_array_get(json_object_get(fabric, "clock"), 0), "sees_writes"));

	json_decref(fabric);
	return sees;
}

static void test_writes(void **state)
{
	if (!sees_writes())
		t_skip("the kernel doesn't tell of writes to shared memory");
	test_look(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest look[] = {cmocka_unit_test(test_look)};
	const struct CMUnitTest writes[] = {cmocka_unit_test(test_writes)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped), cmocka_unit_test(test_continued),
		cmocka_unit_test(test_killed),  cmocka_unit_test(test_killed_before_wake),
		cmocka_unit_test(test_left),    cmocka_unit_test(test_hog),
		cmocka_unit_test(test_waiting), cmocka_unit_test(test_shared_locks),
	};

	if (argc > 1 && !strcmp(argv[1], "look"))
		return cmocka_run_group_tests(look, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "writes"))
		return cmocka_run_group_tests(writes, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
