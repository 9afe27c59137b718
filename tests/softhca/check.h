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

#define T_DEADLINE_MS 10000 /* after this a wait has failed */
#define T_QUIET_MS    30    /* for how long "nothing happens" is watched */

/* After fork() in a child: from now on a failure prints its message and ends the process with
 * status 1. */
void t_child_begin(void);
/* This process ends on purpose without closing what it opened, or it is a forked one that lost what
 * its parent opened: LeakSanitizer doesn't look at it. */
void t_untidy(void);
/* Monotonic clock in ns. */
uint64_t t_now(void);
/* Milliseconds since t0. */
double t_ms_since(uint64_t t0);

#endif
