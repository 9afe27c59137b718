/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about a peer, which each component writes to its own log. */
#ifndef TUPLEQ_PML_LOG_PEER_H
#define TUPLEQ_PML_LOG_PEER_H

#include <stdio.h>

#include <tupleq/tupleq.h>

/* Logs a sentence: the peer's name, then `what`. */
static inline void
mca_pml_tupleq_log_peer(void (*log)(void *arg, enum tq_log_level level, const char *text),
			enum tq_log_level level, const char *name, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s", name, what);
	log(NULL, level, text);
}

#endif
