/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between the protocol (proto/) and a network: the operations that the protocol
 * calls, and the events that the network reports. net/ implements it with verbs; tests with a
 * model that goes through schedules. All calls, both ways, are made with the endpoint's lock
 * held. The network never calls the protocol from within an operation of struct tq_net_ops:
 * events are reported when the network is polled.
 */
#ifndef TQ_PROTO_NET_OPS_H
#define TQ_PROTO_NET_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of the protocol. */
struct tq_core;
struct tq_peer;
/* Types of the network: its whole, its side of a peer, a hold lane, a tuple queue, a control
 * buffer. */
struct tq_net;
struct tq_link;
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
/* On a lane: tq_core_on_sent() may come late, when a later send of the lane ends or after
 * report(). The network bounds what such sends keep of the pool of copies. */
#define TQ_DIRECT_LAZY 4u
#define TQ_DIRECT_COPY 8u /* from the pool of copies: one piece */

/* Limits of the network; constant. */
struct tq_net_limits {
	uint32_t max_inline;       /* bytes that can be posted without a registration; at most any
				      peer's control_data_max */
	uint32_t control_data_max; /* data bytes of the longest EAGER or DATA message */
	uint64_t max_direct; /* longest direct message that any receive here takes: max_msg_sz and
				the sink; 0: there is no sink */
	uint64_t max_send;   /* longest direct message that can be sent */
	/* Pieces, at least 1, of a send or RDMA write, of an RDMA read, and of a receive (the sink
	 * not counted); at most TQ_MAX_PIECES. */
	uint32_t max_sge, max_sge_rd, max_srq_sge;
	uint64_t rnr_bytes; /* that the port sends in the time that the adapter pauses after an RNR
			       NAK */
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
	 * Sends a message without data on the control lane, which is FIFO and reliable. The
	 * message is copied. The copy waits inside when there is no credit or the queue is full;
	 * the first one connects. -EIO: the peer has failed; -ENOMEM.
	 */
	int (*control)(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		       unsigned flags);

	/*
	 * Returns a buffer for a message with data of `len` bytes in all, which the caller fills
	 * and hands to eager_send(). Between the two no operation but is_local() and
	 * try_readable() is called. NULL: the pool of copies is empty, or the peer asked for no
	 * more eager data. (Neither counts right after prepare_data() has returned true: DATA
	 * answers a receive, and must come through.)
	 */
	void *(*eager_buf)(struct tq_net *net, struct tq_link *link, uint32_t len);
	int (*eager_send)(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			  unsigned flags);
	/* Prepares for a DATA message. Returns true if one would go at once (credit, queue,
	 * buffer). The protocol sends pieces only then, and asks again at tq_core_poll(). */
	bool (*prepare_data)(struct tq_net *net, struct tq_link *link);

	/* Returns true if messages with data reach the peer sooner than what goes to a tuple queue,
	 * and without the HCA: through shared memory. */
	bool (*is_local)(struct tq_net *net, struct tq_link *link);

	/* Returns true if this process may read the memory of the peer, a process of its node, so
	 * that the peer probably may read this one's. Finds that out on first use. */
	bool (*try_readable)(struct tq_net *net, struct tq_link *link);
	/* Copies by the CPU `len` bytes that an unanswered RTS has announced at `addr` in the
	 * memory of a readable peer. Returns 0, or -EIO: then `to` may hold anything. */
	int (*copy)(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr,
		    uint64_t len);

	/* Returns true if control messages wait, and go on whatever the peer's user does: the
	 * peer returns credit. */
	bool (*control_moves)(struct tq_net *net, struct tq_link *link);

	/* Gets memory from the registered, bounded pool of copies; its reg is in `sg`. Returns
	 * false if the pool is empty. */
	bool (*copy_get)(struct tq_net *net, uint64_t len, struct tq_sg *sg);
	/* Gets at most limits.control_data_max bytes from a small reserve, for data that are on
	 * their way, after which the memory is given back. */
	bool (*reserve_get)(struct tq_net *net, uint64_t len, struct tq_sg *sg);
	void (*copy_put)(struct tq_net *net, struct tq_sg *sg); /* of both */

	/*
	 * Returns an exclusive hold lane that is usable towards the peer now, or NULL: then one
	 * is being connected if the limits allow, and tq_core_on_lane_ready() is called. lane_put()
	 * takes back a lane on which nothing is outstanding.
	 */
	struct tq_lane *(*lane_get)(struct tq_net *net, struct tq_link *link);
	void (*lane_put)(struct tq_net *net, struct tq_lane *lane);

	/* Sends to a tuple's SRQ on a hold lane (or TQ_DIRECT_BULK). Ends with
	 * tq_core_on_sent(token). -EAGAIN: the queue is full; not with TQ_DIRECT_BULK, where the
	 * network queues. -EIO. */
	int (*direct)(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		      const struct tq_sg *sg, int nsg, unsigned flags, void *token);
	/* Has lazy sends on the lane reported as soon as they are complete. */
	void (*report)(struct tq_net *net, struct tq_lane *lane);

