/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the receiver's files tell each other: recv.c starts receives and takes arrivals, match.c
 * says who takes what, unexpected.c keeps unexpected messages, rx_tuple.c is a tuple and the offer
 * of its queue, recall.c the way back, policy.c says which tuples may have one, fetch.c gets the
 * data, held.c leaves that to the HCA, probe.c looks.
 */
#ifndef TQ_PROTO_RECV_H
#define TQ_PROTO_RECV_H

#include "proto/core.h"

/* ---- recv.c ---- */

struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user);
/* The one place that changes the state, but for the end. */
void tq_recv_req_to(struct tq_recv_req *r, enum tq_recv_req_state state);
/* It is in no queue any more: lets go of its registration, and ends. */
void tq_recv_req_end(struct tq_recv_req *r, int error);
/* For tq_core_recv() and tq_core_mrecv(): what they return for a receive that was started. */
int tq_recv_req_started(struct tq_recv_req *r, struct tq_req **req, struct tq_status *status);

/* -EINVAL: there is no such rank, or the context's user has promised not to use this wildcard. */
int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag);

/* ---- match.c ---- */

static inline bool tq_tag_fits(int32_t wanted, int32_t tag)
{
	return wanted == tag || (wanted == TQ_ANY_TAG && tag >= 0);
}

static inline bool tq_is_wild(int rank, int32_t tag)
{
	return rank == TQ_ANY_SOURCE || tag == TQ_ANY_TAG;
}

static inline bool tq_fits(int want_rank, int32_t want_tag, int rank, int32_t tag)
{
	return (want_rank == TQ_ANY_SOURCE || want_rank == rank) && tq_tag_fits(want_tag, tag);
}

/* The first pending wildcard that was posted before `order` and matches the tuple. */
struct tq_recv_req *tq_match_wild(const struct tq_ctx *ctx, int rank, int32_t tag, uint64_t order);
/* The queued message that a receive of this kind, posted as number `order`, takes now. */
struct tq_unexpected *tq_match_find(struct tq_ctx *ctx, int rank, int32_t tag, uint64_t order);
/* The one that it may take whatever its place in MPI's order: only with TQ_CTX_OVERTAKING. */
struct tq_unexpected *tq_match_overtake(struct tq_ctx *ctx, int rank, int32_t tag);
/* A new message: to its receive, else to the queues. */
void tq_match_arrival(struct tq_unexpected *u);
/* Matches what can be matched in a pair, after a fence of it is gone. */
void tq_match_pair(struct tq_pair *pair);
/* After wildcards went: matches what waited behind them. */
void tq_match_settle(struct tq_ctx *ctx);

/* ---- unexpected.c ---- */

/* Changes the bytes kept, and tells the peers when the limit is passed. */
void tq_unexpected_count(struct tq_core *core, int64_t change);

/* NULL: no memory. */
struct tq_unexpected *tq_unexpected_new(struct tq_pair *pair, struct tq_rx_tuple *k,
					enum tq_unexpected_kind kind, uint64_t length);
/* Frees one that is in no queue, with its data. */
void tq_unexpected_free(struct tq_unexpected *u);
/* Into the queues of its pair, tuple and context, data copied to our memory. false: there is none:
 * the message is freed and its peer fails. */
bool tq_unexpected_queue(struct tq_unexpected *u);
void tq_unexpected_unlink(struct tq_unexpected *u);
/* The context's that arrived first, with this tag or with any; the others follow by gnext, or by
 * anext. */
struct tq_unexpected *tq_unexpected_first(const struct tq_ctx *ctx, int32_t tag);
/* The context goes; it has none. */
void tq_unexpected_ctx_free(struct tq_ctx *ctx);
/* Makes data last beyond the processing of their message: in our memory, or in the control buffer
 * if there is one. false: no memory. */
bool tq_unexpected_keep(struct tq_unexpected *u);
bool tq_unexpected_hold(struct tq_unexpected *u);

/* ---- rx_tuple.c ---- */

enum tq_recall_why {
	TQ_RECALL_WILD,
	TQ_RECALL_PROBE,
	TQ_RECALL_CANCEL,
	TQ_RECALL_LRU,
	TQ_RECALL_REMOVED, /* its context is */
	TQ_RECALL_ASKED,   /* the sender gives it back */
	TQ_RECALL_EARLY,   /* its messages come before their receives */
	TQ_RECALL_BUFFER,  /* a receive or message that can't be posted */
	TQ_RECALL_WHYS
};

struct tq_rx_tuple *tq_rx_tuple_find(const struct tq_pair *pair, int32_t tag);
/* Makes it if it isn't there; NULL without memory. Each message and each receive comes through
 * here, most for the tuple of the one before. */
struct tq_rx_tuple *tq_rx_tuple_get_other(struct tq_pair *pair, int32_t tag);
static inline struct tq_rx_tuple *tq_rx_tuple_get(struct tq_pair *pair, int32_t tag)
{
	struct tq_rx_tuple *k = pair->recent_rx_tuples[tq_recent(tag)];

	return k && k->tag == tag ? k : tq_rx_tuple_get_other(pair, tag);
}
void tq_rx_tuple_free(struct tq_rx_tuple *k);
/* CONTROL, and nothing is in its queues. */
static inline bool tq_rx_tuple_quiet(const struct tq_rx_tuple *k)
{
	return k->state == TQ_RX_TUPLE_CONTROL && !k->posted && !k->unexpected && !k->srq;
}
/* Forgets records that nothing needs, the oldest first, until there is room for so many more. No
 * caller has a pointer to one. */
