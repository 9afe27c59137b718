/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network of an endpoint, with verbs: what its files offer each other. All of it is guarded by
 * the endpoint's lock, but for what says otherwise.
 */
#ifndef TQ_NET_NET_H
#define TQ_NET_NET_H

#include <assert.h>

#include "net/link.h"
#include "net/objects.h"

/* ---- wire.c ---- */
extern const struct tq_net_ops tq_net_ops;

/* params, job, cache, core and stats are set; all else is made here. */
int tq_net_open(struct tq_net *net);
void tq_net_close(struct tq_net *net);
/* Polls at most `budget` completions, and does what is due; returns how many events there were. */
int tq_net_poll(struct tq_net *net, int budget);
/* The second half of it: what is due besides completions. */
int tq_net_work(struct tq_net *net);

/* The adapter, or a queue of it, has failed for good: at the next tq_net_work() all ends. */
static inline void tq_net_broken(struct tq_net *net, const char *why)
{
	if (!net->broken_reason)
		net->broken_reason = why;
}

/* ---- device.c ---- */
/* For the end of a sentence that says why something can't be made: what to do about it, or "". */
const char *tq_limit_hint(int error);
int tq_device_open(struct tq_net *net);
/* Takes dev.verbs and dev.port_num for what they are; says what they lack, if they do. */
int tq_device_check(struct tq_net *net);
void tq_device_close(struct tq_net *net);

/* Takes what the adapter has to say besides completions: a queue or all of it may have failed. */
void tq_device_events(struct tq_net *net);

/* ---- choose.c ---- */
/* Opens the best of those that the parameters allow: dev.verbs, dev.port_num. */
int tq_device_choose(struct tq_net *net);

/* ---- xrcd.c: the XRC domain that the job's processes on this node share; opened after the device,
 * before the SRQs ---- */
int tq_xrcd_open(struct tq_net *net);
void tq_xrcd_close(struct tq_net *net);
/* Marks this process in the domain's file, by the nonce of its endpoint. The mark goes when the
 * process ends, or closes the domain. */
void tq_xrcd_mark(const struct tq_net *net, uint64_t nonce);
/* Returns 1 if another endpoint has marked itself so in this file, 0 if none has; -errno: the file
 * system doesn't say. */
int tq_xrcd_has_mark(const struct tq_net *net, uint64_t nonce);

/* ---- cq.c ---- */
int tq_cqs_open(struct tq_net *net);
void tq_cqs_close(struct tq_net *net);
/* Makes room for n more; false: it has as many slots as it may have, or can have. */
bool tq_cq_grow(struct tq_cq *cq, uint32_t n);
/* Inline, as each message comes through here several times. */
static inline bool tq_cq_reserve(struct tq_cq *cq, uint32_t n)
{
	if (n > cq->size - cq->used - cq->kept && !tq_cq_grow(cq, n))
		return false;
	cq->used += n;
	return true;
}
static inline void tq_cq_release(struct tq_cq *cq, uint32_t n)
{
	assert(n <= cq->used);
	cq->used -= n;
}
/* Events. */
int tq_cq_poll(struct tq_net *net, int budget);
/* The same for sends only: scq.look asks for it. */
int tq_cq_poll_sends(struct tq_net *net, int budget);
/* When SRQs were destroyed that a peer may still have sent to. */
int tq_cq_sweep(struct tq_net *net);

/* ---- mem.c: registrations, the pool of copies, the sink ---- */
int tq_mem_open(struct tq_net *net);
void tq_mem_close(struct tq_net *net);
struct tq_reg *tq_mem_reg(struct tq_net *net, void *addr, uint64_t len, bool write, void **cookie);
void tq_mem_unreg(struct tq_net *net, struct tq_reg *reg, void *cookie);
/* Memory of the caller's, by a cache or without one: tq_mr_register() of an endpoint. Takes no
 * lock. tq_mr_deregister() is in mem.c, too. */
