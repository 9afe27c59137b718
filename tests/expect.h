/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expect.h - assertions, the same for all kinds of programs. Each kind has its own t_fail_at(),
 * which ends the test: a cmocka test or a forked child (softhca/check.c), a job of MPI ranks
 * (mpi/check.c), a run of the protocol's model (transport/sim.c), a case of several endpoints
 * (transport/many.c, transport/duo.c), or a fuzzer's input (fuzz/verbs.c).
 */
#ifndef T_EXPECT_H
#define T_EXPECT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Ends the test as failed; fmt is the reason in printf form. */
void t_fail_at(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#define t_fail(...) t_fail_at(__FILE__, __LINE__, __VA_ARGS__)

/* Expects cond; the rest is the reason of a failure in printf form. */
#define t_true(cond, ...)                    \
	do {                                 \
		if (!(cond))                 \
			t_fail(__VA_ARGS__); \
	} while (0)
/* Expects cond, whose text is reason enough. */
#define t_holds(cond) t_true(cond, "%s: doesn't hold", #cond)
/* Expects two equal integers. */
#define t_eq(a, b) t_eq_at((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
/* Expects two equal strings, neither of them NULL. */
#define t_str_eq(a, b) t_str_eq_at((a), (b), #a, #b, __FILE__, __LINE__)
/* Expects equal bytes. */
#define t_mem_eq(a, b, size) t_mem_eq_at((a), (b), (size), #a, #b, __FILE__, __LINE__)
/* Expects a call that returns 0, an errno value or a negative one to return want. */
#define t_rc(expr, want) t_rc_at((expr), (want), #expr, __FILE__, __LINE__)
#define t_ok(expr)       t_rc(expr, 0)
/* Expects a call that returns an object to return NULL with errno want. */
#define t_null(expr, want)                                                      \
	do {                                                                    \
		bool t_is_null;                                                 \
                                                                                \
		errno = 0;                                                      \
		t_is_null = (expr) == NULL;                                     \
		t_null_at(t_is_null, errno, (want), #expr, __FILE__, __LINE__); \
	} while (0)

static inline void t_eq_at(uint64_t a, uint64_t b, const char *sa, const char *sb, const char *file,
			   int line)
{
	if (a != b)
		t_fail_at(file, line, "%s is %lld (0x%llx), not %s = %lld (0x%llx)", sa,
			  (long long)a, (unsigned long long)a, sb, (long long)b,
			  (unsigned long long)b);
}

static inline void t_str_eq_at(const char *a, const char *b, const char *sa, const char *sb,
			       const char *file, int line)
{
	if (!a || !b || strcmp(a, b) != 0)
		t_fail_at(file, line, "%s is \"%s\", not %s = \"%s\"", sa, a ? a : "(null)", sb,
			  b ? b : "(null)");
}

static inline void t_mem_eq_at(const void *a, const void *b, size_t size, const char *sa,
			       const char *sb, const char *file, int line)
{
	const unsigned char *x = a, *y = b;
	size_t i;

	for (i = 0; i < size; i++)
		if (x[i] != y[i])
			t_fail_at(file, line, "byte %zu of %s is 0x%02x, not 0x%02x as of %s", i,
				  sa, x[i], y[i], sb);
}

static inline void t_rc_at(int rc, int want, const char *what, const char *file, int line)
{
	if (rc != want)
		t_fail_at(file, line, "%s: returned %d (%s), not %d (%s)", what, rc,
			  strerror(abs(rc)), want, strerror(abs(want)));
}

static inline void t_null_at(bool null, int err, int want, const char *what, const char *file,
			     int line)
{
	if (!null)
		t_fail_at(file, line, "%s: succeeded, should fail with %s", what, strerror(want));
	if (err != want)
		t_fail_at(file, line, "%s: errno %d (%s), not %d (%s)", what, err, strerror(err),
			  want, strerror(want));
}

#endif
