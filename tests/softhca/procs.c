/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procs.c - see procs.h. The processes share only atomics and one futex word that moves with every
 * change, so a child that is killed at any instruction leaves nothing locked.
 */
#define _GNU_SOURCE 1
#include "procs.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 10000000L /* how often a waiter checks the deadline and its children */

struct box {
	_Atomic uint32_t has[PROCS_KEYS];
	_Atomic uint64_t value[PROCS_KEYS];
	_Atomic uint64_t phase; /* barriers reached */
	_Atomic uint32_t gone;  /* killed: barriers don't wait for it */
};

struct shared {
	_Atomic uint32_t change; /* futex: moves with every change below */
	struct box box[PROCS_MAX + 1];
};

static struct {
	struct shared *sh;
	unsigned n;
	unsigned me; /* PROCS_PARENT in the parent */
	pid_t pid[PROCS_MAX];
	bool waited[PROCS_MAX]; /* its status has been taken */
	bool may_die[PROCS_MAX];
	uint64_t deadline;
} procs = {.me = PROCS_PARENT};

static void announce(void)
{
	atomic_fetch_add(&procs.sh->change, 1);
	syscall(SYS_futex, &procs.sh->change, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void end_all(void)
{
	for (unsigned i = 0; i < procs.n; i++) {
		if (procs.waited[i])
			continue;
		kill(procs.pid[i], SIGKILL);
		waitpid(procs.pid[i], NULL, 0);
		procs.waited[i] = true;
	}
}

/* Ends all children if called in the parent, then fails. */
#define procs_fail(...)                       \
	do {                                  \
		if (procs.me == PROCS_PARENT) \
			end_all();            \
		t_fail(__VA_ARGS__);          \
	} while (0)

/* Fails the test if a child that may not die was killed, or ended with a status other than 0. */
static void look_after_children(void)
{
	for (unsigned i = 0; i < procs.n; i++) {
		siginfo_t si = {0};

		if (procs.waited[i] || procs.may_die[i])
			continue;
		if (waitid(P_PID, (id_t)procs.pid[i], &si, WEXITED | WNOHANG | WNOWAIT) ||
		    !si.si_pid)
			continue;
		if (si.si_code == CLD_EXITED && si.si_status == 0)
			continue;
		procs_fail("child %u %s %d", i,
			   si.si_code == CLD_EXITED ? "exited with" : "was killed by signal",
			   si.si_status);
	}
}

static void check_time(const char *what, unsigned who, unsigned key)
{
	if (procs.me == PROCS_PARENT)
		look_after_children();
	if (t_now() > procs.deadline)
		procs_fail("timed out: %s %u of process %u", what, key, who);
}

/* Sleeps until something changed after `seen`, or a slice of time is over. */
static void wait_change(uint32_t seen)
{
	struct timespec slice = {0, SLICE_NS};

	syscall(SYS_futex, &procs.sh->change, FUTEX_WAIT, seen, &slice, NULL, 0);
}

void procs_put(unsigned key, uint64_t value)
{
	struct box *box = &procs.sh->box[procs.me];

	atomic_store(&box->value[key], value);
	atomic_store(&box->has[key], 1);
	announce();
}

bool procs_has(unsigned who, unsigned key)
{
	return atomic_load(&procs.sh->box[who].has[key]);
}

uint64_t procs_get(unsigned who, unsigned key)
{
	uint32_t seen;

	for (;;) {
		seen = atomic_load(&procs.sh->change);
		if (procs_has(who, key))
			return atomic_load(&procs.sh->box[who].value[key]);
		check_time("waiting for key", who, key);
		wait_change(seen);
	}
}

void procs_wait_for(unsigned who, unsigned key, uint64_t value)
{
	uint32_t seen;

	for (;;) {
		seen = atomic_load(&procs.sh->change);
		if (procs_has(who, key) && atomic_load(&procs.sh->box[who].value[key]) >= value)
			return;
		check_time("waiting for progress of key", who, key);
		wait_change(seen);
	}
}

void procs_barrier(void)
{
	struct shared *sh = procs.sh;
	uint64_t phase = atomic_fetch_add(&sh->box[procs.me].phase, 1) + 1;

	announce();
	for (unsigned i = 0; i < procs.n; i++) {
		for (;;) {
			uint32_t seen = atomic_load(&sh->change);

			if (atomic_load(&sh->box[i].phase) >= phase ||
			    atomic_load(&sh->box[i].gone))
				break;
			check_time("waiting at a barrier for phase", i, (unsigned)phase);
			wait_change(seen);
		}
	}
}

void procs_put_addr(unsigned key, const struct t_qp *qp)
{
	struct t_addr a = t_addr(qp);
	uint64_t half[2];

	memcpy(half, &a.gid, sizeof(half));
	procs_put(key, half[0]);
	procs_put(key + 1, half[1]);
	procs_put(key + 2, (uint64_t)a.qpn << 16 | a.lid);
}

struct t_addr procs_get_addr(unsigned who, unsigned key)
{
	struct t_addr a = {0};
	uint64_t half[2], last;

	half[0] = procs_get(who, key);
	half[1] = procs_get(who, key + 1);
	last = procs_get(who, key + 2);
	memcpy(&a.gid, half, sizeof(half));
	a.qpn = (uint32_t)(last >> 16);
	a.lid = (uint16_t)last;
	return a;
}

void procs_put_buf(unsigned key, const struct t_buf *buf)
{
	procs_put(key, (uintptr_t)buf->addr);
	procs_put(key + 1, buf->mr->rkey);
}

struct procs_buf procs_get_buf(unsigned who, unsigned key)
{
	return (struct procs_buf){procs_get(who, key), (uint32_t)procs_get(who, key + 1)};
}

void procs_connect(struct t_qp *qp, unsigned who, unsigned key, const struct t_params *params)
{
	struct t_addr peer;

	procs_put_addr(key, qp);
	peer = procs_get_addr(who, key);
	t_up(qp, params, &peer);
}

static void child_overdue(int sig)
{
	static const char text[] = "a child passed the deadline\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

void procs_skip_if_tsan(void)
{
#ifdef __SANITIZE_THREAD__
	t_skip("ThreadSanitizer takes no new threads in a forked child");
#endif
}

void procs_default_signals(void)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};

	for (unsigned i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		signal(crashes[i], SIG_DFL);
}

void procs_expect_exit(pid_t pid)
{
	int status = -1;

	t_true(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
	t_true(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's status is 0x%x", status);
}

static void child_main(unsigned me, unsigned node, procs_fn fn, void *arg, pid_t parent)
{
	char text[16];

	procs.me = me;
	procs_default_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGALRM, child_overdue);
	alarm(PROCS_DEADLINE);
	/* A device that is named is the only one there is, and all are on its node. */
	snprintf(text, sizeof(text), "%u", getenv("TEST_DEVICE") ? 0 : node);
	setenv("SOFTHCA_NODE", text, 1);
	t_child_begin();
	fn(me, arg);
	exit(0);
}

void procs_start(unsigned n, const unsigned *nodes, procs_fn fn, void *arg)
{
	pid_t parent = getpid();

	if (procs.sh) { /* a failed test left it */
		end_all();
		munmap(procs.sh, sizeof(*procs.sh));
		procs.sh = NULL;
	}
	t_true(n <= PROCS_MAX, "too many children: %u", n);
	procs.sh = mmap(NULL, sizeof(*procs.sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	t_true(procs.sh != MAP_FAILED, "mmap: %s", strerror(errno));
	memset(procs.waited, 0, sizeof(procs.waited));
	memset(procs.may_die, 0, sizeof(procs.may_die));
	procs.n = n;
	procs.deadline = t_now() + PROCS_DEADLINE * UINT64_C(1000000000);
	fflush(NULL);
	for (unsigned i = 0; i < n; i++) {
		procs.pid[i] = fork();
		if (procs.pid[i] == 0)
			child_main(i, nodes ? nodes[i] : 0, fn, arg, parent);
		if (procs.pid[i] < 0) {
			procs.n = i;
			procs_fail("fork: %s", strerror(errno));
		}
	}
}

static void wait_state(unsigned who, int what, const char *name)
{
	for (;;) {
		siginfo_t si = {0};

		if (waitid(P_PID, (id_t)procs.pid[who], &si, what | WNOWAIT | WNOHANG))
			procs_fail("waitid: %s", strerror(errno));
		if (si.si_pid)
			return;
		check_time(name, who, 0);
		poll(NULL, 0, 1); /* no descriptor reports a stopped child */
	}
}

void procs_may_die(unsigned who)
{
	procs.may_die[who] = true;
	atomic_store(&procs.sh->box[who].gone, 1);
	announce();
}

void procs_kill(unsigned who)
{
	procs_may_die(who);
	kill(procs.pid[who], SIGKILL);
	wait_state(who, WEXITED, "killing");
}

void procs_stop(unsigned who)
{
	kill(procs.pid[who], SIGSTOP);
	wait_state(who, WSTOPPED, "stopping");
}

void procs_cont(unsigned who)
{
	kill(procs.pid[who], SIGCONT);
}

int procs_wait_end(unsigned who)
{
	int status = 0;

	wait_state(who, WEXITED, "waiting for the end");
	if (waitpid(procs.pid[who], &status, 0) != procs.pid[who])
		procs_fail("waitpid: %s", strerror(errno));
	procs.waited[who] = true;
	return status;
}

void procs_reap(unsigned who)
{
	procs_wait_end(who);
}

pid_t procs_pid(unsigned who)
{
	return procs.pid[who];
}

void procs_finish(void)
{
	for (unsigned i = 0; i < procs.n; i++) {
		while (!procs.waited[i]) {
			uint32_t seen = atomic_load(&procs.sh->change);
			siginfo_t si = {0};

			check_time("waiting for the end", i, 0);
			waitid(P_PID, (id_t)procs.pid[i], &si, WEXITED | WNOHANG | WNOWAIT);
			if (si.si_pid)
				procs_wait_end(i);
			else
				wait_change(seen);
		}
	}
	munmap(procs.sh, sizeof(*procs.sh));
	procs.sh = NULL;
}

void procs_run(unsigned n, const unsigned *nodes, procs_fn fn, void *arg)
{
	procs_start(n, nodes, fn, arg);
	procs_finish();
}
