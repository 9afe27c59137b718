/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The values of PORTALS_LOG. */
static const struct {
	const char *name;
	int level; /* the last one that is written */
} levels[] = {
	{"none", TQ_LOG_ERROR - 1}, {"error", TQ_LOG_ERROR}, {"warn", TQ_LOG_WARN},
	{"info", TQ_LOG_INFO},      {"debug", TQ_LOG_DEBUG},
};

static pthread_once_t level_once = PTHREAD_ONCE_INIT;
static int level_shown = TQ_LOG_WARN;

/* Not inlined, because each caller has a text of its own on the stack. */
static __attribute__((noinline)) void print_line(const char *text)
{
	char line[640];
	int n = snprintf(line, sizeof(line), "libportals[%d]: %s\n", (int)getpid(), text);

	/* Not by stdio: fprintf() takes 9 KiB of the stack if the stream has no buffer. */
	while (write(STDERR_FILENO, line, (size_t)n) < 0 && errno == EINTR)
		;
}

/* Sets the level that PORTALS_LOG names. */
static void read_level(void)
{
	const char *name = getenv("PORTALS_LOG");
	char text[128];

	if (!name)
		return;
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (!strcmp(levels[i].name, name)) {
			level_shown = levels[i].level;
			return;
		}
	}
	snprintf(text, sizeof(text),
		 "PORTALS_LOG = \"%s\": it takes none, error, warn, info or debug.", name);
	print_line(text);
}

void p4_log_write(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	pthread_once(&level_once, read_level);
	if ((int)level <= level_shown)
		print_line(text);
}

void p4_log(enum tq_log_level level, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	p4_log_write(NULL, level, text);
}
