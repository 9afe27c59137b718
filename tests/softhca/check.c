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

/* LeakSanitizer, if it is linked in, calls this at the end of the process. */
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