int tq_mem_register(struct tq_net *net, void *addr, size_t len, unsigned access, struct tq_mr **mr);
/* Returns its registration, for a piece of memory; NULL for NULL. */
struct tq_reg *tq_mem_reg_of(struct tq_mr *mr);
/* Library memory, registered. */
void *tq_mem_alloc(struct tq_net *net, size_t len, struct tq_reg *reg);
void tq_mem_free(struct tq_net *net, void *addr);
/* It is deregistered by tq_mem_close(). */
void tq_mem_abandon(struct tq_net *net, struct tq_mr *mr);
bool tq_copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
void tq_copy_put(struct tq_net *net, struct tq_sg *sg);
/* What it takes of the pool. */
uint64_t tq_copy_bytes(const struct tq_sg *sg);
/* The SGE at the end of each receive; its length is what it takes at most. false: there is none. */
bool tq_mem_sink(struct tq_net *net, struct ibv_sge *sge);

/* ---- srq.c: tuple queues and their pool ---- */
int tq_srqs_open(struct tq_net *net);
void tq_srqs_close(struct tq_net *net);
/* An XRC SRQ on rcq; used for control SRQs too. -errno. */
int tq_srq_make(struct tq_net *net, uint32_t depth, uint32_t sges, struct ibv_srq **srq,
		uint32_t *srqn);
struct tq_srq *tq_srq_get(struct tq_net *net, uint32_t *srqn);
int tq_srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		void *token);
void tq_srq_put(struct tq_net *net, struct tq_srq *srq, bool safe);
/* Destroys what was withdrawn; called when the receive CQ has been polled empty. Events. */
int tq_srqs_poll(struct tq_net *net);
/* Are there such? Until they are destroyed the HCA may write into the buffers of their receives. */
bool tq_srqs_withdrawn(const struct tq_net *net);

/* ---- control.c, post.c, bank.c, credit.c: control SRQs, bounce buffers, credits, backlog ---- */
int tq_control_open(struct tq_net *net);
void tq_control_close(struct tq_net *net);
int tq_control_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		    unsigned flags);
void *tq_control_buf(struct tq_net *net, struct tq_link *link, uint32_t len);
int tq_control_buf_send(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			unsigned flags);
bool tq_control_data_ready(struct tq_net *net, struct tq_link *link);
/* Do messages wait, to any peer? To this one, which has not said that it wants no more? */
bool tq_control_waits(const struct tq_net *net);
bool tq_control_moves(const struct tq_link *link);
/* A buffer of the reserve for pieces, or false; and of that or the pool of copies, back to it. */
bool tq_control_piece_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
void tq_control_copy_put(struct tq_net *net, struct tq_sg *copy);
/* How much of the pool of copies it takes; 0: it is of one of the small reserves. */
uint64_t tq_control_copy_bytes(const struct tq_net *net, const struct tq_sg *copy);
/* Is there a reserve with nothing left? */
bool tq_posts_dry(const struct tq_net *net);
void tq_control_bounce_put(struct tq_net *net, struct tq_bounce *bounce);
void tq_control_backpressure(struct tq_net *net, bool stop);
/* What a process that connects its control lane is told; its number here is link->here. */
struct tq_control_terms {
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES];
	uint32_t credits[TQ_CLASSES];
};
/* A process connects its control lane to us: gives it a bank, a number and credits, for the answer.
 * -ENOSPC. Idempotent. */
int tq_control_accept(struct tq_net *net, struct tq_link *link, struct tq_control_terms *terms);
/* The link goes: its backlog, its bank's share and its number are dropped. */
void tq_control_forget(struct tq_net *net, struct tq_link *link);
/* Our control lane to the link's process is ready (connected is set; its srqn, size, conn, credits
 * are filled in): the backlog goes. */
void tq_control_connected(struct tq_net *net, struct tq_link *link);
/* Credits that are due, backlogs; returns events. */
int tq_control_poll(struct tq_net *net);
bool tq_control_idle(struct tq_net *net);
/* The same of what goes to that process, and to others of its node. */
bool tq_link_idle(struct tq_net *net,
		  struct tq_link *link); /* nothing waits, nothing is in a send queue */

