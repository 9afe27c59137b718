/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_futex.c - syscall(): futexes, for which threads wait as for conditions.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
#include "next_sync.h"
#include "next_time.h"
#include "next_times.h"
#include "program.h"

#define FUNCTIONS(FN) FN(long, syscall, (long nr, ...))

NEXT_FUNCTIONS(FUNCTIONS)

struct futex {
	uint32_t *word;
	int op;
	uint32_t value;
	const struct timespec *timeout;
};

static clockid_t futex_clock(int op)
{
	return op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

static uint64_t futex_deadline(const struct futex *futex)
{
	bool absolute = (futex->op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;

	if (!futex->timeout)
		return SHCA_FOREVER;
	if (absolute)
		return shca_sync_deadline(futex_clock(futex->op), futex->timeout);
	return shca_after(shca_program_now(), shca_ns(futex->timeout));
}

/* Waits as for a condition: callers expect spurious wake-ups of futexes, too. */
static long futex_wait(const struct futex *futex)
{
	uint64_t until;
	long rc = -1;

	shca_sync_begin_wait();
	until = futex_deadline(futex);
	shca_program_wake_spinning();
	shca_program_watch(true);
	errno = EAGAIN;
	if (__atomic_load_n(futex->word, __ATOMIC_SEQ_CST) == futex->value) {
		if (!shca_program_settle())
			shca_program_sleep(until, false);
		errno = ETIMEDOUT;
		rc = until != SHCA_FOREVER && shca_program_now() >= until ? -1 : 0;
	}
	shca_sync_end_wait();
	return rc;
}

/* Makes waits by SYS_futex, of programs with locks of their own, virtual, and SYS_getrandom
 * repeatable, as getrandom(). */
long shca_syscall(long nr, ...)
{
	struct timespec real;
	long args[6], rc;
	va_list list;
	int cmd;

	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (nr == SYS_getrandom)
		return getrandom((void *)args[0], (size_t)args[1], (unsigned)args[2]);
	cmd = (int)args[1] & FUTEX_CMD_MASK;
	if (nr == SYS_futex && (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET) &&
	    shca_program_join())
		return futex_wait(&(struct futex){(uint32_t *)args[0], (int)args[1],
						  (uint32_t)args[2],
						  (const struct timespec *)args[3]});
	if (nr == SYS_futex && cmd == FUTEX_WAIT_BITSET)
		args[3] = (long)shca_real_deadline(futex_clock((int)args[1]),
						   (const struct timespec *)args[3], &real);
	rc = NEXT(syscall)(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	if (nr == SYS_futex && cmd != FUTEX_WAIT && cmd != FUTEX_WAIT_BITSET) {
		int error = errno;

		/* softhca's own calls come here, too: inside of a call, or in threads without a
		 * clock. */
		if (shca_program_join())
			shca_sync_disturb(!((int)args[1] & FUTEX_PRIVATE_FLAG));
		shca_sync_wake_waiting();
		errno = error;
	}
	return rc;
}
