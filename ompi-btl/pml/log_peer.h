/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about a peer, which each component writes to its own log. They take more of the stack
 * than what goes well, so they are never inlined there. */
#ifndef TUPLEQ_PML_LOG_PEER_H
#define TUPLEQ_PML_LOG_PEER_H

#include <tupleq/tupleq.h>

typedef void mca_pml_tupleq_log_fn_t(void *arg, enum tq_log_level level, const char *text);

/* Logs a sentence: the peer's name, which is the subject, then `predicate`. */
__attribute__((noinline)) void mca_pml_tupleq_log_peer(mca_pml_tupleq_log_fn_t *log,
						       enum tq_log_level level, const char *name,
						       const char *predicate);

/* Logs why tq_peer_add() has failed with the error `rc`. */
__attribute__((noinline)) void mca_pml_tupleq_log_unreachable(mca_pml_tupleq_log_fn_t *log,
							      enum tq_log_level level,
							      const char *name, int rc);

#endif
