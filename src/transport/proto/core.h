/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol: MPI's matching over tuple queues (PROTOCOL.md), as state machines
 * that know no verbs and no threads. The network below is struct tq_net_ops; whoever calls holds
 * the endpoint's lock.
 *
 *   sender:   send.c starts sends; tx_tuple_table.c has the tuples' records, tx_tuple.c is a tuple;
 *             giveback.c says whether its queue pays; answer.c does what the receiver's
 *             answers say
 *   receiver: recv.c starts receives and takes arrivals; match.c says who takes what; unexpected.c
 * keeps unexpected messages; rx_tuple.c is a tuple and the offer of its queue, recall.c the way
 *             back, policy.c decides on it; fetch.c gets the data (RGET, CTS, pieces), held.c
 *             has the HCA place them; probe.c looks
 *   both:     core.c, ctx.c
 */
#ifndef TQ_PROTO_CORE_H
#define TQ_PROTO_CORE_H

#include "proto/objects.h"

/* ---- pieces.c ---- */

/* Does the caller name the memory's pieces, and not too many? */
bool tq_pieces_fit(const struct tq_buf *buf, uint32_t most);
/* Registers the first `len` bytes of them, to be read, or written. NULL: they don't fit, or one
 * can't be registered. */
struct tq_pieces *tq_pieces_reg(struct tq_core *core, const struct tq_buf *buf, uint64_t len,
				bool write, uint32_t most);
void tq_pieces_unreg(struct tq_core *core, struct tq_pieces *p);
/* The first `len` bytes as a list: of `p`, or where that is NULL of `one`. Returns its length. */
int tq_pieces_list(const struct tq_pieces *p, const struct tq_sg *one, uint64_t len,
		   struct tq_sg list[TQ_MAX_PIECES]);

/* ---- core.c ---- */

/* All that is pointed to must outlive the core. */
void tq_core_init(struct tq_core *core, const struct tq_net_ops *ops, void *net,
		  const struct tq_net_limits *limits, const struct tq_params *params,
		  struct tq_stats *stats);
/* Frees all; nothing is told to anyone. */
void tq_core_destroy(struct tq_core *core);
/* `peer` is the caller's memory; link and name are set by it. */
void tq_core_peer_init(struct tq_core *core, struct tq_peer *peer);
/* Forgets a peer to and from which nothing is under way; no context names it but removed ones. */
void tq_core_peer_fini(struct tq_core *core, struct tq_peer *peer);
struct tq_ctx *tq_ctx_find(struct tq_core *core, uint32_t id);
/* Is nobody left who could send to a receive from TQ_ANY_SOURCE there? */
bool tq_ctx_deserted(struct tq_ctx *ctx);
/* A peer has failed: such receives end where it was the last one. */
void tq_ctxs_peer_failed(struct tq_core *core);
int tq_core_ctx_add(struct tq_core *core, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, struct tq_ctx **ctx);
/* Returns the peer's rank in an open context; -ENOMEM. */
int tq_core_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer);
void tq_core_ctx_set_flags(struct tq_ctx *ctx, unsigned flags);
void tq_core_ctx_remove(struct tq_ctx *ctx);
/* Deferred work: copies, pieces, receives that wait for room. Returns events. With core->service
 * set, only what touches no user data. */
int tq_core_poll(struct tq_core *core);
/* Takes the list of ended requests (by next; status is filled in); each goes back by
 * tq_core_release(). */
struct tq_req *tq_core_ended(struct tq_core *core);
/* The same, but those stay in the list that ended as a connection failed. */
struct tq_req *tq_core_ended_unfailed(struct tq_core *core);
void tq_core_release(struct tq_req *req);
/* Nothing that was sent is still needed here. */
bool tq_core_idle(const struct tq_core *core);
/*
 * For the files of proto/: marks the peer as failed, because it did what can't be or can't be told
 * what it must know. Nothing of the peer ends before the next tq_core_poll() or
 * tq_core_peer_failed(), so the caller may go on with its requests and queues. Messages of the peer
 * are dropped from here on.
 */
void tq_peer_fail(struct tq_peer *peer, const char *why);
/* For the files of proto/: sends a control message that must not be lost. Fails the peer, and
 * returns a negative error, if that can't be done. */
int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags);
/* For the files of proto/: a request has ended with this error. Puts it on the list, or frees a
 * detached one. */
void tq_req_end(struct tq_req *req, int error);
/* The pair of a rank, made on first use; NULL without memory or for a rank that isn't. Inline, as
 * each message and each receive comes through here. */
struct tq_pair *tq_pair_make(struct tq_ctx *ctx, int rank);
static inline struct tq_pair *tq_pair_get(struct tq_ctx *ctx, int rank)
{
	if (rank < 0 || rank >= ctx->npeers)
		return NULL;
	return ctx->pairs[rank] ? ctx->pairs[rank] : tq_pair_make(ctx, rank);
}

static inline unsigned tq_recent(int32_t tag)
{
	return (uint32_t)tag % TQ_RECENT;
}
/* Of tx_tuples and rx_tuples. */
static inline unsigned tq_tag_hash(int32_t tag)
{
	uint32_t h = (uint32_t)tag * 0x9e3779b1u;

	return h ^ h >> 16;
}

/* ---- what both halves need ---- */
static inline struct tq_msg_hdr tq_msg_hdr(uint8_t type, uint8_t flags)
{
	return (struct tq_msg_hdr){.type = type, .flags = flags};
}

