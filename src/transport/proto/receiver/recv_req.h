/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive: what it is for, its memory, its states, and its end. */
#ifndef TQ_PROTO_RECV_REQ_H
#define TQ_PROTO_RECV_REQ_H

#include "proto/common/rx_objects.h"

/* ---- the messages and tuples that fit a receive or probe ---- */

/* Returns the messages that a receive or probe with an MPI tag or TQ_ANY_TAG is for. */
static inline struct tq_want tq_want_of(int rank, int32_t tag)
{
	if (tag == TQ_ANY_TAG)
		return (struct tq_want){.rank = rank, .ignore = INT32_MAX};
	return (struct tq_want){.rank = rank, .tag = (uint32_t)tag};
}

/* Returns true if the MPI tag is a user's: TQ_ANY_TAG matches it. */
static inline bool tq_want_is_user_tag(uint64_t tag)
{
	return !(tag & ~(uint64_t)INT32_MAX);
}

/* Returns true if messages of any source or of several tags fit. */
static inline bool tq_want_is_wild(const struct tq_want *want)
{
	return want->rank == TQ_ANY_SOURCE || want->ignore;
}

/* Returns true if a message with the tag fits, whatever its source. */
static inline bool tq_want_fits_tag(const struct tq_want *want, uint64_t tag)
{
	return !((want->tag ^ tag) & ~want->ignore);
}

/* Returns true if a message of that rank, with the tag, fits. */
static inline bool tq_want_fits(const struct tq_want *want, int rank, uint64_t tag)
{
	return (want->rank == TQ_ANY_SOURCE || want->rank == rank) && tq_want_fits_tag(want, tag);
}

/* Returns true if a message of the tuple could fit. */
static inline bool tq_want_fits_tuple(const struct tq_want *want, const struct tq_rx_tuple *tuple)
{
	const struct tq_pair *pair = tuple->pair;

	return (want->rank == TQ_ANY_SOURCE || want->rank == pair->rank) &&
	       !((want->tag ^ tuple->tag) & ~(want->ignore | pair->mask));
}

/* ---- wildcards: whether they are allowed, and receives with one that wait ---- */

/* Returns true if a wildcard waits that could match a message of the tuple. */
bool tq_wild_fits_tuple(const struct tq_rx_tuple *tuple);
/* Checks the rank and the tag of a receive or probe. Returns 0; -EINVAL if there is no such rank,
 * if `rank` is TQ_ANY_SOURCE, which the context's user has promised not to use, or if the context
 * has match bits; -EBADMSG if `tag` is TQ_ANY_TAG, which the user has promised not to use. */
int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag);

/* ---- the memory that a receive's data come to ---- */

/* Returns the most pieces that the data of a receive in an SRQ may lie in. */
uint32_t tq_recv_mem_pieces(const struct tq_recv_req *recv);
/* Registers the user's memory for `len` bytes, in at most `pieces` pieces (0: in one). Returns
 * false if that is impossible. */
bool tq_recv_mem_register(struct tq_recv_req *recv, uint64_t len, uint32_t pieces);
/* Gets memory of the library instead; for a held message also from the reserve. Returns false if
 * there is none. */
bool tq_recv_mem_bounce(struct tq_recv_req *recv, uint64_t len, bool held);
/* Posts `len` bytes of what was got to the SRQ of the receive's tuple; as srq_post(). */
int tq_recv_mem_post(struct tq_recv_req *recv, uint64_t len);
/* Gives registration and memory back, for tq_recv_mem_release(). */
void tq_recv_mem_give_back(struct tq_recv_req *recv);
/* Gives registration and memory back, if there are any. Inline, because most messages are short and
 * need none. */
static inline void tq_recv_mem_release(struct tq_recv_req *recv)
{
	if (recv->sg.addr || recv->sg.reg || recv->pieces)
		tq_recv_mem_give_back(recv);
}

extern const struct tq_states tq_recv_req_states;

/* Returns a receive, in no queue; NULL: no memory. */
struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user);
/* Changes the state; the one place that does. */
static inline void tq_recv_req_set_state(struct tq_recv_req *recv, enum tq_recv_req_state to)
{
	tq_states_change(&tq_recv_req_states, recv->req.core->trace, recv, recv->state, to);
	recv->state = to;
}
/* Ends a receive that is in no queue, and gives its memory back. */
void tq_recv_req_end(struct tq_recv_req *recv, int error);
/* Ends a receive all of whose wanted bytes are there. */
void tq_recv_req_complete(struct tq_recv_req *recv);
/* Returns the receive that a message of the peer names, if the receive is in that state; NULL:
 * none, and the message is counted as dropped. */
struct tq_recv_req *tq_recv_req_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle, enum tq_recv_req_state state);
/* Ends the start of a receive. Returns the result of the user's call: 0 and the request, or 1 and
 * the status if the receive has ended already, and is released. */
int tq_recv_req_finish_start(struct tq_recv_req *recv, struct tq_req **req,
			     struct tq_status *status);
/* Enters the receive into pair->active as one whose data are under way, or takes it out of there,
 * before its end. */
void tq_recv_req_enter_active(struct tq_recv_req *recv, enum tq_recv_req_state state);
void tq_recv_req_leave_active(struct tq_recv_req *recv);
/* Ends a receive, in no list, whose sender is lost: with `error`, when the SRQ that the receive may
 * be in is gone. */
void tq_recv_req_end_lost(struct tq_recv_req *recv, int error);

#endif
