/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words through which leaders tell one another that a communicator has failed, and what they are
 * in (call.h). They are no part of its memory: who tells may be late, when others have freed the
 * communicator, and a write to memory that isn't registered any more would break the connection to
 * them. So they are one table for all communicators, which stays until the endpoint goes, and what
 * is written is the number of the communicator that the word is lent to: one that comes late is
 * none that has it now.
 */
#ifndef TUPLEQ_COLL_MARKS_H
#define TUPLEQ_COLL_MARKS_H

#include <tupleq/tupleq.h>

#include <stdbool.h>
#include <stdint.h>

#include "call.h"

/* Communicators that a process can lead its node's part of at a time. */
enum { TUPLEQ_MARKS = 4096 };

/* The memory that is lent, as the others have to know it: they write to `addr` with `key`. */
struct mca_coll_tupleq_mark {
	uint64_t addr, id; /* id 0: none */
	uint32_t key;
};

/* What is there. */
struct mca_coll_tupleq_mark_words {
	_Atomic uint64_t failed; /* mca_coll_tupleq_mark_failed() */
	struct mca_coll_tupleq_news news;
};

/* The mark that is written where a communicator has failed. */
static inline uint64_t mca_coll_tupleq_mark_failed(const struct mca_coll_tupleq_mark *mark,
						   bool differ)
{
	return mark->id | (uint64_t)differ << 63;
}

/* Called with component.lock. 0; -ENOSPC: all are lent; or what tq_mr_register() says. */
int mca_coll_tupleq_mark_take(struct tq_ep *ep, struct mca_coll_tupleq_mark *mark);
void mca_coll_tupleq_mark_give_back(struct mca_coll_tupleq_mark *mark);
/* *differ: as its processes are in different operations, not as one is gone. */
bool mca_coll_tupleq_marked(const struct mca_coll_tupleq_mark *mark, bool *differ);
/* The last announcement. False: nothing since the last call. */
bool mca_coll_tupleq_mark_news(const struct mca_coll_tupleq_mark *mark,
			       struct mca_coll_tupleq_told *told);

#endif
