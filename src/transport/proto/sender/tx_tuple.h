/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a tuple. */
#ifndef TQ_PROTO_TX_TUPLE_H
#define TQ_PROTO_TX_TUPLE_H

#include "proto/common/tx_objects.h"

/* Returns true if a message may go direct now: no earlier message of the tuple, which it must not
 * pass, is under way as an RTS, by a CTS-DIRECT, or on the bulk lane. */
static inline bool tq_tx_tuple_may_go_direct(const struct tq_tx_tuple *tuple)
{
	return tuple->state == TQ_TX_TUPLE_DIRECT && tuple->nrts == 0 && !tuple->granted &&
	       !tuple->on_bulk;
}

/* Returns the handle by which a message asks for the queue; 0: the message doesn't ask. After a
 * message that asks was sent, the caller calls tq_tx_tuple_mark_asked(). */
uint32_t tq_tx_tuple_ask(struct tq_tx_tuple *tuple);
void tq_tx_tuple_mark_asked(struct tq_tx_tuple *tuple);
/* Takes a tuple from OFFERED to DIRECT if it can have a lane, or has waited long enough for one. */
void tq_tx_tuple_switch(struct tq_tx_tuple *tuple);
/* Switches one of the peer's tuples that waits for a lane, if one may be free. */
void tq_tx_tuple_on_lane_ready(struct tq_core *core, struct tq_peer *peer);
/* Notes that the receive of an RTS is known: the send no longer stands before its tuple's direct
 * sends. */
void tq_tx_tuple_resolve(struct tq_send_req *send);
/* Notes that a send was posted to `lane` (NULL: the bulk lane). */
void tq_tx_tuple_note_post(struct tq_tx_tuple *tuple, struct tq_send_req *send,
			   struct tq_lane *lane);
/* Ends a direct send that is complete, and goes on with sends and answers that waited for that. */
void tq_tx_tuple_on_sent(struct tq_tx_tuple *tuple, struct tq_send_req *send, int status);
/* Handles CTS-DIRECT: the send's receive lies in the SRQ. Posts the send, or keeps it until there
 * is room. */
void tq_tx_tuple_grant(struct tq_tx_tuple *tuple, struct tq_send_req *send);
/* Handles the RECALL of the tuple's present queue; `position` and `after` as in struct
 * tq_msg_recall. */
void tq_tx_tuple_recall(struct tq_tx_tuple *tuple, uint32_t position, uint32_t after);
/* Handles SRQN, the answer with a queue to a tuple that has asked. */
void tq_tx_tuple_offer(struct tq_tx_tuple *tuple, uint32_t rx_tuple, uint32_t srqn,
		       uint64_t max_len);
/* Handles REFUSE, the answer without one. */
void tq_tx_tuple_refuse(struct tq_tx_tuple *tuple, uint32_t after);

/* ---- the sender's view of whether a tuple's queue pays ---- */

/* Returns true if a message that is about to go direct is to have a NOTICE. */
bool tq_tx_policy_wants_notice(const struct tq_tx_tuple *tuple, const struct tq_send_req *send);
/* Sends the NOTICE of a direct message that was posted just now. */
void tq_tx_policy_notice(struct tq_tx_tuple *tuple, uint32_t seq);

/* ---- the end of sends that are under way to a peer in a context ---- */

/* Ends the sends to a peer that has failed, except those that the HCA has: they end with their
 * completions. Takes the pair's tuples back to CONTROL. */
void tq_send_pair_fail(struct tq_pair *pair, int error);
/* Frees the pair's sends and tuples. */
void tq_send_pair_free(struct tq_pair *pair);

#endif
