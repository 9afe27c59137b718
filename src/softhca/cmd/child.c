/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * child.c - running the command in the launcher's own process group, so that the terminal treats
 * both as one job.
 */
#define _GNU_SOURCE 1
#include "child.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fail.h"

static const int passed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
				SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

void shca_signals_hold(struct shca_signals *signals)
{
	struct sigaction chld = {.sa_handler = SIG_DFL};

	sigemptyset(&signals->handled);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&signals->handled, passed_on[i]);
	sigaddset(&signals->handled, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals->handled, &signals->old_mask);
	/* If SIGCHLD was ignored when the launcher was started, the kernel would throw exit
	 * statuses away. */
	sigaction(SIGCHLD, &chld, &signals->old_chld);
}

static void __attribute__((noreturn))
execute(const struct shca_signals *signals, pid_t launcher, char **argv)
{
	int error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The launcher may have died before the line above; then nothing would kill this
	 * process. */
	if (getppid() != launcher)
		raise(SIGKILL);
	sigaction(SIGCHLD, &signals->old_chld, NULL);
	sigprocmask(SIG_SETMASK, &signals->old_mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	shca_fail(0, "The command %s can't be run: %s.", argv[0], strerror(error));
	_exit(error == ENOENT ? SHCA_EXIT_NOT_FOUND : SHCA_EXIT_NOT_EXECUTABLE);
}

int shca_child_start(struct shca_child *child, const struct shca_signals *signals, char **argv)
{
	pid_t launcher = getpid();

	child->pid = fork();
	if (child->pid == 0)
		execute(signals, launcher, argv);
	return child->pid < 0 ? -errno : 0;
}

/* Returns true if users end a command by that signal. */
static bool is_passed_on(int nr)
{
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		if (passed_on[i] == nr)
			return true;
	return false;
}

/* Handles one change of a child's state. Returns true, with *status set, when the command has
 * ended. */
static bool handle_change(struct shca_child *child, const siginfo_t *si, int *status)
{
	bool over =
		si->si_code == CLD_EXITED || si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED;

	if (si->si_pid != child->pid) {
		if (over && child->other)
			child->other(child->arg, si);
		return false;
	}
	if (si->si_code == CLD_STOPPED || si->si_code == CLD_CONTINUED)
		child->stopped = si->si_code == CLD_STOPPED;
	*status = si->si_code == CLD_EXITED ? si->si_status : SHCA_EXIT_SIGNAL + si->si_status;
	if (over && si->si_code != CLD_EXITED && !is_passed_on(si->si_status))
		child->signal = si->si_status;
	return over;
}

/* Reaps all children, also those of a shell that became the launcher by exec: no zombies stay.
 * Returns true, with *status set, when the command has ended. */
static bool reap(struct shca_child *child, int *status)
{
	for (;;) {
		siginfo_t si = {0};

		if (waitid(P_ALL, 0, &si, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) ||
		    si.si_pid == 0)
			return false;
		if (handle_change(child, &si, status))
			return true;
	}
}

/* Returns true if the command has received the signal, too: the terminal, and some processes,
 * signal the whole process group, in which the command is unless it left the group. A command that
 * counts signals, as mpirun does, must not get two for one. */
static bool has_received(const struct shca_child *child, const siginfo_t *si)
{
	return getpgid(child->pid) == getpgrp() &&
	       (si->si_code == SI_KERNEL || shca_witness_saw(child->witness, si));
}

/*
 * Stops the launcher with a command that a terminal stop has stopped, so that the shell sees the
 * job stopped. A plain SIGSTOP to the command stops only the command. Either of the two signals,
 * SIGTSTP and SIGCHLD, may be taken first.
 */
static void stop_too(struct shca_child *child)
{
	if (!child->stopped || !child->stop_asked)
		return;
	child->stopped = child->stop_asked = false;
	raise(SIGSTOP);
}

int shca_child_wait(struct shca_child *child, const struct shca_signals *signals)
{
	int status = 0;

	for (;;) {
		siginfo_t si;

		if (sigwaitinfo(&signals->handled, &si) < 0)
			continue;
		if (si.si_signo == SIGCHLD) {
			if (reap(child, &status))
				return status;
		} else if (!has_received(child, &si)) {
			kill(child->pid, si.si_signo);
		}
		if (si.si_signo == SIGTSTP)
			child->stop_asked = true;
		if (si.si_signo == SIGCONT)
			child->stop_asked = false;
		stop_too(child);
	}
}
