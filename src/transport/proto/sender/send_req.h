/* SPDX-License-Identifier: BSD-3-Clause */
/* A send: its states, the memory that its message goes from, its end. */
#ifndef TQ_PROTO_SEND_REQ_H
#define TQ_PROTO_SEND_REQ_H

#include "proto/common/tx_objects.h"

extern const struct tq_states tq_send_req_states;

/* Returns true if the message doesn't go from its user's memory: the service thread may read it,
 * and the user may regard the send as ended. */
static inline bool tq_send_req_is_copied(const struct tq_send_req *send)
{
	return send->copied || send->flags & TQ_SEND_BUFFERED;
}

/* Returns true if data of a copied message are to be written or sent by this side: their user, who
 * may not come back for them, doesn't watch over them. */
static inline bool tq_send_req_is_unwatched(const struct tq_send_req *send)
{
	return (send->state == TQ_SEND_REQ_WRITING || send->state == TQ_SEND_REQ_PIECES ||
		send->state == TQ_SEND_REQ_AGAIN) &&
	       tq_send_req_is_copied(send);
}

/* Changes the state; the one place that does. */
static inline void tq_send_req_set_state(struct tq_send_req *send, enum tq_send_req_state to)
{
	struct tq_core *core = send->req.core;

	tq_states_change(&tq_send_req_states, core->trace, send, send->state, to);
	core->ngranted += (to == TQ_SEND_REQ_GRANTED) - (send->state == TQ_SEND_REQ_GRANTED);
	core->nunwatched -= tq_send_req_is_unwatched(send);
	send->state = to;
	core->nunwatched += tq_send_req_is_unwatched(send);
}

/* Returns true if the send ends only after the message has come. */
static inline bool tq_send_ends_there(unsigned flags)
{
	return flags & (TQ_SEND_SYNC | TQ_SEND_DELIVERED);
}

/* Returns true if the message can go from the user's memory within the WQE. */
static inline bool tq_send_req_inlines(const struct tq_send_req *send)
{
	const struct tq_net_limits *limits = send->req.core->limits;

	if (send->buf.len == 0)
		return true;
	return send->buf.len <= limits->max_inline && !send->buf.ops &&
	       (!send->prefix || send->buf.len + send->pair->ctx->prefix_len <= limits->max_inline);
}

/* Returns true if the message should go from a copy. */
bool tq_send_req_wants_copy(const struct tq_send_req *send);
/* Gives the message memory that the HCA can read: a copy, or a registration of the user's memory.
 * Returns false if there is none. */
bool tq_send_req_load(struct tq_send_req *send);
/* Posts the message to its tuple's SRQ on `lane` (NULL: the bulk lane). 0, -EAGAIN, -EIO. */
int tq_send_req_post(struct tq_send_req *send, struct tq_lane *lane);
/* Ends the send for the user, and gives its memory back. */
void tq_send_req_end(struct tq_send_req *send, int error);

/* ---- messages whose receiver has asked for their data in pieces ---- */

/* Begins to send the first send->wanted bytes of the data in pieces. `state` is TQ_SEND_REQ_PIECES,
 * or TQ_SEND_REQ_AGAIN if the message is in a lane, too. */
void tq_send_pieces_start(struct tq_send_req *send, enum tq_send_req_state state);
/* Sends no more pieces. Ends the send, unless it is in TQ_SEND_REQ_AGAIN: then it goes back to
 * TQ_SEND_REQ_DIRECT and ends with its completion, and `error` is ignored. */
void tq_send_pieces_end(struct tq_send_req *send, int error);
/* Sends the pieces that can go now. Returns their number. */
int tq_send_pieces_poll(struct tq_core *core);

#endif
