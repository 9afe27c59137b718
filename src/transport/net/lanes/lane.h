/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane is a connection (an INI QP) from here to a node. A lane is usable towards a process there
 * once that process has confirmed that it holds the TGT QP open. lane.c posts on lanes, and handles
 * the completions.
 */
#ifndef TQ_NET_LANE_H
#define TQ_NET_LANE_H

#include <string.h>

#include "net/adapter/objects.h"
#include "net/peers/oob.h"

#define TQ_LANE_BATCH 16 /* the most sends on a lane of which one is signalled */

enum tq_lane_state {
	TQ_LANE_CONNECTING, /* the TGT QP is being asked for */
	TQ_LANE_READY,
	TQ_LANE_RETIRED, /* in ERR; the lane goes when the last of its work is flushed */
	TQ_LANE_STATES
};

/* Handles the completion of what was posted on a lane. */
typedef void tq_lane_done(struct tq_net *net, struct tq_posted *posted, const struct ibv_wc *wc);

/* Queues a posted WQE once more, in front of those that wait. */
typedef void tq_lane_again(struct tq_net *net, struct tq_posted *posted);

/*
 * A WQE that was posted on a lane. An unsignalled send holds its slot in the completion queue until
 * a later one of the lane completes.
 */
struct tq_posted {
	struct tq_work work; /* first */
	struct tq_lane *lane;
	void *room;           /* control lane: the place for its inline data */
	tq_lane_done *done;   /* NULL: nobody wants to know of the completion */
	uint32_t covers;      /* WQEs of the lane that its completion stands for */
	bool awaited;         /* done() will be called, or was */
	struct tq_link *link; /* the link that it is for; may be gone by now */
	void *token; /* of done(). Direct: the protocol's, NULL: a marker; rdma.c: the operation */
	uint64_t size; /* rdma.c: of the chunk; lazy, from a copy: what that takes of the pool */
	/*
	 * Queues the WQE once more if it was not executed, because the target refused one before
	 * it, while its link is still there. NULL: the WQE need not be repeated. tq_lane_keep()
	 * sets this and the fields below.
	 */
	tq_lane_again *again;
	struct tq_sg copy; /* the source of its data; goes back when the WQE is complete */
	const void *bytes; /* of inline data */
	uint32_t len;
	unsigned flags;
	uint64_t addr; /* RDMA */
	uint32_t key;  /* RDMA */
};

struct tq_lane {
	struct tq_node *node;
	enum tq_lane_kind kind;
	enum tq_lane_state state;
	struct ibv_qp *qp;
	uint32_t psn;
	uint32_t tgt_qpn;
	uint32_t depth;          /* of its send queue */
	uint32_t posted;         /* WQEs in all */
	struct tq_posted *slots; /* the last of them, by number: tq_lane_slot(). `depth` at least;
				   hold lane: twice that, as new ones come while it reports */
	uint8_t *bytes;          /* control lane: room for the inline data of each */
	uint32_t mask;           /* slots, a power of two, less one */
	uint32_t batch;          /* sends of which one is signalled */
	/* Control lane: what all messages that go inline have in common. */
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint32_t outstanding; /* WQEs of which no completion, of theirs or a later one, was seen */
	uint32_t unsignalled; /* WQEs since the last signalled one */
	uint32_t awaited;     /* outstanding WQEs whose done() will be called */
	bool erred;           /* a completion with an error was seen */
	bool taken;           /* hold lane: a tuple has it */
	struct tq_link *user; /* hold lane that is taken: the process that it is used towards */
	struct tq_link **confirmed; /* the processes that hold the TGT QP open */
	uint32_t nconfirmed;        /* entries of `confirmed` */
	uint32_t confirmed_room;    /* its allocated size, in entries */
	/* List: those that wait for its TGT QP, or for a process to open it; the first asks for the
	 * TGT QP to be made. */
	struct tq_connect_request *requests;
	/* Hold lanes: in tq_node.hold; failed ones: in tq_connections.flushing. */
	struct tq_lane *next, *prev;
	/*
	 * Hold lane: most direct sends that nobody waits for (TQ_DIRECT_LAZY) are not signalled.
	 * The completion of a later one reports them, or that of a marker.
	 */
	uint32_t reported;   /* WQEs that were reported */
	uint32_t unreported; /* lazy ones behind the last that is awaited */
	bool marker;         /* a slot of the send CQ is kept for a marker */
	bool needs_flush;    /* the lane has failed, and no completion may come of its lazy sends */
};

/* Returns the name of the lane's kind, for sentences. */
const char *tq_lane_name(const struct tq_lane *lane);

/* Returns the place of WQE number `n` among the slots. */
static inline struct tq_posted *tq_lane_slot(const struct tq_lane *lane, uint32_t n)
{
	return &lane->slots[n & lane->mask];
}
/* Returns the place of what was posted last. */
static inline struct tq_posted *tq_lane_last(const struct tq_lane *lane)
{
	return tq_lane_slot(lane, lane->posted - 1);
}
/* Returns the place where tq_lane_keep() puts the inline data of the next WQE of a control lane.
 * The place is free unless the send queue is full. */
static inline void *tq_lane_room(const struct tq_lane *lane)
{
	return tq_lane_slot(lane, lane->posted)->room;
}