/* ---- lane.c: posting on INI QPs ---- */
/*
 * Posts; reserves the SQ's and the CQ's slot, decides on signalling. `done` gets its completion,
 * which is sure to come with `signal`; NULL: nobody does (not on a hold lane, where each WQE is
 * reported). 0: tq_lane_last() is it. -EAGAIN, -EIO.
 */
int tq_lane_post(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		 struct ibv_send_wr *wr, tq_done *done, bool signal);
/* A SEND with data to an SRQ, as tq_lane_post(); TQ_DIRECT_INLINE, TQ_DIRECT_LAZY: no `signal`. */
int tq_lane_send(struct tq_net *net, struct tq_lane *lane, struct tq_link *link, uint32_t srqn,
		 const struct tq_sg *sg, int nsg, unsigned flags, tq_done *done);
/* The place of WQE number `n` in the lane's ring. */
static inline struct tq_posted *tq_lane_slot(const struct tq_lane *lane, uint32_t n)
{
	return &lane->ring[n & lane->mask];
}
static inline struct tq_posted *tq_lane_last(const struct tq_lane *lane)
{
	return tq_lane_slot(lane, lane->posted - 1);
}
/* Control lane: where tq_lane_keep() puts the inline data of WQE number `n`; that of the next one
 * is free when the send queue isn't full. */
static inline void *tq_lane_room(const struct tq_net *net, const struct tq_lane *lane, uint32_t n)
{
	return lane->bytes + (size_t)(n & lane->mask) * net->dev.max_inline;
}
/* What was posted last is to be repeated by again(), should it not be executed. len bytes of inline
 * data are kept, which may be there already; NULL: none are needed. */
struct tq_posted *tq_lane_keep(struct tq_net *net, struct tq_lane *lane,
			       void (*again)(struct tq_net *net, struct tq_posted *posted),
			       const void *bytes, uint32_t len);
/* tq_lane_post() and tq_lane_keep() of what is sent from a copy, which is taken over if that
 * succeeds: it goes back with the completion of this WQE or of a later one. */
int tq_lane_post_copy(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		      struct ibv_send_wr *wr, const struct tq_sg *copy,
		      void (*again)(struct tq_net *net, struct tq_posted *posted),
		      struct tq_posted **posted);
/* What was posted is sent again, or elsewhere: its copy, reg NULL if it has none. */
struct tq_sg tq_lane_take_copy(struct tq_net *net, struct tq_posted *posted);
/* The target has refused WQE number `wqe`: has those behind it repeated whose links are there. */
void tq_lane_repeat(struct tq_net *net, struct tq_lane *lane, uint32_t wqe);
/* A failed lane whose completions can't come, as the adapter's queues are broken or it is mute: its
 * work ends here. To be called where no completion is being handled. */
void tq_lane_flush(struct tq_net *net, struct tq_lane *lane);
/* The first n of the WQEs that are outstanding are complete. */
void tq_lane_complete(struct tq_net *net, struct tq_lane *lane, uint32_t n);
/* Control or bulk lane: makes the completion of what is unsignalled come, by an empty RDMA write
 * that names a control SRQ of the link's. As tq_lane_post(). */
int tq_lane_drain(struct tq_net *net, struct tq_lane *lane, struct tq_link *link);
/* Hold lane: has what is lazy there reported as soon as it is complete. */
void tq_lane_report(struct tq_net *net, struct tq_lane *lane);
/* It has failed: each of its sends gets a completion now, which are all looked for. */
void tq_lane_await_all(struct tq_net *net, struct tq_lane *lane);
/* A failed lane whose completions have come (awaited == 0) and whose QP is destroyed: its slots go
 * back. To be called where no completion is being handled. */
void tq_lane_settle(struct tq_net *net, struct tq_lane *lane);
/* A slot of the send CQ for the next drain of a hold lane: without one it might never be said what
 * has ended there. Is there one for another lane? */
