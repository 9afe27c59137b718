/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.c - see check.h.
 */
#include "check.h"

#include <time.h>
#include <unistd.h>

static bool in_child;

void t_child_begin(void)
{
	in_child = true;
}

static int untidy;

/* LeakSanitizer, if it is there, asks this at the end of the process. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return untidy;
}

void t_untidy(void)
{
	untidy = 1;
}

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (in_child) {
		fprintf(stderr, "%s:%d: %s\n", file, line, msg);
		_exit(1);
	}
	print_error("%s\n", msg);
	_fail(file, line);
	abort();
}

void t_rc_at(int rc, int want, const char *what, const char *file, int line)
{
	if (rc != want)
		t_fail_at(file, line, "%s: returned %d (%s), not %d (%s)", what, rc, strerror(rc),
			  want, strerror(want));
}

void t_eq_at(uint64_t a, uint64_t b, const char *sa, const char *sb, const char *file, int line)
{
	if (a != b)
		t_fail_at(file, line, "%s is %llu (0x%llx), not %s = %llu (0x%llx)", sa,
			  (unsigned long long)a, (unsigned long long)a, sb, (unsigned long long)b,
			  (unsigned long long)b);
}

void t_null_at(bool null, int err, int want, const char *what, const char *file, int line)
{
	if (!null)
		t_fail_at(file, line, "%s: succeeded, should fail with %s", what, strerror(want));
	if (err != want)
		t_fail_at(file, line, "%s: errno %d (%s), not %d (%s)", what, err, strerror(err),
			  want, strerror(want));
}

uint64_t t_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double t_ms_since(uint64_t t0)
{
	return (double)(t_now() - t0) / 1e6;
}