/* Prepares a new lane for posting: the places of its WQEs, and `wr`. */
void tq_lane_prepare(const struct tq_net *net, struct tq_lane *lane);

/* ---- posting ---- */

/*
 * Posts, with a slot in both queues, and decides whether to signal. `done` is called with the
 * completion, which is sure to come with `signal`. `done` may be NULL, but not on a hold lane,
 * where each WQE is reported. Returns 0, and tq_lane_last() is what was posted; -EAGAIN: there is
 * no room; -EIO.
 */
int tq_lane_post(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		 struct ibv_send_wr *wr, tq_lane_done *done, bool signal);
/* Posts a SEND with data to an SRQ, as tq_lane_post() does, signalled without TQ_DIRECT_LAZY;
 * flags: TQ_DIRECT_INLINE, TQ_DIRECT_LAZY. */
int tq_lane_send(struct tq_net *net, struct tq_lane *lane, struct tq_link *link, uint32_t srqn,
		 const struct tq_sg *sg, int nsg, unsigned flags, tq_lane_done *done);
/* Registers again() to repeat the last WQE if it isn't executed, and keeps its `len` bytes of
 * inline data (NULL: there are none) for that. Returns the WQE's place. */
static inline struct tq_posted *tq_lane_keep(struct tq_lane *lane, tq_lane_again *again,
					     const void *bytes, uint32_t len)
{
	struct tq_posted *slot = tq_lane_last(lane);

	slot->again = again;
	slot->len = len;
	slot->bytes = bytes ? slot->room : NULL;
	if (bytes && bytes != slot->room)
		memcpy(slot->room, bytes, len);
	return slot;
}
/* Posts a message that goes inline on a control lane, as tq_lane_post() and tq_lane_keep() do;
 * flags: TQ_CONTROL_SOLICITED. */
int tq_lane_post_inline(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
			uint32_t srqn, const void *bytes, uint32_t len, unsigned flags,
			tq_lane_again *again);
/* Posts a send from a copy, as tq_lane_post() and tq_lane_keep() do. Unless posting fails the lane
 * owns the copy, which goes back with the completion of this WQE or of a later one. */
int tq_lane_post_copy(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		      struct ibv_send_wr *wr, const struct tq_sg *copy, tq_lane_again *again,
		      struct tq_posted **posted);
/* Takes the copy from a posted WQE that is sent again. Returns one without a registration if the
 * WQE has no copy. */
struct tq_sg tq_lane_take_copy(struct tq_net *net, struct tq_posted *posted);
/* Posts a marker to a control or bulk lane: an empty RDMA write that names a control SRQ of the
 * link's, whose completion tells that the unsignalled sends before it have ended. Returns
 * tq_lane_post()'s result. */
int tq_lane_mark(struct tq_net *net, struct tq_lane *lane, struct tq_link *link);

/* Counts one more outstanding WQE whose done() will be called. */
static inline void tq_lane_await(struct tq_net *net, struct tq_lane *lane, struct tq_posted *posted)
{
	posted->awaited = true;
	lane->awaited++;
	net->scq.awaited++;
}
/* Counts one outstanding WQE less. */
static inline void tq_lane_unawait(struct tq_net *net, struct tq_lane *lane)
{
	lane->awaited--;
	net->scq.awaited--;
}

/* ---- a slot of the send CQ for the next marker of a hold lane, without which what has ended there
 * might never be reported ---- */

/* Keeps a slot for the lane. There is one: the lane has just released a slot, or
 * tq_cq_can_keep_marker() said so. */
void tq_lane_keep_marker(struct tq_net *net, struct tq_lane *lane);
/* Gives the lane's slot back, if it has one. */
void tq_lane_drop_marker(struct tq_net *net, struct tq_lane *lane);

/* ---- failures ---- */

/* Queues the WQEs behind number `wqe`, which the target has refused, once more if their links are
 * still there. */
void tq_lane_repeat(struct tq_net *net, struct tq_lane *lane, uint32_t wqe);
/* Ends the work of a failed lane whose completions can't come, because the adapter's queues are
 * broken or the lane needs_flush. To be called where no completion is being handled. */
void tq_lane_flush(struct tq_net *net, struct tq_lane *lane);
/* Gives the slots of a failed lane back whose completions have come (awaited == 0) and whose QP is
 * destroyed. To be called where no completion is being handled. */
void tq_lane_settle(struct tq_net *net, struct tq_lane *lane);

/* ---- the processes that a lane is usable towards ---- */

/* Returns true if the link's process has confirmed the lane. */
bool tq_lane_is_confirmed(const struct tq_lane *lane, const struct tq_link *link);
/* Takes note that the link's process has confirmed the lane. Returns 0 or -ENOMEM. */
int tq_lane_confirm(struct tq_lane *lane, struct tq_link *link);
/* Takes a link that goes off the lane. */
void tq_lane_unconfirm(struct tq_lane *lane, const struct tq_link *link);

/* ---- direct sends on hold lanes ---- */

/* Posts a direct send on a hold lane: the operation direct() of struct tq_net_ops. */
int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token);
/* Has lazy sends on a hold lane reported as soon as they are complete. */
void tq_lane_report(struct tq_net *net, struct tq_lane *lane);
/* Has each send of a hold lane that fails reported. To be called before tq_lane_stop(), because a
 * marker may be posted. */
void tq_lane_await_all(struct tq_net *net, struct tq_lane *lane);

#endif