bool tq_lane_has_drain(const struct tq_net *net);
void tq_lane_keep_drain(struct tq_net *net, struct tq_lane *lane);
void tq_lane_drop_drain(struct tq_net *net, struct tq_lane *lane);
int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token);

/* ---- rdma.c: the bulk lane's queue: chunked RDMA, and direct sends whose receive is certain ----
 */
int tq_rdma_open(struct tq_net *net);
void tq_rdma_close(struct tq_net *net);
int tq_rdma_start(struct tq_net *net, struct tq_link *link, enum ibv_wr_opcode opcode,
		  const struct tq_sg *sg, int nsg, uint64_t addr, uint32_t rkey, void *token);
int tq_rdma_atomic(struct tq_net *net, struct tq_link *link, const struct tq_atomic *atomic,
		   const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token);
int tq_rdma_direct(struct tq_net *net, struct tq_link *link, uint32_t srqn, const struct tq_sg *sg,
		   int nsg, unsigned flags, void *token);
int tq_rdma_poll(struct tq_net *net);
/* The link goes: what is queued for it is dropped. */
void tq_rdma_forget(struct tq_net *net, struct tq_link *link);
bool tq_rdma_idle(struct tq_net *net); /* nothing is queued or under way */

/* ---- put.c: small writes into peers' memory, on the control lane ---- */
/* 0, -EIO, -ENOMEM, -EAGAIN; what can't go at once waits, up to a limit. */
int tq_put_start(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		 uint64_t addr, uint32_t key);
int tq_put_poll(struct tq_net *net);
void tq_put_forget(struct tq_net *net, struct tq_link *link);

/* ---- lane_connect.c, fail.c, connections.c, node.c: connections ---- */
int tq_connections_open(struct tq_net *net);
void tq_connections_close(struct tq_net *net);
/*
 * The node's control or bulk lane, usable towards the link's process: NULL: not yet; it is then
 * asked for, and when it is there tq_control_connected() or tq_rdma_poll() sees it. A failed
 * connection ends in tq_link_fail().
 */
struct tq_lane *tq_lane_request(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind);
/* A free hold lane, usable towards it: it is taken then. NULL: none now; one is asked for within
 * the limits (tq_core_lane_ready()). */
struct tq_lane *tq_lane_hold_get(struct tq_net *net, struct tq_link *link);
void tq_lane_hold_put(struct tq_net *net, struct tq_lane *lane);
/* A completion with an error on a lane (each one of a lane in TQ_LANE_FAILED may be reported, only
 * the first counts): fails the link that it was posted towards (of a control or bulk lane: the WQE
 * of that number), and if nobody knows what became of the others those that use it, with one
 * sentence that names the cause and the peer. */
void tq_lane_error(struct tq_net *net, struct tq_lane *lane, uint32_t wqe, const struct ibv_wc *wc);
/* All of them, with all that is under way: net->broken_reason says why. */
void tq_conn_break(struct tq_net *net);
/*
 * The link, or all, are about to go: asks those that may still send us CREDIT to stop, since what
 * is late breaks their lane. tq_link_left(), tq_connections_left(): they have promised it, or a
 * moment is over; and no datagram is under way, whose address handle may go with its link.
 */
void tq_link_leave(struct tq_net *net, struct tq_link *link);
bool tq_link_left(const struct tq_net *net, const struct tq_link *link);
void tq_connections_leave(struct tq_net *net);
bool tq_connections_left(const struct tq_net *net);
/* Logs what has failed, and tells the protocol; returns how many links. Part of
 * tq_connections_poll(); to be called before the user hears of it in another way. */
int tq_connections_report(struct tq_net *net);
/* Returns true if all that has failed is reported. Else the user must not hear of a failure yet:
 * why a connection failed is being inquired, for a quarter of a second at most. */
bool tq_connections_settled(const struct tq_net *net);
/* Retransmissions and timeouts; returns events. *next: ns until it wants to be called again
 * (UINT64_MAX: no need). */
int tq_connections_poll(struct tq_net *net, uint64_t *next);
/* The address as published. */
const void *tq_connections_address(struct tq_net *net, size_t *len);
#endif
