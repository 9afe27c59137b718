/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_mask.c - no thread blocks SIGSEGV while rdtsc is trapped: the kernel ends a process that
 * causes a signal which it blocks, and the C library reads the TSC whenever somebody asks for the
 * time.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>

#include "next.h"
#include "program.h"

#define FUNCTIONS(FN)                                                           \
	FN(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old)) \
	FN(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old))

NEXT_FUNCTIONS(FUNCTIONS)

/* Returns the set that is blocked in place of the program's. */
static const sigset_t *allowed(int how, const sigset_t *set, sigset_t *copy)
{
	if (!set || how == SIG_UNBLOCK || !shca_program_traps())
		return set;
	*copy = *set;
	sigdelset(copy, SIGSEGV);
	return copy;
}

int shca_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	return NEXT(pthread_sigmask)(how, allowed(how, set, &copy), old);
}

int shca_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	return NEXT(sigprocmask)(how, allowed(how, set, &copy), old);
}
