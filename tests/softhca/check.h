/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - how a test fails, in cmocka's process or in a forked one, and the clock.
 */
#ifndef T_CHECK_H
#define T_CHECK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"

#define T_DEADLINE_MS 10000 /* a wait that takes longer has failed */
#define T_QUIET_MS    30    /* how long tests watch that nothing happens */

/* Marks this process as a forked child: from now on a failure prints its message and ends the
 * process with status 1. */
void t_child_begin(void);
/* Switches LeakSanitizer's check off: this process ends on purpose without closing what it opened,
 * or is a fork that lost what its parent opened. */
void t_untidy(void);
/* Skips the test, for that reason. */
#define t_skip(reason)                                  \
	do {                                            \
		print_message("skipped: %s\n", reason); \
		skip();                                 \
	} while (0)
/* Returns the monotonic clock in ns. */
uint64_t t_now(void);
/* Returns the milliseconds since t0. */
double t_ms_since(uint64_t t0);

#endif
