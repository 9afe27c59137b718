/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_proc.c - process slots, and whether their processes run.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../caught.h"
#include "fixture.h"
#include "fabric/epoch.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/reap.h"

static _Atomic bool asleep;

static void slots_are_given_back(void **state)
{
	unsigned i;
	int first = u_slot, fd;
	uint32_t say;
	char path[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/monitor", u_dir);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (i = 0; i < 20; i++) {
		shca_proc_detach(&u_fab, (unsigned)u_slot);
		t_holds(shca_epoch_self() == NULL);
		t_holds(!shca_proc_alive(&u_fab, (unsigned)u_slot));
		u_slot = shca_proc_attach(&u_fab);
		t_holds(u_slot != first); /* the one used longest ago */
		t_eq(read(fd, &say, sizeof(say)), sizeof(say));
		t_eq(say, u_slot);
		t_holds(shca_epoch_self() == &u_fab.hdr->procs[u_slot].exec[0]);
		t_eq(strncmp(u_fab.hdr->procs[u_slot].comm, program_invocation_short_name, 15), 0);
	}
	close(fd);
	/* As after exec: this pid already has a slot, with an object and a thread inside an
	 * epoch. */
	first = u_slot;
	shca_table_publish(u_make(u_hca, SHCA_MR, (unsigned)u_slot, NULL));
	shca_epoch_enter(shca_epoch_self());
	u_slot = shca_proc_attach(&u_fab);
	t_holds(u_slot != first);
	t_holds(!shca_proc_alive(&u_fab, (unsigned)first));
	t_eq(atomic_load(&u_hca->tables[SHCA_MR].count), 0);
}

static void *sleep_until_woken(void *arg)
{
	struct shca_proc *proc = arg;
	uint32_t seen;

	atomic_store(&proc->sleeping, 1);
	seen = atomic_load(&proc->wake_word);
	atomic_store(&asleep, true);
	while (atomic_load(&proc->wake_word) == seen)
		syscall(SYS_futex, &proc->wake_word, FUTEX_WAIT, seen, NULL, NULL, 0);
	atomic_store(&proc->sleeping, 0);
	return NULL;
}

static void a_wake_ends_a_sleep(void **state)
{
	struct shca_proc *proc = &u_fab.hdr->procs[u_slot];
	pthread_t t;

	(void)state;
	t_eq(pthread_create(&t, NULL, sleep_until_woken, proc), 0);
	while (!atomic_load(&asleep))
		sched_yield();
	shca_proc_wake(proc);
	t_eq(pthread_join(t, NULL), 0);
	t_eq(atomic_load(&proc->sleeping), 0);
}

