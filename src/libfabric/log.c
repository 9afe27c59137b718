/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

void tf_log(enum fi_log_level level, enum fi_log_subsys subsys, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!fi_log_enabled(&tf_provider, level, subsys))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fi_log(&tf_provider, level, subsys, "", 0, "%s\n", text);
}

void tf_log_transport(void *arg, enum tq_log_level level, const char *text)
{
	static const enum fi_log_level levels[] = {
		[TQ_LOG_ERROR] = FI_LOG_WARN,
		[TQ_LOG_WARN] = FI_LOG_WARN,
		[TQ_LOG_INFO] = FI_LOG_INFO,
		[TQ_LOG_DEBUG] = FI_LOG_DEBUG,
	};

	(void)arg;
	tf_log(levels[level], FI_LOG_DOMAIN, "%s", text);
}
