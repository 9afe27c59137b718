/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of the programs unit_*, and functions that end their process. */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool unit_failed;

/* Prints the result of a test. */
static inline void unit_check(const char *group, const char *name, bool ok)
{
	printf("%sok %s: %s\n", ok ? "" : "not ", group, name);
	unit_failed |= !ok;
}

/* Returns the exit status of the program: 1 if a test failed. */
static inline int unit_status(void)
{
	return unit_failed;
}

/* Calls the function in a child process, which ends with status 0 if the function returns. Returns
 * the signal that ends the child, 0 if the child succeeds, or a negative number. */
static inline int unit_ends_by(void (*function)(void))
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* The message of assert() would only confuse. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		function();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

#endif
