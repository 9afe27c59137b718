/* SPDX-License-Identifier: BSD-3-Clause */
#include "runner.h"

#include <signal.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

void *runner_shared(unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void child(runner_fn *fn, void *arg, uint64_t from, uint64_t to, unsigned seconds,
		  uint64_t *at, int fd)
{
	sim_report_to(fd);
	/* The message of a failed assertion is its report. */
	dup2(fd, STDERR_FILENO);
	mallopt(M_PERTURB, 0xa5); /* fills freed memory, so that its use shows */
	for (*at = from; *at < to; ++*at) {
		if ((*at - from) % 256 == 0 || seconds < 5)
			alarm(seconds);
		fn(arg, *at);
	}
	alarm(0);
}

/* Reads the first line of the child's output into `why`, and the rest, so that the child never
 * blocks. */
static void listen_to(int fd, char *why)
{
	char rest[256];
	size_t len = 0;
	ssize_t n;

	while (len < RUNNER_TEXT - 1 && (n = read(fd, why + len, RUNNER_TEXT - 1 - len)) > 0)
		len += (size_t)n;
	while (len == RUNNER_TEXT - 1 && read(fd, rest, sizeof(rest)) > 0)
		continue;
	why[len] = '\0';
	why[strcspn(why, "\n")] = '\0';
}

struct runner_result runner_go(runner_fn *fn, void *arg, uint64_t from, uint64_t to,
			       uint64_t max_failed, unsigned seconds)
{
	static uint64_t *at;
	struct runner_result res = {0};

	if (!at)
		at = runner_shared(sizeof(*at));
	while (from < to && res.failed < max_failed) {
		char why[RUNNER_TEXT];
		int fds[2], status;
		pid_t pid;

		fflush(stdout);
		*at = from;
		if (pipe(fds) < 0 || (pid = fork()) < 0) {
			perror("fork");
			exit(1);
		}
		if (!pid) {
			close(fds[0]);
			child(fn, arg, from, to, seconds, at, fds[1]);
			exit(0);
		}
		close(fds[1]);
		listen_to(fds[0], why);
		close(fds[0]);
		waitpid(pid, &status, 0);
		if (status == 0) {
			res.runs += to - from;
			break;
		}
		res.runs += *at - from + 1;
		if (!res.failed++) {
			res.first = *at;
			if (WIFSIGNALED(status) && !why[0])
				snprintf(why, sizeof(why), "%s", strsignal(WTERMSIG(status)));
			memcpy(res.why, why, sizeof(why));
		}
		from = *at + 1;
	}
	return res;
}
