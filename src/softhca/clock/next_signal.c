/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_signal.c - signals. A handler of the program ends the wait in virtual time in which its
 * thread is, as it ends one in the kernel; and it sees virtual time. So a handler stands in front
 * of each.
 */
#define _GNU_SOURCE 1
#include "next_signal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "next.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                    \
	FN(int, sigaction, (int nr, const struct sigaction *act, struct sigaction *old)) \
	FN(sighandler_t, signal, (int nr, sighandler_t handler))                         \
	FN(int, kill, (pid_t pid, int nr))                                               \
	FN(int, killpg, (pid_t group, int nr))                                           \
	FN(int, sigqueue, (pid_t pid, int nr, union sigval value))                       \
	FN(int, pthread_kill, (pthread_t thread, int nr))

NEXT_FUNCTIONS(FUNCTIONS)

typedef void handler_fn(int nr, siginfo_t *info, void *context);

/* The program's handlers; whether each takes three arguments (SA_SIGINFO), and whether calls go on
 * after it (SA_RESTART). */
static struct {
	handler_fn *_Atomic handler;
	_Atomic bool has_info;
	_Atomic bool restarts;
} program_handlers[_NSIG];

static void on_signal(int nr, siginfo_t *info, void *context)
{
	handler_fn *handler = atomic_load(&program_handlers[nr].handler);
	bool was_in_handler = shca_program_begin_handler(atomic_load(&program_handlers[nr].restarts)
								 ? SHCA_HANDLER_RESTART
								 : SHCA_HANDLER_INTERRUPT);

	/* Three arguments do no harm to a handler that wants one. */
	handler(nr, info, context);
	shca_program_end_handler(was_in_handler);
}

bool (*shca_signal_set_segv)(const struct sigaction *act, struct sigaction *old);

int shca_kernel_sigaction(int nr, const struct sigaction *act, struct sigaction *old)
{
	return NEXT(sigaction)(nr, act, old);
}

/* Returns true if the action is a function. As in the kernel SA_SIGINFO doesn't matter for that. */
static bool is_handler(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

/* Puts the program's handler in the place of ours. */
static void show_program_handler(struct sigaction *act, handler_fn *handler, bool has_info)
{
	if (!(act->sa_flags & SA_SIGINFO) || act->sa_sigaction != on_signal)
		return;
	act->sa_sigaction = handler;
	if (!has_info)
		act->sa_flags &= ~SA_SIGINFO;
}

static int change(int nr, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction wrapper, was = {0};
	handler_fn *handler = atomic_load(&program_handlers[nr].handler);
	bool has_info = atomic_load(&program_handlers[nr].has_info);
	int rc;

	if (act && is_handler(act)) {
		wrapper = *act;
		wrapper.sa_sigaction = on_signal;
		wrapper.sa_flags |= SA_SIGINFO;
		atomic_store(&program_handlers[nr].handler, act->sa_sigaction);
		atomic_store(&program_handlers[nr].has_info, !!(act->sa_flags & SA_SIGINFO));
		atomic_store(&program_handlers[nr].restarts, !!(act->sa_flags & SA_RESTART));
		act = &wrapper;
	}
	rc = NEXT(sigaction)(nr, act, &was);
	if (!rc && old) {
		show_program_handler(&was, handler, has_info);
		*old = was;
	}
	return rc;
}

int shca_sigaction(int nr, const struct sigaction *act, struct sigaction *old)
{
	/* SIGKILL and SIGSTOP are refused there. */
	if (nr <= 0 || nr >= _NSIG || nr == SIGKILL || nr == SIGSTOP)
		return NEXT(sigaction)(nr, act, old);
	if (nr == SIGSEGV && shca_signal_set_segv && shca_signal_set_segv(act, old))
		return 0;
	return change(nr, act, old);
}

sighandler_t shca_signal(int nr, sighandler_t handler)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

	if (shca_sigaction(nr, &act, &old))
		return SIG_ERR;
	return old.sa_handler;
}

/* ---------------------------------------------------------------- sending them */

/* Signals are sent at a time: a sync point, if the thread has a clock. */
#define SENDING(nr, call)                             \
	bool clocked = (nr) && shca_program_join();   \
	int rc;                                       \
                                                      \
	if (clocked)                                  \
		shca_program_enter();                 \
	/* 0 asks whether there is such a process. */ \
	if (nr)                                       \
		shca_program_note_signal();           \
	rc = call;                                    \
	if (clocked)                                  \
		shca_program_leave();                 \
	return rc

int shca_kill(pid_t pid, int nr)
{
	SENDING(nr, NEXT(kill)(pid, nr));
}

int shca_killpg(pid_t group, int nr)
{
	SENDING(nr, NEXT(killpg)(group, nr));
}

int shca_sigqueue(pid_t pid, int nr, union sigval value)
{
	SENDING(nr, NEXT(sigqueue)(pid, nr, value));
}

int shca_pthread_kill(pthread_t thread, int nr)
{
	SENDING(nr, NEXT(pthread_kill)(thread, nr));
}
