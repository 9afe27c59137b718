/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the protocol (proto/) needs of a network, and what it is told by it. net/ implements it with
 * verbs; tests with a model that goes through schedules. All calls, both ways, are made with the
 * endpoint's lock held. The network never calls the protocol from within an operation of struct
 * tq_net_ops: what happens is reported when the network is polled.
 */
#ifndef TQ_PROTO_NET_OPS_H
#define TQ_PROTO_NET_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tq_core;
struct tq_peer;
struct tq_lane;
struct tq_srq;
struct tq_bounce;

/* A registration in use; the network's. */
struct tq_reg {
	uint32_t lkey, rkey;
};

/* A piece of memory of a message; reg may be NULL where len is 0 or TQ_DIRECT_INLINE is given. */
struct tq_sg {
	void *addr;
	uint64_t len;
	struct tq_reg *reg;
};

#define TQ_CONTROL_SOLICITED 1u /* wakes the peer's service thread */

/* The data are copied before the call returns; at most limits.max_inline bytes. */
#define TQ_DIRECT_INLINE 1u
#define TQ_DIRECT_BULK   2u /* its receive is certain: no lane is needed (lane is NULL) */
/* On a lane: tq_core_sent() may come late, when a later one of the lane ends or after report().
 * What such sends keep of the pool of copies is bounded by the network. */
#define TQ_DIRECT_LAZY 4u
#define TQ_DIRECT_COPY 8u /* from the pool of copies: one piece */

/* What the network can do; constant. */
struct tq_net_limits {
	uint32_t max_inline; /* bytes that can be posted without a registration; at most any
				peer's eager_max */
	uint32_t eager_max;  /* data bytes of the longest EAGER or DATA message */
	uint64_t max_direct; /* longest direct message that any receive here takes: max_msg_sz and
				the sink; 0: there is no sink */
	uint64_t max_send;   /* longest direct message that can be sent */
	/* Pieces, at least 1, of a send or RDMA write, of an RDMA read, and of a receive (the sink
	 * not counted); at most TQ_MAX_PIECES. */
	uint32_t max_sge, max_sge_rd, max_srq_sge;
	uint32_t srq_depth; /* receives in one tuple queue */
	bool has_atomics;   /* atomic() works */
};

/* An operation on 8 bytes of a peer's memory, which the adapter there does in one piece. */
struct tq_atomic {
	bool is_swap;     /* stores `operand` if `compare` is there; else adds `operand` */
	uint64_t operand; /* in the byte order of the processes, as the memory */
	uint64_t compare;
};

struct tq_net_ops {
	/*
	 * Control lane: FIFO to the peer, reliable. A message without data: copied, waits its turn
	 * inside when there is no credit or the queue is full, connects on first use. -EIO: the
	 * peer has failed; -ENOMEM.
	 */
	int (*control)(void *net, struct tq_peer *peer, const void *msg, uint32_t len,
		       unsigned flags);

	/*
	 * The same with data: a buffer for a message of `len` bytes, which the caller fills and
	 * hands to eager_send(). Between the two no other operation is called. NULL: the pool of
	 * copies is empty, or the peer asked for no more eager data (that doesn't count right after
	 * data_ready() has said yes: DATA answers a receive, and must come through).
	 */
	void *(*eager_buf)(void *net, struct tq_peer *peer, uint32_t len);
	int (*eager_send)(void *net, struct tq_peer *peer, void *buf, uint32_t len, unsigned flags);
	/* Would a DATA message go at once (credit, queue, buffer)? The protocol sends pieces only
	 * then; it asks again at tq_core_poll(). */
	bool (*data_ready)(void *net, struct tq_peer *peer);

	/* Memory from the registered, bounded pool of copies; NULL: it is empty. Its reg is in
	 * `sg`. */
	bool (*copy_get)(void *net, uint64_t len, struct tq_sg *sg);
	/* The same, at most limits.eager_max bytes, from a small reserve: for data that are on
	 * their way, after which it is given back. */
	bool (*reserve_get)(void *net, uint64_t len, struct tq_sg *sg);
	void (*copy_put)(void *net, struct tq_sg *sg); /* of both */

	/*
	 * An exclusive hold lane that is usable towards the peer now, or NULL: then one is being
	 * connected if the limits allow, and tq_core_lane_ready() is told. lane_put(): nothing is
	 * outstanding on it.
	 */
	struct tq_lane *(*lane_get)(void *net, struct tq_peer *peer);
	void (*lane_put)(void *net, struct tq_lane *lane);

