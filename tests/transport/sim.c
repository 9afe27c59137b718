/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../random.h"

bool sim_tracing, sim_aborts;

static int report_fd = -1;

void sim_seed(struct sim_rng *rng, uint64_t seed)
{
	rng->state = seed;
	t_random(&rng->state);
}

uint32_t sim_below(struct sim_rng *rng, uint32_t n)
{
	return (uint32_t)((t_random(&rng->state) >> 32) * n >> 32);
}

bool sim_chance(struct sim_rng *rng, uint32_t of_256)
{
	return of_256 && sim_below(rng, 256) < of_256;
}

void sim_report_to(int fd)
{
	report_fd = fd;
}

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	SIM_TRACE("VIOLATION: %s (%s:%d)", text, file, line);
	if (report_fd < 0)
		fprintf(stderr, "violation: %s\n", text);
	else if (write(report_fd, text, (size_t)n) != n)
		_exit(3);
	fflush(stdout);
	if (sim_aborts)
		abort();
	_exit(1);
}

void sim_trace_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}
