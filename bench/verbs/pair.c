/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.c - two processes, forked before any device is opened.
 */
#define _GNU_SOURCE
#include "pair.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 20000000000ull

static cpu_set_t allowed;

_Noreturn void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("verbs_bench: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	_exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void pair_idle_slow(struct idle *idle)
{
	uint64_t now = now_ns();

	if (!idle->since)
		idle->since = now;
	else if (now - idle->since > PATIENCE_NS)
		die("nothing arrived for 20 s; see `softhca stat` for the state of the queues");
	sched_yield();
}

/* Rank 1 ends after rank 0 has seen all its answers, or has failed and said why. */
static void peer_ended(int sig)
{
	int status;

	(void)sig;
	if (waitpid(-1, &status, WNOHANG) > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
		static const char text[] = "verbs_bench: the second process failed\n";

		if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
			_exit(2);
		_exit(1);
	}
}

static void share(struct process_pair *pair)
{
	pthread_barrierattr_t attr;

	pair->sh = mmap(NULL, sizeof *pair->sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (pair->sh == MAP_FAILED)
		die("no shared memory: %s", strerror(errno));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (pthread_barrier_init(&pair->sh->barrier, &attr, 2))
		die("no barrier between processes on this system");
	pthread_barrierattr_destroy(&attr);
}

void pair_start(struct process_pair *pair)
{
	struct sigaction action = {.sa_handler = peer_ended, .sa_flags = SA_RESTART};
	pid_t parent = getpid(), pid;

	share(pair);
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		die("the CPUs of this process can't be read: %s", strerror(errno));
	sigaction(SIGCHLD, &action, NULL);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	pair->rank = pid == 0;
	if (pair->rank) {
		signal(SIGCHLD, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	/* The bare process_vm_writev goes from the parent into its child, which every ptrace_scope
	 * but 2 and 3 allows. */
	pair->sh->info[pair->rank].pid = getpid();
	pair->gates = 0;
}

void pair_end(struct process_pair *pair)
{
	pair_barrier(pair);
	if (pair->rank)
		_exit(0);
}

void pair_barrier(struct process_pair *pair)
{
	pthread_barrier_wait(&pair->sh->barrier);
}

void pair_gate(struct process_pair *pair)
{
	struct idle idle = {0};

	pair_barrier(pair);
	pair->gates++;
	atomic_store(&pair->sh->arrived[pair->rank].value, pair->gates);
	while (atomic_load(&pair->sh->arrived[!pair->rank].value) < pair->gates)
		pair_idle(&idle);
}

void pair_pin(struct process_pair *pair, bool on)
{
	cpu_set_t set = allowed;
	int skip = pair->rank;

	if (on) {
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
				CPU_ZERO(&set);
				CPU_SET(cpu, &set);
				break;
			}
	}
	if (sched_setaffinity(0, sizeof set, &set))
		die("a process can't be pinned to a CPU: %s", strerror(errno));
}

int pair_cpus(void)
{
	return CPU_COUNT(&allowed);
}
