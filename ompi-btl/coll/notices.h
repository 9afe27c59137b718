/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices: words by which leaders inform one another that a communicator has failed and which
 * operation they are in (call.h).
 *
 * Notices aren't part of a communicator's segment. A leader may write one after others have freed
 * the communicator, and a write to memory that is no longer registered would break the connection.
 * So one table serves all communicators and stays registered until the endpoint is closed. Each
 * notice in use belongs to one communicator and has an id, which every write contains: a late write
 * doesn't match the id of a later owner.
 */
#ifndef TUPLEQ_COLL_NOTICES_H
#define TUPLEQ_COLL_NOTICES_H

#include <tupleq/tupleq.h>

#include <stdbool.h>
#include <stdint.h>

#include "call.h"

/* The most communicators in which a process can be a leader at a time. Their words take 96 KiB,
 * which stay registered. */
enum { TUPLEQ_NOTICES = 4096 };

/* A notice as other leaders address it. */
struct mca_coll_tupleq_notice {
	uint64_t addr, id; /* id 0: none */
	uint32_t key;
};

/* The words of a notice. */
struct mca_coll_tupleq_notice_words {
	_Atomic uint64_t failed; /* mca_coll_tupleq_notice_failed_word() */
	struct mca_coll_tupleq_mailbox mailbox;
};

/* Returns the word to write if a communicator has failed. */
static inline uint64_t
mca_coll_tupleq_notice_failed_word(const struct mca_coll_tupleq_notice *notice, bool mismatched)
{
	return notice->id | (uint64_t)mismatched << 63;
}

/* Takes a notice. Returns 0, -ENOSPC if all are in use, or the error of the table's registration.
 * Called with mca_coll_tupleq.lock held. */
int mca_coll_tupleq_notice_acquire(struct tq_ep *ep, struct mca_coll_tupleq_notice *notice);
void mca_coll_tupleq_notice_release(struct mca_coll_tupleq_notice *notice);
/* Forgets the table, whose registration ends with the endpoint: the next endpoint needs another.
 * Called when no notice is in use. */
void mca_coll_tupleq_notices_close(void);
/* Returns true if another leader has reported a failure. *mismatched tells whether processes are in
 * different operations; otherwise a process has failed. */
bool mca_coll_tupleq_notice_has_failed(const struct mca_coll_tupleq_notice *notice,
				       bool *mismatched);
/* Takes the last announcement. Returns false if none has come since the last call. */
bool mca_coll_tupleq_notice_take_announcement(const struct mca_coll_tupleq_notice *notice,
					      struct mca_coll_tupleq_announcement *announcement);

#endif