static inline bool tq_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline uint64_t tq_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* May messages go to tuple queues at all? */
static inline bool tq_tuples_wanted(const struct tq_core *core)
{
	return core->params->protocol == TQ_PROTOCOL_TUPLEQ ||
	       core->params->protocol == TQ_PROTOCOL_COPY;
}

/* Is an RTS to be answered by an RDMA read, if it can? */
static inline bool tq_rget_wanted(const struct tq_core *core)
{
	return core->params->protocol == TQ_PROTOCOL_RGET ||
	       (tq_tuples_wanted(core) && core->params->rendezvous == TQ_RENDEZVOUS_RGET);
}

static inline uint64_t tq_eager_limit(const struct tq_core *core)
{
	return tq_min64((uint64_t)core->params->eager_limit, core->limits->eager_max);
}

/* The longest message that goes eagerly where its tuple has no queue. */
static inline uint64_t tq_eager_max(const struct tq_core *core)
{
	uint64_t limit = tq_eager_limit(core);

	if (!tq_tuples_wanted(core) || core->params->eager_max <= core->params->eager_limit)
		return limit;
	return tq_min64((uint64_t)core->params->eager_max, core->limits->eager_max);
}

/* The first direct messages of a queue's life are looked at more closely, then one in so many: a
 * NOTICE costs nearly as much as a short message. */
#define TQ_SAMPLE_FIRST 64u
#define TQ_SAMPLE_EVERY 32u

static inline bool tq_is_sampled(uint32_t base, uint32_t seq)
{
	return seq - base < TQ_SAMPLE_FIRST || seq % TQ_SAMPLE_EVERY == 0;
}

/* Returns true if the direct message with this number may have a NOTICE. */
static inline bool tq_has_notice(const struct tq_core *core, uint32_t base, uint32_t seq)
{
	return core->params->giveback_after && tq_is_sampled(base, seq);
}

/* ---- user calls; results as in tupleq.h ---- */
int tq_core_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf,
		 unsigned flags, void *user, struct tq_req **req);
/* Returns true if a short message gains from a start that is put off until its tuple is back from a
 * crowded queue: the message goes eagerly then. */
bool tq_core_goes_eager_soon(const struct tq_ctx *ctx, int rank, int32_t tag);
/* Asks the receiver to take back the queue of that tuple, if the queue is crowded and was not given
 * back already. */
void tq_core_give_back_crowded(struct tq_ctx *ctx, int rank, int32_t tag);
int tq_core_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
		 struct tq_req **req, struct tq_status *status);
/* Returns true if the network should be polled before this receive is posted: a NOTICE that has
 * come says then that its message was early. */
bool tq_core_recv_looks(const struct tq_ctx *ctx, int rank, int32_t tag);
int tq_core_cancel(struct tq_req *req);
/* Ends with `error` what has this tag and has not matched yet. */
void tq_core_end_receives(struct tq_core *core, uint32_t id, int32_t tag, int error);
int tq_core_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status);
int tq_core_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
		   struct tq_msg **msg);
int tq_core_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
		  struct tq_status *status);
struct tq_core *tq_msg_core(const struct tq_msg *msg);
/* Starts an operation on the peer's memory; `reg` is the caller's registration of the local memory,
 * NULL: there is none. Its end is told by tq_core_rma_tell(). */
int tq_core_rma(struct tq_peer *peer, const struct tq_rma *rma, struct tq_reg *reg);
/* Calls done() of an ended request of the kind TQ_REQ_RMA. Called without the endpoint's lock. */
void tq_core_rma_tell(const struct tq_req *req);
int tq_core_tuple_infos(struct tq_core *core, struct tq_tuple_info *info, int n);

/* ---- rma.c: what core.c calls ---- */
void tq_rma_done(struct tq_req *req, int status);
void tq_rma_release(struct tq_req *req);
void tq_rmas_destroy(struct tq_core *core);

/* ---- sender's files: what core.c's dispatcher calls; msg is checked ---- */
void tq_on_srqn(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_srqn *m);
void tq_on_refuse(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_refuse *m);
void tq_on_recall(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_recall *m);
void tq_on_fin(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_answer *m);
void tq_on_cts(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_cts *m);
void tq_on_cts_pieces(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_cts *m);
void tq_on_cts_direct(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_answer *m);
void tq_on_cts_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_cts_held *m);
void tq_on_write_done(struct tq_send_req *s, int status); /* tq_core_rdma_done() of a send */
int tq_send_poll(struct tq_core *core);                   /* pieces */
void tq_send_pair_failed(struct tq_pair *pair, int error);
void tq_send_pair_free(struct tq_pair *pair);

/* ---- receiver's files ---- */
bool tq_on_eager(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_eager *m,
		 uint32_t len, struct tq_bounce *bounce);
void tq_on_rts(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_rts *m);
void tq_on_switch(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_switch *m);
void tq_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *m);
void tq_on_recalled(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_recalled *m);
void tq_on_giveback(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_giveback *m);
void tq_on_notice(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_notice *m);
bool tq_on_data(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_data *m,
		uint32_t len, struct tq_bounce *bounce);
void tq_on_written(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_written *m);
void tq_on_read_done(struct tq_recv_req *r, int status); /* tq_core_rdma_done() of a receive */
int tq_recv_poll(struct tq_core *core);                  /* copies, room */
void tq_recv_pair_failed(struct tq_pair *pair, int error);
/* Is a receive posted that only this peer's messages fit? */
bool tq_recv_awaits(const struct tq_pair *pair);
void tq_recv_pair_free(struct tq_pair *pair);
void tq_recv_ctx_free(struct tq_ctx *ctx);

#endif
