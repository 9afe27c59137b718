/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>

void tq_log(const struct tq_job *job, enum tq_log_level level, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	job->log(job->log_arg, level, text);
}

enum tq_log_level tq_host_level(const struct tq_job *job, const char *kind)
{
	return !job->claim_warning || job->claim_warning(job->log_arg, kind) ? TQ_LOG_WARN
									     : TQ_LOG_DEBUG;
}
