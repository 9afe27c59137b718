/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of the protocol: what send.c, tx_tuple_table.c, tx_tuple.c, giveback.c and
 * answer.c share.
 */
#ifndef TQ_PROTO_SEND_H
#define TQ_PROTO_SEND_H

#include <assert.h>
#include <errno.h>

#include "proto/core.h"
#include "proto/tx_lane.h"

#define TQ_MSG_HELD_LEN(n) \
	((uint32_t)(offsetof(struct tq_msg_held, one) + (n) * sizeof(struct tq_msg_held_one)))

/* ---- ctx.c ---- */
/* A message that names a context that isn't here: kept until it is. */
void tq_orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len);
/* Lets go of contexts that were removed and have nothing under way any more. */
void tq_ctxs_reap(struct tq_core *core);
void tq_ctxs_destroy(struct tq_core *core);

/* ---- send.c: one message ---- */
extern const struct tq_states tq_send_req_states;

/* The one place where a send's state changes. */
static inline void tq_send_req_set(struct tq_send_req *s, enum tq_send_req_state to)
{
	tq_states_change(&tq_send_req_states, s->req.core->trace, s, s->state, to);
	s->req.core->ngranted += (to == TQ_SEND_REQ_GRANTED) - (s->state == TQ_SEND_REQ_GRANTED);
	s->state = to;
}

/* Gives the message memory that the HCA can read: a copy, if it is short enough, or a registration
 * of the user's. false: it can't be had. */
bool tq_send_req_load(struct tq_send_req *s);
/* Posts the message to its tuple's SRQ on `lane` (NULL: the bulk lane). 0, -EAGAIN, -EIO. */
int tq_send_req_post(struct tq_send_req *s, struct tq_lane *lane);
/* It is complete: its memory is given back, and it ends for the user. */
void tq_send_req_end(struct tq_send_req *s, int error);

/* ---- tx_tuple_table.c: which tuples have a record ---- */

/* The tuple of the next message with this tag. NULL: it is the first of late, which asks for no
 * queue and needs no record; when it has been sent, tq_tx_tuple_first(). -ENOMEM. */
int tq_tx_tuple_get(struct tq_pair *pair, int32_t tag, struct tq_tx_tuple **tx_tuple);
void tq_tx_tuple_first(struct tq_pair *pair, int32_t tag);
/* NULL: it has no record. */
struct tq_tx_tuple *tq_tx_tuple_find(const struct tq_pair *pair, int32_t tag);
/* CONTROL, with nothing outstanding that knows it. */
bool tq_tx_tuple_quiet(const struct tq_tx_tuple *t);
void tq_tx_tuple_free(struct tq_tx_tuple *t);
/* Forgets records that nothing needs until there is room for so many more. No caller has a pointer
 * to one. */
void tq_tx_tuples_trim(struct tq_core *core, uint32_t more);
/* To be called where the record may have become quiet. */
void tq_tx_tuple_unpark(struct tq_tx_tuple *t);
static inline void tq_tx_tuple_rest(struct tq_tx_tuple *t)
{
	if (t->parked && tq_tx_tuple_quiet(t))
		tq_tx_tuple_unpark(t);
}

/* ---- tx_tuple.c: the tuple ---- */

/* The handle for a message's `ask`; 0: it doesn't ask. If the message is sent,
 * tq_tx_tuple_mark_asked(). */
uint32_t tq_tx_tuple_ask(struct tq_tx_tuple *t);
void tq_tx_tuple_mark_asked(struct tq_tx_tuple *t);
/* OFFERED: goes over to DIRECT if it can have a lane, or has waited long enough for one. */
void tq_tx_tuple_switch(struct tq_tx_tuple *t);
/* A send was posted to `lane` (NULL: bulk), or has ended. */
void tq_tx_tuple_posted(struct tq_tx_tuple *t, struct tq_send_req *s, struct tq_lane *lane);
void tq_tx_tuple_sent(struct tq_tx_tuple *t, struct tq_send_req *s, int status);
/* CTS-DIRECT: its receive lies in the SRQ. Posts it, or keeps it until there is room. */
void tq_tx_tuple_grant(struct tq_tx_tuple *t, struct tq_send_req *s);
/* RECALL, for its present life. */
void tq_tx_tuple_recall(struct tq_tx_tuple *t, uint32_t position, uint32_t after);
/* SRQN, REFUSE; it has asked. */
void tq_tx_tuple_offered(struct tq_tx_tuple *t, uint32_t rx_tuple, uint32_t srqn, uint64_t max_len);
void tq_tx_tuple_refused(struct tq_tx_tuple *t, uint32_t after);
/* Its peer has failed. */
void tq_tx_tuple_failed(struct tq_tx_tuple *t);
void tq_tx_tuple_lane_ready(struct tq_core *core, struct tq_peer *peer);

/* ---- giveback.c: whether its queue pays ---- */

/* Returns true if a message that is about to go direct is to have a NOTICE. */
bool tq_tx_tuple_wants_notice(const struct tq_tx_tuple *t, const struct tq_send_req *s);
/* Sends the NOTICE of a direct message that was posted just now. */
void tq_tx_tuple_notice(struct tq_tx_tuple *t, uint32_t seq);
/* Returns true if short messages of the tuple find no lane, as held ones fill it, and the tuple is
 * on its way back to CONTROL or may be given back. */
bool tq_tx_tuple_crowded(const struct tq_tx_tuple *t);
/* Gives the queue of a crowded tuple back, unless that is under way. */
void tq_tx_tuple_give_back_crowded(struct tq_tx_tuple *t);
/* A message of that length went by RTS, and that is answered. */
void tq_tx_tuple_announced(struct tq_tx_tuple *t, uint32_t seq, uint64_t len);

/* Plain direct sends must not pass what went before: RTS, CTS-DIRECT ones, the bulk lane. */
static inline bool tq_tx_tuple_direct_open(const struct tq_tx_tuple *t)
{
	return t->state == TQ_TX_TUPLE_DIRECT && t->nrts == 0 && !t->granted && !t->on_bulk;
}

#endif
