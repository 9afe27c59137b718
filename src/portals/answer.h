/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to the operations of this process. */
#ifndef P4_ANSWER_H
#define P4_ANSWER_H

#include <tupleq/match.h>

/* The functions of the context of answers. */
extern const struct tq_match_ops p4_answer_ops;
/* Returns the `user` of the entry that takes all answers. */
void *p4_answer_entry(void);

#endif
