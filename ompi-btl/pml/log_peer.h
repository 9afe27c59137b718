/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about a peer, which each component writes to its own log. */
#ifndef TUPLEQ_PML_LOG_PEER_H
#define TUPLEQ_PML_LOG_PEER_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tupleq/tupleq.h>

/* Logs a sentence: the peer's name, which is the subject, then `predicate`. */
static inline void
mca_pml_tupleq_log_peer(void (*log)(void *arg, enum tq_log_level level, const char *text),
			enum tq_log_level level, const char *name, const char *predicate)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s", name, predicate);
	log(NULL, level, text);
}

/* Logs why tq_peer_add() has failed with the error `rc`. */
static inline void mca_pml_tupleq_log_unreachable(void (*log)(void *arg, enum tq_log_level level,
							      const char *text),
						  enum tq_log_level level, const char *name, int rc)
{
	char predicate[200];

	switch (rc) {
	case -EPROTO:
		mca_pml_tupleq_log_peer(log, level, name, "uses another version of TupleQ.");
		break;
	case -ENETUNREACH:
		mca_pml_tupleq_log_peer(log, level, name,
					"can't be reached: its adapter is on another kind of link, "
					"in another subnet, or in another partition (P_Key), or "
					"its RoCE address is of another family, IPv4 or IPv6 "
					"(gid_index).");
		break;
	default:
		snprintf(predicate, sizeof(predicate), "can't be reached: %s.", strerror(-rc));
		mca_pml_tupleq_log_peer(log, level, name, predicate);
	}
}

#endif
