/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come: which receive takes them, or that none does. */
#ifndef TF_RECV_MATCH_H
#define TF_RECV_MATCH_H

#include <tupleq/match.h>

/* The functions of each context of messages; their `arg` is the struct tf_contexts. */
extern const struct tq_match_ops tf_recv_ops;

#endif
