/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - what a test asserts, so that it works in cmocka's process and in forked ones, and the
 * clock.
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

#define T_DEADLINE_MS 10000 /* after this a wait has failed */
#define T_QUIET_MS    30    /* for how long "nothing happens" is watched */

/* After fork() in a child: from now on a failure prints its message and ends the process with
 * status 1. */
void t_child_begin(void);
/* This process ends on purpose without closing what it opened, or it is a forked one that lost what
 * its parent opened: LeakSanitizer doesn't look at it. */
void t_untidy(void);
/* Fails the test; used through the macros below. */
void t_fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#define t_fail(...) t_fail_at(__FILE__, __LINE__, __VA_ARGS__)
/* cond holds; the rest is a message in printf form. */
#define t_true(cond, ...)                                           \
	do {                                                        \
		if (!(cond))                                        \
			t_fail_at(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
/* A verb that returns 0 or an errno value returns what is wanted. */
#define t_rc(expr, want) t_rc_at((expr), (want), #expr, __FILE__, __LINE__)
#define t_ok(expr)       t_rc(expr, 0)
/* Two integers are equal. */
#define t_eq(a, b) t_eq_at((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
/* A verb that returns an object returned NULL with errno want. */
#define t_null(expr, want)                                                      \
	do {                                                                    \
		bool t_is_null;                                                 \
                                                                                \
		errno = 0;                                                      \
		t_is_null = (expr) == NULL;                                     \
		t_null_at(t_is_null, errno, (want), #expr, __FILE__, __LINE__); \
	} while (0)

void t_rc_at(int rc, int want, const char *what, const char *file, int line);
void t_eq_at(uint64_t a, uint64_t b, const char *sa, const char *sb, const char *file, int line);
void t_null_at(bool null, int err, int want, const char *what, const char *file, int line);

/* Monotonic clock in ns. */
uint64_t t_now(void);
/* Milliseconds since t0. */
double t_ms_since(uint64_t t0);

#endif