	/* RDMA on the bulk lane, in chunks, queued inside; the remote memory is one piece. Ends
	 * with tq_core_on_rdma_done(token). A write of at most max_inline bytes needs no
	 * registration. -EIO, -ENOMEM. */
	int (*read)(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		    uint64_t addr, uint32_t rkey, void *token);
	int (*write)(struct tq_net *net, struct tq_link *link, const struct tq_sg *sg, int nsg,
		     uint64_t addr, uint32_t rkey, void *token);

	/* Starts an atomic operation. Returns and ends as read() and write() do. The former value
	 * in the peer's memory comes into the 8 bytes of `sg`. */
	int (*atomic)(struct tq_net *net, struct tq_link *link, const struct tq_atomic *atomic,
		      const struct tq_sg *sg, uint64_t addr, uint32_t rkey, void *token);

	/* Has tq_core_on_reminded() called once, after a time in which most messages arrive. */
	void (*remind)(struct tq_net *net);

	/* Returns an empty tuple queue; NULL: at a limit. */
	struct tq_srq *(*srq_get)(struct tq_net *net, uint32_t *srqn);
	/* Posts a receive, to which the network adds the sink up to max_direct. Ends with
	 * tq_core_on_delivered(token). -EAGAIN: no room in the queue or in the CQ; an empty queue
	 * has room for one. */
	int (*srq_post)(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
			void *token);
	/* Gives a tuple queue back. One that is empty and `safe`, as no sender will send to it
	 * any more, is kept for another tuple. Others are withdrawn with the receives in them:
	 * they are destroyed soon, which tq_core_on_srqs_gone() reports. Until then a sender that
	 * gave no answer may still fill those receives. */
	void (*srq_put)(struct tq_net *net, struct tq_srq *srq, bool safe);

	/* Registers user memory, which the HCA reads, or writes to, until unreg(). NULL: the
	 * memory can't be registered. */
	struct tq_reg *(*reg)(struct tq_net *net, void *addr, uint64_t len, bool write,
			      void **cookie);
	void (*unreg)(struct tq_net *net, struct tq_reg *reg, void *cookie);

	/* Gives back a control buffer that tq_core_on_control() kept. */
	void (*bounce_put)(struct tq_net *net, struct tq_bounce *bounce);
	/* Tells all peers (or those that ask later) to stop or resume eager sends, as
	 * unexpected data are at their limit, or below it again. */
	void (*backpressure)(struct tq_net *net, bool stop);

	/* Called when the protocol has failed the peer, see tq_peer_fail(). The network takes
	 * nothing more for the peer, logs `why`, and ends what is posted towards it. */
	void (*peer_fail)(struct tq_net *net, struct tq_link *link, const char *why);
};

/* ---- reported by the network ---- */

/*
 * Handles a control message of the peer, complete and checked by tq_msg_check(). A peer's messages
 * are reported in their order. Returns true if the protocol keeps the buffer `bounce` (an EAGER or
 * DATA message's) until bounce_put(); else the network may reuse it.
 */
bool tq_core_on_control(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
			struct tq_bounce *bounce);
/* Report that a direct send, or an RDMA operation, has ended; `status` is 0 or -EIO. Only the
 * reports of one lane come in their order. */
void tq_core_on_sent(struct tq_core *core, void *token, int status);
void tq_core_on_rdma_done(struct tq_core *core, void *token, int status);
/* Reports that a receive of a tuple queue took a message of `len` bytes (which may be more than its
 * buffer: the sink took the rest). Only the reports of one lane come in their order. `error`: NULL,
 * or the reason why the receive took none, for which its sender is failed. */
void tq_core_on_delivered(struct tq_core *core, void *token, uint64_t len, const char *error);
/* Reports that lane_get() may return a lane to the peer now. */
void tq_core_on_lane_ready(struct tq_core *core, struct tq_peer *peer);
/* Reports that the time that remind() asked for is over. */
void tq_core_on_reminded(struct tq_core *core);
/* Returns true if a receive that only this peer's messages fit waits in the library, and not in a
 * tuple queue, or if the peer was probed for in vain since the last call. */
bool tq_core_take_awaited(struct tq_peer *peer);
/* Returns true if something that was sent to the peer waits for an answer of its library. The HCA
 * ends direct sends and RDMA writes by itself, if with an error. */
bool tq_core_awaits_answer(const struct tq_peer *peer);
/* Ends everything towards and from the peer with an error, because the connection to it has failed
 * for good. Posted operations (tokens) still end by tq_core_on_sent() and tq_core_on_rdma_done(),
 * with -EIO: until then the HCA may use their memory. */
void tq_core_on_peer_failed(struct tq_core *core, struct tq_peer *peer);
/* Reports that all SRQs that srq_put() withdrew are gone: nothing writes to receives that were in
 * one. */
void tq_core_on_srqs_gone(struct tq_core *core);
/* Ends receives from TQ_ANY_SOURCE, because the device has failed, and with it all peers. The
 * network reports each of these, too. */
void tq_core_on_broken(struct tq_core *core);

#endif
