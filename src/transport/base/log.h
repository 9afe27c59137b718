/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences for the caller's log (struct tq_job). */
#ifndef TQ_BASE_LOG_H
#define TQ_BASE_LOG_H

#include <tupleq/tupleq.h>

/* Logs a sentence without newline; cut after 511 bytes. */
void tq_log(const struct tq_job *job, enum tq_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