	/* Sends to a tuple's SRQ on a hold lane (or TQ_DIRECT_BULK). Ends with tq_core_sent(token).
	 * -EAGAIN: the queue is full; -EIO. With TQ_DIRECT_BULK the network queues, so -EAGAIN
	 * doesn't come. */
	int (*direct)(void *net, struct tq_peer *peer, struct tq_lane *lane, uint32_t srqn,
		      const struct tq_sg *sg, int nsg, unsigned flags, void *token);
	/* Has lazy sends on the lane reported as soon as they are complete. */
	void (*report)(void *net, struct tq_lane *lane);

	/* RDMA on the bulk lane, in chunks, queued inside; the remote memory is one piece. Ends
	 * with tq_core_rdma_done(token). A write of at most max_inline bytes needs no registration.
	 * -EIO, -ENOMEM. */
	int (*read)(void *net, struct tq_peer *peer, const struct tq_sg *sg, int nsg, uint64_t addr,
		    uint32_t rkey, void *token);
	int (*write)(void *net, struct tq_peer *peer, const struct tq_sg *sg, int nsg,
		     uint64_t addr, uint32_t rkey, void *token);

	/* The same for an atomic operation; what was in the peer's memory comes into the 8 bytes of
	 * `sg`. */
	int (*atomic)(void *net, struct tq_peer *peer, const struct tq_atomic *atomic,
		      const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token);

	/* An empty tuple queue; NULL: at a limit. */
	struct tq_srq *(*srq_get)(void *net, uint32_t *srqn);
	/* Posts a receive; up to max_direct the network adds the sink. Ends with
	 * tq_core_delivered(token). -EAGAIN: no room in it or in the CQ, in which an empty one has
	 * room for one. */
	int (*srq_post)(void *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
			void *token);
	/* Empty and `safe`, as no sender will send to it any more, it is kept for another tuple.
	 * Else it is withdrawn, with the receives in it: destroyed soon, which tq_core_srqs_gone()
	 * says. Until then a sender that wasn't heard may still fill those. */
	void (*srq_put)(void *net, struct tq_srq *srq, bool safe);

	/* A registration of user memory, which the HCA reads, or writes to, that lasts until
	 * unreg(); NULL: it can't be registered. */
	struct tq_reg *(*reg)(void *net, void *addr, uint64_t len, bool write, void **cookie);
	void (*unreg)(void *net, struct tq_reg *reg, void *cookie);

	/* Control buffers that tq_core_control() kept. */
	void (*bounce_put)(void *net, struct tq_bounce *bounce);
	/* Unexpected data are at their limit, or below it again: tells all peers (or those that ask
	 * later) to stop or resume eager sends. */
	void (*backpressure)(void *net, bool stop);

	/* The protocol has failed the peer, see tq_peer_fail(). The network takes nothing more for
	 * the peer, logs `why`, and ends what is posted towards it. */
	void (*peer_fail)(void *net, struct tq_peer *peer, const char *why);
};

/* ---- told by the network ---- */

/*
 * A control message, complete and checked by tq_msg_check(), has come from the peer, in order.
 * true: the protocol keeps the buffer `bounce` (an EAGER or DATA message's) until bounce_put(),
 * else the network may reuse it on return.
 */
bool tq_core_control(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
		     struct tq_bounce *bounce);
/* A direct send, an RDMA operation, has ended. status: 0 or -EIO. In order per lane only. */
void tq_core_sent(struct tq_core *core, void *token, int status);
void tq_core_rdma_done(struct tq_core *core, void *token, int status);
/* A receive of a tuple queue took a message of `len` bytes (which may be more than its buffer: the
 * sink took the rest). In order per lane, in no order to anything else. `error`: NULL, or why it
 * took none, for which its sender is given up. */
void tq_core_delivered(struct tq_core *core, void *token, uint64_t len, const char *error);
/* lane_get(peer) may give one now. */
void tq_core_lane_ready(struct tq_core *core, struct tq_peer *peer);
/* Is a receive from that peer posted, or was it probed for in vain since this was asked last? */
bool tq_core_awaits(struct tq_peer *peer);
/* The connection to the peer failed for good: everything towards and from it ends with an error.
 * What was posted (tokens) still ends by tq_core_sent(), tq_core_rdma_done(), with -EIO: until then
 * the HCA may use its memory. */
void tq_core_peer_failed(struct tq_core *core, struct tq_peer *peer);
/* No SRQ that srq_put() withdrew is there any more: nothing writes to receives that were in one. */
void tq_core_srqs_gone(struct tq_core *core);
/* Nothing goes any more, and all peers have failed: receives from anybody end as well. */
void tq_core_broken(struct tq_core *core);

#endif
