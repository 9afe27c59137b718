/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences for the caller's log (struct tq_job). */
#ifndef TQ_BASE_LOG_H
#define TQ_BASE_LOG_H

#include <tupleq/tupleq.h>

/* Logs a sentence without newline; cut after 511 bytes. */
void tq_log(const struct tq_job *job, enum tq_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns the level of a warning about the host: TQ_LOG_WARN if this process is to give it,
 * TQ_LOG_DEBUG if another one does. */
enum tq_log_level tq_host_level(const struct tq_job *job, const char *kind);

#endif