static void *outlive_main(void *arg)
{
	char path[64], text[512], *state;
	int fd, n, *to = arg;

	/* Until the kernel shows the first thread as a zombie. */
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getpid());
	do {
		fd = open(path, O_RDONLY);
		n = (int)read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		state = strrchr(text, ')');
	} while (!state || state[2] != 'Z');
	if (write(*to, "z", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void a_process_runs_without_its_first_thread(void **state)
{
	static int pipefd[2]; /* the first thread's stack goes with it */
	int slot;
	pthread_t t;
	pid_t pid;
	char c;

	(void)state;
	t_eq(pipe(pipefd), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		slot = shca_proc_attach(&u_fab);
		if (slot < 0 || write(pipefd[1], &slot, sizeof(slot)) != sizeof(slot) ||
		    pthread_create(&t, NULL, outlive_main, &pipefd[1]))
			_exit(1);
		pthread_exit(NULL);
	}
	close(pipefd[1]);
	t_eq(read(pipefd[0], &slot, sizeof(slot)), sizeof(slot));
	t_eq(read(pipefd[0], &c, 1), 1);
	t_holds(shca_proc_running(&u_fab, (unsigned)slot));
	shca_reap_all(&u_fab);
	t_holds(shca_proc_alive(&u_fab, (unsigned)slot));
	u_kill((struct u_child){pid, (unsigned)slot});
	t_holds(!shca_proc_running(&u_fab, (unsigned)slot));
	close(pipefd[0]);
}

static void lock_alive(unsigned slot, void *arg)
{
	(void)arg;
	shca_lock(&u_fab.hdr->procs[slot].alive_lock);
}

/* Checks that the lock is released with the process, whether or not another one has noticed. */
static void an_alive_lock_ends_with_its_process(void **state)
{
	struct u_child c = u_fork(lock_alive, NULL);
	const struct shca_proc *proc = &u_fab.hdr->procs[c.slot];

	(void)state;
	t_holds(!shca_proc_engine_alive(
		&u_fab.hdr->procs[u_slot])); /* this process has no engine */
	t_holds(shca_proc_engine_alive(proc));
	u_kill(c);
	t_holds(shca_proc_alive(&u_fab, c.slot));
	t_holds(!shca_proc_engine_alive(proc));
	shca_reap_all(&u_fab);
	t_holds(!shca_proc_engine_alive(proc));
}

/* Checks that a process that can't take a lock says so before it is aborted. */
static void a_lost_lock_is_said(void **state)
{
	pthread_mutex_t *lock = &u_fab.hdr->ctl_lock;
	const struct rlimit none = {0, 0};
	struct t_caught caught;
	const char *said;
	int status;
	pid_t pid;

	(void)state;
	/* A holder dies, and the next one releases the lock without having repaired anything. */
	pid = fork();
	if (!pid)
		_exit(pthread_mutex_lock(lock));
	t_eq(waitpid(pid, &status, 0), pid);
	t_eq(pthread_mutex_lock(lock), EOWNERDEAD);
	t_eq(pthread_mutex_unlock(lock), 0);
	t_catch(&caught);
	pid = fork();
	if (!pid) {
		/* cmocka has a handler. */
		signal(SIGABRT, SIG_DFL);
		setrlimit(RLIMIT_CORE, &none);
		shca_lock(lock);
		_exit(0);
	}
	t_eq(waitpid(pid, &status, 0), pid);
	said = t_caught_end(&caught);
	t_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "wait status %#x", status);
	t_true(strstr(said, "can't take a lock of its fabric"), "the process says: %s", said);
	t_eq(shca_lock_init(lock), 0);
}

static void a_replaced_program_does_not_run(void **state)
{
	uint64_t before;
	int pipefd[2], slot;
	pid_t pid;
	char c;

	(void)state;
	t_eq(pipe2(pipefd, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		slot = shca_proc_attach(&u_fab);
		if (slot < 0 || write(pipefd[1], &slot, sizeof(slot)) != sizeof(slot))
			_exit(1);
		raise(SIGSTOP);
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(1);
	}
	close(pipefd[1]);
	t_eq(read(pipefd[0], &slot, sizeof(slot)), sizeof(slot));
	before = u_fab.hdr->procs[slot].image;
	t_holds(before != 0);
	t_holds(shca_proc_running(&u_fab, (unsigned)slot));
	t_eq(waitpid(pid, NULL, WUNTRACED), pid);
	t_eq(kill(pid, SIGCONT), 0);
	t_eq(read(pipefd[0], &c, 1), 0); /* the kernel closed it: exec is through */
	while (shca_proc_running(&u_fab, (unsigned)slot)) /* a hang fails the test */
		sched_yield();
	shca_reap_all(&u_fab);
	t_holds(!shca_proc_alive(&u_fab, (unsigned)slot));
	t_eq(kill(pid, 0), 0);
	u_kill((struct u_child){pid, (unsigned)slot});
	close(pipefd[0]);
}

static void all_slots_taken(void **state)
{
	uint64_t not_inits = u_fab.hdr->procs[u_slot].start_time + 1;
	unsigned i;

	(void)state;
	shca_proc_detach(&u_fab, (unsigned)u_slot);
	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *proc = &u_fab.hdr->procs[i];

		atomic_store(&proc->pid, 1);
		proc->start_time = not_inits;
		atomic_store(&proc->state, 1 << 8 | SHCA_PROC_ALIVE);
	}
	/* The processes have ended, even if others have their pids now: attaching makes room. */
	u_slot = shca_proc_attach(&u_fab);
	t_holds(u_slot >= 0);
	for (i = 0; i < SHCA_MAX_PROCS; i++)
		t_eq(shca_proc_alive(&u_fab, i), i == (unsigned)u_slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FABRIC(slots_are_given_back),
		IN_FABRIC(a_wake_ends_a_sleep),
		IN_FABRIC(a_process_runs_without_its_first_thread),
		IN_FABRIC(an_alive_lock_ends_with_its_process),
		IN_FABRIC(a_lost_lock_is_said),
		IN_FABRIC(a_replaced_program_does_not_run),
		IN_FABRIC(all_slots_taken),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
