/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: lines on stderr up to the level that PORTALS_LOG names. */
#ifndef P4_LOG_H
#define P4_LOG_H

#include <tupleq/tupleq.h>

/* Writes a sentence. */
void p4_log(enum tq_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a sentence of libtupleq's (tq_job.log). */
void p4_log_write(void *arg, enum tq_log_level level, const char *text);

#endif
