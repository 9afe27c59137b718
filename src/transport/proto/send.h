/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of the protocol: what send.c, stups.c, stup.c, giveback.c and answer.c share.
 */
#ifndef TQ_PROTO_SEND_H
#define TQ_PROTO_SEND_H

#include <assert.h>
#include <errno.h>

#include "proto/core.h"

#define TQ_MSG_HELD_LEN(n) \
	((uint32_t)(offsetof(struct tq_msg_held, one) + (n) * sizeof(struct tq_msg_held_one)))

/* ---- core.c ---- */

/* A control message that must not be lost. If it can't be sent the peer fails, and with it all of
 * its requests: then the result is not 0 and the caller touches nothing of the peer's any more. */
int tq_core_tell(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
		 unsigned flags);

/* ---- ctx.c ---- */
/* A message that names a context that isn't here: kept until it is. */
void tq_orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len);
/* Lets go of contexts that were removed and have nothing under way any more. */
void tq_ctxs_reap(struct tq_core *core);
void tq_ctxs_destroy(struct tq_core *core);

/* ---- send.c: one message ---- */
extern const char *const tq_sreq_names[TQ_SREQ_STATES];

static inline bool tq_sreq_may(enum tq_sreq_state from, enum tq_sreq_state to)
{
	static const uint8_t legal[TQ_SREQ_STATES] = {
		[TQ_SREQ_NEW] = 1u << TQ_SREQ_RTS | 1u << TQ_SREQ_DIRECT | 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_RTS] = 1u << TQ_SREQ_GRANTED | 1u << TQ_SREQ_WRITING |
				1u << TQ_SREQ_PIECES | 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_GRANTED] = 1u << TQ_SREQ_DIRECT | 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_DIRECT] = 1u << TQ_SREQ_AGAIN | 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_WRITING] = 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_PIECES] = 1u << TQ_SREQ_ENDED,
		[TQ_SREQ_AGAIN] = 1u << TQ_SREQ_DIRECT,
	};

	return legal[from] & 1u << to;
}

/* The one place where a send's state changes. */
static inline void tq_sreq_set(struct tq_sreq *s, enum tq_sreq_state to)
{
	assert(tq_sreq_may(s->state, to));
	if (s->req.core->trace)
		s->req.core->trace("send", s, tq_sreq_names[s->state], tq_sreq_names[to]);
	s->req.core->ngranted += (to == TQ_SREQ_GRANTED) - (s->state == TQ_SREQ_GRANTED);
	s->state = to;
}

/* Gives the message memory that the HCA can read: a copy, if it is short enough, or a registration
 * of the user's. false: it can't be had. */
bool tq_sreq_load(struct tq_sreq *s);
/* Posts the message to its tuple's SRQ on `lane` (NULL: the bulk lane). 0, -EAGAIN, -EIO. */
int tq_sreq_post(struct tq_sreq *s, struct tq_lane *lane);
/* It is complete: its memory is given back, and it ends for the user. */
void tq_sreq_end(struct tq_sreq *s, int error);

/* ---- stups.c: which tuples have a record ---- */

/* The tuple of the next message with this tag. NULL: it is the first of late, which asks for no
 * queue and needs no record; when it has been sent, tq_stup_first(). -ENOMEM. */
int tq_stup_get(struct tq_pair *pair, int32_t tag, struct tq_stup **stup);
void tq_stup_first(struct tq_pair *pair, int32_t tag);
/* NULL: it has no record. */
struct tq_stup *tq_stup_find(const struct tq_pair *pair, int32_t tag);
/* CONTROL, with nothing outstanding that knows it. */
bool tq_stup_quiet(const struct tq_stup *t);
void tq_stup_free(struct tq_stup *t);
/* Forgets records that nothing needs until there is room for so many more. No caller has a pointer
 * to one. */
void tq_stups_trim(struct tq_core *core, uint32_t more);
/* To be called where the record may have become quiet. */
void tq_stup_unpark(struct tq_stup *t);
static inline void tq_stup_rest(struct tq_stup *t)
{
	if (t->parked && tq_stup_quiet(t))
		tq_stup_unpark(t);
}

/* ---- stup.c: the tuple ---- */

/* The handle for a message's `ask`; 0: it doesn't ask. If the message is sent, tq_stup_asked(). */
uint32_t tq_stup_ask(struct tq_stup *t);
void tq_stup_asked(struct tq_stup *t);
/* OFFERED: goes over to DIRECT if it can have a lane, or has waited long enough for one. */
void tq_stup_switch(struct tq_stup *t);
/* The lane on which it may send direct now; NULL: none. */
struct tq_lane *tq_stup_lane(struct tq_stup *t);
/* A send was posted to `lane` (NULL: bulk), or has ended. */
void tq_stup_posted(struct tq_stup *t, struct tq_sreq *s, struct tq_lane *lane);
void tq_stup_sent(struct tq_stup *t, struct tq_sreq *s, int status);
/* CTS-DIRECT: its receive lies in the SRQ. Posts it, or keeps it until there is room. */
void tq_stup_grant(struct tq_stup *t, struct tq_sreq *s);
/* RECALL, for its present life. */
void tq_stup_recall(struct tq_stup *t, uint32_t position, uint32_t after);
/* SRQN, REFUSE; it has asked. */
void tq_stup_offered(struct tq_stup *t, uint32_t rtup, uint32_t srqn, uint64_t max_len);
void tq_stup_refused(struct tq_stup *t, uint32_t after);
/* Its peer has failed. */
void tq_stup_failed(struct tq_stup *t);
void tq_stup_lane_ready(struct tq_core *core, struct tq_peer *peer);

/* ---- giveback.c: whether its queue pays ---- */

/* Returns true if a message that is about to go direct is to have a NOTICE. */
bool tq_stup_wants_notice(const struct tq_stup *t, const struct tq_sreq *s);
/* Sends the NOTICE of a direct message that was posted just now. */
void tq_stup_notice(struct tq_stup *t, uint32_t seq);
/* Its short messages find the lane full of others that are held. Is it on its way back? */
bool tq_stup_crowded(struct tq_stup *t);
/* A message of that length went by RTS, and that is answered. */
void tq_stup_announced(struct tq_stup *t, uint32_t seq, uint64_t len);

/* Plain direct sends must not pass what went before: RTS, CTS-DIRECT ones, the bulk lane. */
static inline bool tq_stup_direct_open(const struct tq_stup *t)
{
	return t->state == TQ_STUP_DIRECT && t->nrts == 0 && !t->granted && !t->on_bulk;
}

#endif
