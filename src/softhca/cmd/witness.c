/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * witness.c - tells signals to the process group from those to the launcher alone. The kernel
 * doesn't say in a siginfo_t which of both a signal was.
 */
#define _GNU_SOURCE 1
#include "witness.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric/fabric.h"

/* Age (ns) up to which a signal that the witness received counts as the one that the launcher
 * received. */
#define SAME_NS 200000000u
/* Time (ns) that the signal to the group may come after the one to the launcher. */
#define LATER_NS 50000000u

struct shca_witness_page {
	_Atomic uint32_t received; /* futex: number of signals */
	struct {
		_Atomic int32_t sender;
		_Atomic uint64_t when; /* ns; 0: never */
	} last[_NSIG];
};

static void __attribute__((noreturn))
witness(struct shca_witness_page *page, const sigset_t *blocked, pid_t launcher)
{
	siginfo_t si;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "softhca-witness");
	/* The launcher may have died before the first line. */
	while (getppid() == launcher) {
		if (sigwaitinfo(blocked, &si) < 0 || si.si_code == SI_KERNEL)
			continue;
		atomic_store(&page->last[si.si_signo].sender, si.si_pid);
		atomic_store(&page->last[si.si_signo].when, shca_real_now());
		atomic_fetch_add(&page->received, 1);
		syscall(SYS_futex, &page->received, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	_exit(0);
}

void shca_witness_start(struct shca_witness *started, const sigset_t *blocked)
{
	pid_t launcher = getpid();
	void *page = mmap(NULL, sizeof(*started->page), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	started->page = page;
	started->pid = fork();
	if (started->pid == 0)
		witness(page, blocked, launcher);
}

void shca_witness_end(struct shca_witness *witness)
{
	if (witness->pid > 0) {
		kill(witness->pid, SIGKILL);
		waitpid(witness->pid, NULL, 0);
	}
	witness->pid = 0;
}

static bool is_same(const struct shca_witness *witness, const siginfo_t *si)
{
	uint64_t when = atomic_load(&witness->page->last[si->si_signo].when);

	return when && atomic_load(&witness->page->last[si->si_signo].sender) == si->si_pid &&
	       shca_real_now() - when < SAME_NS;
}

bool shca_witness_saw(const struct shca_witness *witness, const siginfo_t *si)
{
	uint64_t start = shca_real_now(), waited = 0;

	if (witness->pid <= 0)
		return false;
	while (waited < LATER_NS) {
		uint32_t received = atomic_load(&witness->page->received);
		const struct timespec t = {0, (long)(LATER_NS - waited)};

		if (is_same(witness, si))
			return true;
		syscall(SYS_futex, &witness->page->received, FUTEX_WAIT, received, &t, NULL, 0);
		waited = shca_real_now() - start;
	}
	return is_same(witness, si);
}
