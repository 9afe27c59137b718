/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.c - waits until the real world has done what this job asked of it. Where nothing else runs
 * on this machine that is so; otherwise the launcher's monitor looks which processes are the job's
 * (cmd/world.c).
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/* A monitor that doesn't answer for so long was killed, and the launcher with it. */
#define NO_ANSWER_S 5

/* Returns true if the calling thread is the only one on this machine that wants a CPU. */
static bool runs_alone(void)
{
	char text[128], *p;
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* 0.00 0.01 0.05 1/80 1206: those that want one, of all */
	p = strchr(text, '/');
	return p && p - text > 2 && p[-1] == '1' && p[-2] == ' ';
}

void shca_clock_settle(struct shca_clock *c)
{
	const struct timespec patience = {NO_ANSWER_S, 0};
	uint32_t asked;

	if (runs_alone())
		return;
	asked = atomic_fetch_add(&c->world_asked, 1) + 1;
	syscall(SYS_futex, &c->world_asked, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	for (;;) {
		uint32_t done = atomic_load(&c->world_done);

		if ((int32_t)(done - asked) >= 0)
			return;
		if (syscall(SYS_futex, &c->world_done, FUTEX_WAIT, done, &patience, NULL, 0) &&
		    errno == ETIMEDOUT)
			break;
	}
	atomic_fetch_add(&c->unquiet, 1);
}
