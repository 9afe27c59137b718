/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of contexts with match bits: how they are made, and how they end. */
#ifndef TQ_PROTO_ENTRY_H
#define TQ_PROTO_ENTRY_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

static inline struct tq_entry *tq_entry_of(struct tq_recv_req *recv)
{
	return (struct tq_entry *)recv;
}

/* Returns an entry, in no list and without an id; NULL: no memory. */
struct tq_entry *tq_entry_new(struct tq_ctx *ctx, const struct tq_want *want,
			      const struct tq_buf *buf, void *user);
/* Gives an entry its id. Returns false if there is none left. */
bool tq_entry_name(struct tq_entry *entry);
/* Takes an entry out of its list, if it is in one, and its id away. */
void tq_entry_unlink(struct tq_entry *entry);
/* Gets the prefix that an entry needs to lie in a queue. Returns false if there is no memory for
 * that, or if the entry was appended without TQ_ENTRY_QUEUE. */
bool tq_entry_prepare(struct tq_entry *entry);
/* Handles a message of `len` bytes in all that the HCA has placed into an entry of a queue. Sets
 * the length in the entry's status to that of the data. Returns `error`, or why this is no message
 * for the entry; NULL: nothing is wrong. */
const char *tq_entry_on_delivered(struct tq_entry *entry, uint64_t len, const char *error);
/* Ends an entry, in no list, whose user learns nothing of that. */
void tq_entry_free(struct tq_entry *entry);
/* Ends all entries of a context, now or when a recall brings them back. */
void tq_entry_end_all(struct tq_ctx *ctx, int error);

/* ---- for ep/ ---- */

/* Calls done() of an entry that has ended. Called without the lock. */
void tq_core_entry_call_done(struct tq_req *req);

/* ---- which bits the tuples of a pair ignore: the receiver decides, and tells the sender ---- */

/* Makes `ignore` the mask of the pair's tuples, unless the present mask is to be kept
 * (TQ_MASK_AFTER). If tuples of the pair have queues, recalls these instead. Called for each entry
 * that ignores these bits and could lie in a queue. */
void tq_mask_consider(struct tq_pair *pair, uint64_t ignore);
/* Names the mask to a sender that a message has come from, if that is due. */
void tq_mask_announce(struct tq_pair *pair);
/* Handles MASK, which is checked, at the sender: its next messages go by the mask named there. */
void tq_mask_on_message(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_mask *msg);

/* ---- held messages with match bits that wait for an entry ---- */

/* Moves the data of a held message, which stays in its queues, to memory of the library. Returns
 * false if there is no memory. */
bool tq_drain(struct tq_unexpected *message);
/* Gives the data of such a message, in no queue, to an entry when they are there. */
void tq_drain_take(struct tq_unexpected *message, struct tq_entry *entry);

#endif
