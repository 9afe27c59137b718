/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: that of libfabric (FI_LOG_LEVEL). */
#ifndef TF_LOG_H
#define TF_LOG_H

#include <rdma/providers/fi_log.h>
#include <tupleq/tupleq.h>

/* The provider, as libfabric knows it; defined in provider.c. */
extern struct fi_provider tf_provider;

/* Logs a sentence. */
void tf_log(enum fi_log_level level, enum fi_log_subsys subsys, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Takes libtupleq's sentences (struct tq_job). */
void tf_log_transport(void *arg, enum tq_log_level level, const char *text);

#endif