void tq_rx_tuples_trim(struct tq_core *core, uint32_t more);
/* To be called where the record may have become quiet. */
void tq_rx_tuple_unpark(struct tq_rx_tuple *k);
static inline void tq_rx_tuple_rest(struct tq_rx_tuple *k)
{
	if (k->parked && tq_rx_tuple_quiet(k))
		tq_rx_tuple_unpark(k);
}
/* The one place that changes the state. */
void tq_rx_tuple_to(struct tq_rx_tuple *k, enum tq_rx_tuple_state state);
/* What a message of the peer names; NULL: nothing. */
struct tq_rx_tuple *tq_rx_tuple_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle);
/* The longest message that its queue takes; 0: none. */
static inline uint64_t tq_rx_tuple_max_len(const struct tq_rx_tuple *k)
{
	const struct tq_net_limits *limits = k->pair->ctx->core->limits;

	return k->exact ? limits->max_send : limits->max_direct;
}

/* The sender asks for the tuple's queue, with a short message or a long one: SRQN or REFUSE. */
void tq_rx_tuple_handle_ask(struct tq_rx_tuple *k, uint32_t tx_tuple, bool is_short);
/* DIRECT: gives the next positions to waiting receives, as far as there is room. */
void tq_rx_tuple_flow(struct tq_rx_tuple *k);
/* DIRECT, none waits: the next position goes to r, or r has to wait. */
void tq_rx_tuple_take(struct tq_rx_tuple *k, struct tq_recv_req *r);

/* ---- recall.c ---- */

void tq_rx_tuple_recall(struct tq_rx_tuple *k, enum tq_recall_why why);
/* Has a tuple that a receive of this kind fits a queue, or is it offered one? */
bool tq_rx_tuple_queued(const struct tq_ctx *ctx, int rank, int32_t tag);
/* Recalls all that a receive or probe of this kind could match. */
void tq_rx_tuple_recall_fitting(struct tq_ctx *ctx, int rank, int32_t tag, enum tq_recall_why why);
/* A held message is delivered. */
void tq_rx_tuple_unheld(struct tq_rx_tuple *k);
/* A receive of the tuple's own account was delivered. */
void tq_rx_tuple_delivered(struct tq_rx_tuple *k, struct tq_recv_req *r);
/* r, in no list, was in an SRQ whose sender is lost: ends with `error` when that SRQ is gone. */
void tq_recv_req_lost(struct tq_recv_req *r, int error);
/* The peer is gone: ends receives of the tuple, the recall, and the queue. */
void tq_rx_tuple_fail(struct tq_rx_tuple *k, int error);

/* ---- policy.c ---- */

/* A wildcard receive, or probe, is about. */
void tq_policy_wild(struct tq_ctx *ctx, int rank, int32_t tag);
void tq_policy_probe(struct tq_rx_tuple *k);
/* A message came, not by the SRQ. */
void tq_policy_message(struct tq_rx_tuple *k);
/* It was a short one: was it here before its receive? */
void tq_policy_short(struct tq_rx_tuple *k, bool early);
/* Counts a direct message with a NOTICE. Returns true if the tuple is to be recalled for it. */
bool tq_policy_direct(struct tq_rx_tuple *k, bool early);
/* Counts a message that comes by no queue, where there are queues. */
void tq_policy_software(const struct tq_rx_tuple *k);
/* It is recalled: how many messages the sender shall send before it asks again. */
uint32_t tq_policy_recalled(struct tq_rx_tuple *k, enum tq_recall_why why);
/* May it have a queue? 0: yes; else as above. */
uint32_t tq_policy_refuse(struct tq_rx_tuple *k, bool is_short);
void tq_policy_free(struct tq_ctx *ctx);

/* ---- fetch.c ---- */

/* The message u, in no queue, goes to r, in no queue: gets its data. u is consumed. */
void tq_fetch(struct tq_recv_req *r, struct tq_unexpected *u);
/* The data of an eager message go to r, an exact receive in no queue. Not in service mode. */
void tq_fetch_at_once(struct tq_recv_req *r, const void *data, uint64_t len);
/* The data are in the library's memory (bounced): to the user's, now or by a thread of the user's.
 */
void tq_fetch_unbounce(struct tq_recv_req *r);
/* A registration of the user's buffer for `len` bytes, in at most so many pieces (0: it must be
 * one); false: impossible. */
bool tq_fetch_register(struct tq_recv_req *r, uint64_t len, uint32_t pieces);
/* Memory of the library instead, for a message that is held from the reserve, too; false: there is
 * none. */
bool tq_fetch_bounce(struct tq_recv_req *r, uint64_t len, bool held);
/* Posts to the tuple's SRQ what was registered, as a receive of `r`; as srq_post(). */
int tq_fetch_post(struct tq_recv_req *r, uint64_t len);
/* Lets go of the registration and the bounce memory. */
void tq_fetch_release(struct tq_recv_req *r);
/* Into pair->active, and out of it: before its end. */
void tq_fetch_under_way(struct tq_recv_req *r, enum tq_recv_req_state state);
void tq_fetch_over(struct tq_recv_req *r);
/* All wanted bytes are there. */
void tq_fetch_complete(struct tq_recv_req *r);
/* The peer is gone, and with it the queues: ends the receives that only it could end. */
void tq_fetch_fail(struct tq_pair *pair, int error);
/* The pair goes: ends all. */
void tq_fetch_drop(struct tq_pair *pair);

/* ---- held.c ---- */

void tq_fetch_held(struct tq_recv_req *r, struct tq_unexpected *u);
/* CTS_HELD: all its pieces are here. */
void tq_held_again(struct tq_recv_req *r);
/* Held receives that waited for room. Returns how many have it. */
int tq_held_poll(struct tq_core *core);

/* ---- probe.c ---- */

/* A held message that a matched probe took has been drained, or is lost. */
void tq_msg_drained(struct tq_recv_req *drain, int error);

#endif
