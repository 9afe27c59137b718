/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_exec.c - programs that a thread with a clock executes, or starts, run as they would
 * without virtual time: they may read the TSC, and have the CPUs that the thread had before it was
 * put on one.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"

#define SHELL "/bin/sh"

/* Succeeds in a shell that may run on as many CPUs as this program. */
static char command[64];

static char *const argv[] = {"sh", "-c", command, NULL};

static int by_execl(void)
{
	return execl(SHELL, "sh", "-c", command, NULL);
}

static int by_execlp(void)
{
	return execlp("sh", "sh", "-c", command, NULL);
}

static int by_execle(void)
{
	return execle(SHELL, "sh", "-c", command, NULL, environ);
}

static int by_execv(void)
{
	return execv(SHELL, argv);
}

static int by_execvp(void)
{
	return execvp("sh", argv);
}

static int by_execve(void)
{
	return execve(SHELL, argv, environ);
}

static int by_execvpe(void)
{
	return execvpe("sh", argv, environ);
}

static int by_fexecve(void)
{
	return fexecve(open(SHELL, O_RDONLY | O_CLOEXEC), argv, environ);
}

static int by_execveat(void)
{
	return execveat(AT_FDCWD, SHELL, argv, environ, 0);
}

static int status_of(pid_t pid)
{
	int status;

	t_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int by_posix_spawn(void)
{
	pid_t pid;

	t_ok(posix_spawn(&pid, SHELL, NULL, NULL, argv, environ));
	return status_of(pid);
}

static int by_posix_spawnp(void)
{
	pid_t pid;

	t_ok(posix_spawnp(&pid, "sh", NULL, NULL, argv, environ));
	return status_of(pid);
}

static int by_system(void)
{
	return system(command);
}

static int by_popen(void)
{
	FILE *out = popen(command, "r");

	t_true(out, "popen() failed");
	return pclose(out);
}

/* Functions that don't return if they succeed, and functions that do. */
static int (*const execs[])(void) = {by_execl,  by_execlp,  by_execle,  by_execv,   by_execvp,
				     by_execve, by_execvpe, by_fexecve, by_execveat};
static int (*const starts[])(void) = {by_posix_spawn, by_posix_spawnp, by_system, by_popen};

enum { EXECS = sizeof(execs) / sizeof(*execs), STARTS = sizeof(starts) / sizeof(*starts) };

static void executes(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();

	(void)arg;
	/* The thread has a clock from here on. */
	t_qp_free(t_qp(dev, NULL));
	t_fail("%u returns %d", me, execs[me]());
}

static void test_execute(void **state)
{
	(void)state;
	procs_run(EXECS, NULL, executes, NULL);
}

/* Checks that a thread that starts another program keeps its virtual clock. */
static void starts_and_goes_on(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	uint64_t since;

	(void)arg;
	t_qp_free(t_qp(dev, NULL));
	t_eq(starts[me](), 0);
	since = t_now();
	t_ok(usleep(1000));
	t_true(t_now() - since < 2000000, "the clock is not the virtual one");
	t_close(dev);
}

static void test_start(void **state)
{
	(void)state;
	procs_run(STARTS, NULL, starts_and_goes_on, NULL);
}

/* Checks that a thread goes on if its exec fails, and that a program which it starts then has its
 * CPUs. */
static void fails(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	cpu_set_t set;

	(void)me;
	(void)arg;
	t_qp_free(t_qp(dev, NULL));
	t_eq(execl("", "", NULL), -1); /* no file has an empty name */
	t_eq(errno, ENOENT);
	t_ok(sched_getaffinity(0, sizeof(set), &set));
	t_eq(snprintf(command, sizeof(command), "[ $(nproc) -eq %d ]", CPU_COUNT(&set)) > 0, 1);
	t_eq(system(command), 0);
	t_close(dev);
}

static void test_fail(void **state)
{
	(void)state;
	procs_run(1, NULL, fails, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_execute),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_fail),
	};
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	snprintf(command, sizeof(command), "[ $(nproc) -eq %d ]", CPU_COUNT(&set));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
