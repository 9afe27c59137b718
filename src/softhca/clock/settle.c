/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.c - waits until the real world has done what this job asked of it. Where more than one
 * process may be busy, the launcher's monitor looks at the job's processes (cmd/world.c). The
 * kernel's count of threads that want a CPU would not do: it misses a thread that was woken on
 * another CPU a moment ago.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "settle_near.h"
#include "turn_self.h"

/* Time after which the asker looks whether there is still a launcher, which starts a monitor again
 * that was killed; and how often it does. */
#define ANSWER_TIMEOUT_S 5
#define ANSWER_TIMEOUTS  120

static bool is_launcher_gone(void)
{
	pid_t launcher = atomic_load(&shca_turn_here.fabric->hdr->owner_pid);

	return syscall(SYS_kill, launcher, 0) && errno == ESRCH;
}

void shca_clock_settle(struct shca_clock *clock)
{
	const struct timespec timeout = {ANSWER_TIMEOUT_S, 0};
	unsigned timeouts = 0;
	uint32_t asked;

	if (shca_settle_near(clock))
		return;
	asked = atomic_fetch_add(&clock->world_asked, 1) + 1;
	syscall(SYS_futex, &clock->world_asked, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	for (;;) {
		uint32_t done = atomic_load(&clock->world_done);

		if ((int32_t)(done - asked) >= 0)
			return;
		if (syscall(SYS_futex, &clock->world_done, FUTEX_WAIT, done, &timeout, NULL, 0) &&
		    errno == ETIMEDOUT && (++timeouts == ANSWER_TIMEOUTS || is_launcher_gone()))
			break;
	}
	atomic_fetch_add(&clock->unquiet, 1);
}
