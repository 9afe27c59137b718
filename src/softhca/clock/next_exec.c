/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_exec.c - other programs that a thread with a clock executes, or starts. They may read the
 * TSC, which their loader does before anybody could catch a signal, and run on all CPUs that the
 * thread had before it was put on one.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "next.h"
#include "next_cpus.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                     \
	FN(int, execve, (const char *path, char *const argv[], char *const env[]))        \
	FN(int, execv, (const char *path, char *const argv[]))                            \
	FN(int, execvp, (const char *file, char *const argv[]))                           \
	FN(int, execvpe, (const char *file, char *const argv[], char *const env[]))       \
	FN(int, execl, (const char *path, const char *arg, ...))                          \
	FN(int, execlp, (const char *file, const char *arg, ...))                         \
	FN(int, execle, (const char *path, const char *arg, ...))                         \
	FN(int, fexecve, (int fd, char *const argv[], char *const env[]))                 \
	FN(int, execveat,                                                                 \
	   (int dir, const char *path, char *const argv[], char *const env[], int flags)) \
	FN(int, posix_spawn,                                                              \
	   (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,     \
	    const posix_spawnattr_t *attr, char *const argv[], char *const env[]))        \
	FN(int, posix_spawnp,                                                             \
	   (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions,     \
	    const posix_spawnattr_t *attr, char *const argv[], char *const env[]))        \
	FN(int, system, (const char *command))                                            \
	FN(FILE *, popen, (const char *command, const char *mode))

NEXT_FUNCTIONS(FUNCTIONS)

/* Calls a function that starts another program, as a thread without a clock would. Undoes this
 * afterwards, in the thread whose program stays. */
#define AS_UNCLOCKED(type, call)               \
	cpu_set_t pinned;                      \
	bool was_pinned;                       \
	type result;                           \
                                               \
	shca_program_disturb_others();         \
	was_pinned = shca_cpus_unpin(&pinned); \
	shca_program_untrap();                 \
	result = call;                         \
	shca_program_trap_again();             \
	if (was_pinned)                        \
		shca_cpus_pin(&pinned);        \
	return result

int shca_execve(const char *path, char *const argv[], char *const env[])
{
	AS_UNCLOCKED(int, NEXT(execve)(path, argv, env));
}

int shca_execv(const char *path, char *const argv[])
{
	AS_UNCLOCKED(int, NEXT(execv)(path, argv));
}

int shca_execvp(const char *file, char *const argv[])
{
	AS_UNCLOCKED(int, NEXT(execvp)(file, argv));
}

int shca_execvpe(const char *file, char *const argv[], char *const env[])
{
	AS_UNCLOCKED(int, NEXT(execvpe)(file, argv, env));
}

int shca_fexecve(int fd, char *const argv[], char *const env[])
{
	AS_UNCLOCKED(int, NEXT(fexecve)(fd, argv, env));
}

int shca_execveat(int dir, const char *path, char *const argv[], char *const env[], int flags)
{
	AS_UNCLOCKED(int, NEXT(execveat)(dir, path, argv, env, flags));
}

/* The functions that take the arguments one by one pass them on as an array. glibc's allow as many
 * as the stack has room for. */
static int count(va_list arguments)
{
	int n = 1;

	while (va_arg(arguments, char *))
		n++;
	return n;
}

/* Stores `first` and the arguments up to NULL, of which there are n. */
static void collect(char **argv, int n, const char *first, va_list *arguments)
{
	argv[0] = (char *)(uintptr_t)first;
	for (int i = 1; i <= n; i++)
		argv[i] = va_arg(*arguments, char *);
}

/* The C library has an array of as many arguments on the stack, too: these calls may be made in
 * signal handlers, so they don't allocate memory. */
#pragma GCC diagnostic ignored "-Wvla"

/* Makes a call with the arguments as `argv`. The call may read from `arguments` what comes behind
 * them. */
#define WITH_ARRAY(call)                           \
	va_list arguments;                         \
	int n, rc;                                 \
                                                   \
	va_start(arguments, arg);                  \
	n = arg ? count(arguments) : 0;            \
	va_end(arguments);                         \
	va_start(arguments, arg);                  \
	{                                          \
		char *argv[n + 1];                 \
                                                   \
		collect(argv, n, arg, &arguments); \
		rc = call;                         \
	}                                          \
	va_end(arguments);                         \
	return rc

int shca_execl(const char *path, const char *arg, ...)
{
	WITH_ARRAY(shca_execv(path, argv));
}

int shca_execlp(const char *file, const char *arg, ...)
{
	WITH_ARRAY(shca_execvp(file, argv));
}

int shca_execle(const char *path, const char *arg, ...)
{
	WITH_ARRAY(shca_execve(path, argv, va_arg(arguments, char **)));
}

int shca_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	AS_UNCLOCKED(int, NEXT(posix_spawn)(pid, path, actions, attr, argv, env));
}

int shca_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	AS_UNCLOCKED(int, NEXT(posix_spawnp)(pid, file, actions, attr, argv, env));
}

int shca_system(const char *command)
{
	AS_UNCLOCKED(int, NEXT(system)(command));
}

FILE *shca_popen(const char *command, const char *mode)
{
	AS_UNCLOCKED(FILE *, NEXT(popen)(command, mode));
}
