/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network of an endpoint, with verbs: what its files share. All of it is guarded by the
 * endpoint's lock, but for what says otherwise.
 *
 * A *node* is what an HCA's port and an XRC domain make together. A *lane* is a connection (an INI
 * QP) from here to a node; it is usable towards a process there once that process has confirmed
 * that it holds the TGT QP open. A *link* is the network's side of a peer.
 */
#ifndef TQ_NET_NET_H
#define TQ_NET_NET_H

/* The library is built with hidden visibility. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#include <assert.h>
#include <uthash.h>
#include <utlist.h>

#include "base/log.h"
#include "base/params.h"
#include "base/stats.h"
#include "proto/core.h"
#include "proto/msg.h"
#include "proto/wire.h"

struct tq_net;
struct tq_node;
struct tq_link;

/* ---- device.c: the device in use, opened and checked; constant after that ---- */

struct tq_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint8_t port_num;
	int gid_index; /* -1: no global route */
	union ibv_gid gid;
	uint16_t pkey; /* and the index it has */
	uint16_t pkey_index;
	enum ibv_mtu mtu;
	uint32_t max_inline; /* that an INI QP takes */
	bool odp;            /* implicit ODP on XRC is there and wanted */
	char text[160];      /* tq_device_text() */
};

/* ---- cq.c: completions ---- */

struct tq_work;
typedef void tq_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc);

/*
 * What a completion's wr_id points to: each kind of work request embeds one. Receives (rcq) and
 * sends (scq) have their own queue; each WQE that is posted has its slot reserved before
 * (tq_cq_reserve()), and an unsignalled send's is held by the next signalled one. The slots of
 * sends on lanes are given back by cq.c; those of all else (receives, UD) belong to done(), which
 * gives them back or posts again in them.
 */
struct tq_work {
	tq_done *done;
	struct tq_lane *lane; /* sends on a lane; else NULL */
	uint32_t covers;      /* WQEs of it that its completion stands for */
	bool awaited;         /* its completion is looked for at each poll */
};

struct tq_cq {
	struct ibv_cq *cq;
	uint32_t size, used; /* slots; reserved ones */
	uint32_t most;       /* that it may grow to */
	int ask;             /* completions that the next poll asks for */
	/* scq: */
	uint32_t awaited; /* sends on lanes whose done() will be called */
	uint32_t skipped; /* polls without a look at it */
	bool look;        /* a queue is filling up, or full: the next poll looks at it */
	uint32_t held;    /* of those used: by hold lanes */
	/* rcq: */
	struct tq_net *net; /* that is told of its size; scq, which doesn't grow: NULL */
	bool drained;       /* the last poll left nothing in it */
	bool sweeping;      /* there may be completions of SRQs in it that are gone */
};

/* ---- conn.c: nodes, lanes, links ---- */

#define TQ_LANE_BATCH 16 /* at least every so many sends on a lane one is signalled */

enum tq_lane_kind { TQ_LANE_CONTROL, TQ_LANE_BULK, TQ_LANE_HOLD };
enum tq_lane_state {
	TQ_LANE_CONNECTING, /* the TGT QP is being asked for */
	TQ_LANE_READY,
	TQ_LANE_FAILED /* in ERR: its work is being flushed; it goes with the last of it */
};

/*
 * What was posted on a lane. When it was not executed, as the target refused what was posted before
 * it, and its link is still there, `again` queues it once more, in front of what waits (NULL: it
 * need not be repeated). tq_lane_keep() fills in what that needs.
 */
struct tq_posted {
	struct tq_work work;  /* first; done NULL: nobody is told of its completion */
	struct tq_link *link; /* towards whom; may be gone by now */
	void *token;          /* done's. Direct: the protocol's, NULL: a drain; rdma.c: operation */
	uint64_t size; /* rdma.c: of the chunk; lazy, from a copy: what that takes of the pool */
	void (*again)(struct tq_net *net, struct tq_posted *posted);
	struct tq_sg copy; /* that it is sent from, and that goes back when it is complete */
	const void *bytes; /* of inline data */
	uint32_t len;
	unsigned flags;
	uint64_t addr; /* RDMA */
	uint32_t key;
};

struct tq_lane {
	struct tq_node *node;
	enum tq_lane_kind kind;
	enum tq_lane_state state;
	struct ibv_qp *qp;
	uint32_t psn;
	uint32_t tgt_qpn;
	uint32_t depth;         /* of its send queue */
	uint32_t posted;        /* WQEs in all */
	struct tq_posted *ring; /* the last of them, by number: tq_lane_slot(). `depth` at least;
				   hold lane: twice that, as new ones come while it reports */
	uint8_t *bytes;         /* control lane: room for the inline data of each */
	uint32_t mask;          /* of their places, which are a power of two */
	uint32_t
		outstanding; /* WQEs in it whose completion (or that of a later one) was not seen */
	uint32_t unsignalled;       /* since the last signalled one */
	uint32_t awaited;           /* of those outstanding: whose done() will be called */
	bool erred;                 /* a completion with an error was seen */
	bool taken;                 /* hold lane: a tuple has it */
	struct tq_link *user;       /* and towards this process */
	struct tq_link **confirmed; /* the processes that hold the TGT QP open: nconfirmed, room */
	uint32_t nconfirmed, confirmed_room;
	struct tq_request *requests; /* conn.c: that wait for its TGT QP, or for a process to open
					it; the first asks for the TGT QP to be made */
	struct tq_lane *next,
		*prev; /* hold lanes: in its node's list; failed ones: in that of struct tq_conns */
	/*
	 * Hold lane: how many of its WQEs were reported. Of direct sends that nobody waits for
	 * (TQ_DIRECT_LAZY) most are not signalled: a later one's completion reports them, or that
	 * of a drain.
	 */
	uint32_t reported;
	uint32_t unreported; /* lazy ones behind the last that is awaited */
	bool mute;           /* it has failed, and of these no completion may come */
};

struct tq_node {
	struct tq_node_key {
		union ibv_gid gid; /* of the port; LID-routed InfiniBand: subnet prefix and port
				      GUID as well */
		uint64_t domain;   /* its struct tq_net's */
	} key;
	uint16_t lid;
	uint8_t mtu;
	struct tq_lane *control, *bulk; /* NULL: not asked for yet */
	struct tq_lane *hold;           /* list */
	uint32_t nhold;
	uint32_t nlinks, nlanes;     /* it goes with the last of them */
	struct tq_rdma_op *bulk_ops; /* rdma.c: queue; those not all posted come last */
	uint64_t bulk_bytes;         /* of what is posted */
	bool bulk_busy;              /* in rdma.c's list */
	struct tq_node *bulk_next, *bulk_prev;
	bool hold_full; /* a hold lane could not be made: no more are tried */
	bool no_bulk;   /* nor the bulk lane: the control lane stands in */
	UT_hash_handle hh;
};

enum tq_class { TQ_SMALL, TQ_LARGE, TQ_CLASSES };

#define TQ_CREDITS_MAX 255u /* of a sender in a class: a header's byte returns them all */

/* A control message that waits for the connection, credit or room. */
struct tq_backlog;

/* A write into its memory that waits for the connection or for room. */
struct tq_put;

/*
 * A control SRQ of each class and the buffers in them, for as many senders as their credits allow.
 * Two small buffers of each sender are for CREDIT messages.
 */
struct tq_bank {
	struct ibv_srq *srq[TQ_CLASSES];
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES];    /* bytes of a buffer */
	uint32_t depth[TQ_CLASSES];   /* buffers in the SRQ */
	uint32_t granted[TQ_CLASSES]; /* of these, to senders; never more than depth */
	struct tq_bounces *bounces[TQ_CLASSES];
	struct tq_bounce *used[TQ_CLASSES]; /* stack of buffers to be posted again */
	struct tq_bank *next;
};

struct tq_link {
	struct tq_peer *peer;
	struct tq_node *node;
	uint32_t ud_qpn, ud_qkey; /* where it answers connection requests */
	struct ibv_ah *ah;
	uint64_t nonce; /* a random number of its endpoint's: names it, and tells its lives apart */
	struct tq_contact *contact; /* conn.h: its address, what waits */
	struct tq_lane *ready[2]; /* its node's control and bulk lane, once it has confirmed them */

	/* As sender to it; given by its answer for the control lane. */
	bool connected;
	uint32_t conn; /* our number there */
	uint32_t srqn[TQ_CLASSES];
	uint32_t size[TQ_CLASSES]; /* bytes of its buffers */
	uint32_t credits[TQ_CLASSES];
	struct tq_backlog *backlog;                  /* FIFO */
	uint64_t backlog_bytes;                      /* of its messages with data */
	struct tq_link *waiting_next, *waiting_prev; /* control.c: links with a backlog */
	bool pressed;                                /* it asked for no more eager data */
	struct tq_put *puts;                         /* FIFO */
	struct tq_link *puts_next, *puts_prev;       /* put.c: links with puts that wait */

	/* As receiver from it. */
	struct tq_bank *bank; /* control SRQs that it uses; NULL: it has not connected */
	uint32_t here; /* its number here: index and check; given by node.c when the link is made */
	uint32_t granted[TQ_CLASSES];          /* credits that it has in all */
	uint32_t owed[TQ_CLASSES];             /* of these, to return */
	struct tq_link *from_next, *from_prev; /* credit.c: links that have a bank */
	bool leaving;                          /* we have said goodbye to it */
	bool promised;                         /* to send it nothing more: it may go */
	bool failed; /* by tq_link_fail(); control.c and rdma.c drop, and end with -EIO, what they
			hold of it when they are polled next */
	bool left;   /* it has said that it closes: no CREDIT to it any more */
	struct tq_link *next_owing; /* links to which CREDIT may have to be sent */
	bool owing;
	UT_hash_handle hh; /* by nonce */
};

struct tq_net {
	struct tq_core *core;
	struct tq_stats *stats;
	const struct tq_params *params;
	const struct tq_job *job;
	const struct tq_mr_cache *cache; /* NULL: none */
	struct tq_device dev;
	struct ibv_comp_channel *channel; /* rcq's (solicited) and scq's, for the service thread */
	struct tq_cq rcq, scq;
	struct ibv_xrcd *xrcd;
	int xrcd_fd;
	uint64_t domain; /* names the XRC domain among those of this port */
	struct tq_wire_limits limits;
	struct tq_mem *mem;         /* mem.c */
	struct tq_srqs *srqs;       /* srq.c */
	struct tq_control *control; /* control.c */
	uint64_t copies_sent;       /* bytes of copies that go back when sends are complete of which
				       few are signalled */
	struct tq_rdma *rdma;       /* rdma.c */
	struct tq_link *putting;    /* put.c: links with puts that wait */
	struct tq_oob *oob;         /* oob.c */
	struct tq_conns *conns;     /* conn.c */
	struct tq_node *nodes;      /* hash */
	uint32_t works;             /* calls of tq_net_work() */
	const char *broken;         /* nothing goes any more: why; NULL: all is well */
	bool broke;                 /* and all that was under way has ended */
	bool failing;               /* a peer has failed, and the protocol isn't through with it */
	uint64_t failures;          /* links that failed */
	uint32_t nrequests;         /* datagrams that wait for their answer, and are sent again */
};

/* ---- wire.c ---- */
extern const struct tq_wire_ops tq_net_ops;

int tq_net_open(
	struct tq_net *net); /* params, job, cache, core, stats are set; all else is made here */
void tq_net_close(struct tq_net *net);
/* Polls at most `budget` completions, and does what is due; returns how many events there were. */
int tq_net_poll(struct tq_net *net, int budget);
/* The second half of it: what is due besides completions. */
int tq_net_work(struct tq_net *net);

/* The adapter, or a queue of it, has failed for good: at the next tq_net_work() all ends. */
static inline void tq_net_broken(struct tq_net *net, const char *why)
{
	if (!net->broken)
		net->broken = why;
}

/* tq_core_peer_failed(); the tuple queues that the peer could reach are not used again. */
void tq_net_peer_failed(struct tq_net *net, struct tq_link *link, const char *why);

/* ---- device.c ---- */
/* For the end of a sentence that says why something can't be made: what to do about it, or "". */
const char *tq_limit_hint(int error);
int tq_device_open(struct tq_net *net);
void tq_device_close(struct tq_net *net);

/* Takes what the adapter has to say besides completions: a queue or all of it may have failed. */
void tq_device_events(struct tq_net *net);

/* ---- xrcd.c: the XRC domain that the job's processes on this node share; opened after the device,
 * before the SRQs ---- */
int tq_xrcd_open(struct tq_net *net);
void tq_xrcd_close(struct tq_net *net);

/* ---- cq.c ---- */
int tq_cqs_open(struct tq_net *net);
void tq_cqs_close(struct tq_net *net);
/* Makes room for n more; false: it has as many slots as it may have, or can have. */
bool tq_cq_grow(struct tq_cq *cq, uint32_t n);
/* Inline, as each message comes through here several times. */
static inline bool tq_cq_reserve(struct tq_cq *cq, uint32_t n)
{
	if (n > cq->size - cq->used && !tq_cq_grow(cq, n))
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
struct tq_reg *tq_mem_reg(struct tq_net *net, void *addr, uint64_t len, void **cookie);
void tq_mem_unreg(struct tq_net *net, struct tq_reg *reg, void *cookie);
/* Memory of the caller's, by a cache or without one: tq_mr_register() of an endpoint. Takes no
 * lock. tq_mr_deregister() is in mem.c, too. */
int tq_mem_register(struct tq_net *net, void *addr, size_t len, struct tq_mr **mr);
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
void tq_srq_put(struct tq_net *net, struct tq_srq *srq);
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
/* A buffer of the reserve for pieces, or false; and of that or the pool of copies, back to it. */
bool tq_control_piece_get(struct tq_net *net, uint64_t len, struct tq_sg *sg);
void tq_control_copy_put(struct tq_net *net, struct tq_sg *copy);
/* How much of the pool of copies it takes; 0: it is of one of the small reserves. */
uint64_t tq_control_copy_bytes(const struct tq_net *net, const struct tq_sg *copy);
/* Is there a reserve with nothing left? */
bool tq_posts_dry(const struct tq_net *net);
void tq_control_bounce_put(struct tq_net *net, struct tq_bounce *bounce);
void tq_control_press(struct tq_net *net, bool stop);
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
int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token);

/* ---- rdma.c: the bulk lane's queue: chunked RDMA, and direct sends whose receive is certain ----
 */
int tq_rdma_open(struct tq_net *net);
void tq_rdma_close(struct tq_net *net);
int tq_rdma_start(struct tq_net *net, struct tq_link *link, enum ibv_wr_opcode opcode,
		  const struct tq_sg *sg, int nsg, uint64_t addr, uint32_t rkey, void *token);
int tq_rdma_direct(struct tq_net *net, struct tq_link *link, uint32_t srqn, const struct tq_sg *sg,
		   int nsg, unsigned flags, void *token);
int tq_rdma_poll(struct tq_net *net);
/* The link goes: what is queued for it is dropped. */
void tq_rdma_forget(struct tq_net *net, struct tq_link *link);
bool tq_rdma_idle(struct tq_net *net); /* nothing is queued or under way */

/* ---- put.c: small writes into peers' memory, on the control lane ---- */
/* 0, -EIO, -ENOMEM; what can't go at once waits. */
int tq_put_start(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		 uint64_t addr, uint32_t key);
int tq_put_poll(struct tq_net *net);
void tq_put_forget(struct tq_net *net, struct tq_link *link);

/* ---- conn.c, fail.c, conns.c, node.c: connections ---- */
int tq_conns_open(struct tq_net *net);
void tq_conns_close(struct tq_net *net);
/*
 * The node's control or bulk lane, usable towards the link's process: NULL: not yet; it is then
 * asked for, and when it is there tq_control_connected() or tq_rdma_poll() sees it. A failed
 * connection ends in tq_link_fail().
 */
struct tq_lane *tq_conn_lane(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind);
/* A free hold lane, usable towards it: it is taken then. NULL: none now; one is asked for within
 * the limits (tq_core_lane_ready()). */
struct tq_lane *tq_conn_hold_get(struct tq_net *net, struct tq_link *link);
void tq_conn_hold_put(struct tq_net *net, struct tq_lane *lane);
/* A completion with an error on a lane (each one of a lane in TQ_LANE_FAILED may be reported, only
 * the first counts): fails the link that it was posted towards (of a control or bulk lane: the WQE
 * of that number), and if nobody knows what became of the others those that use it, with one
 * sentence that names the cause and the peer. */
void tq_lane_error(struct tq_net *net, struct tq_lane *lane, uint32_t wqe, const struct ibv_wc *wc);
/* All towards and from that process ends. Once. May be called within an operation: the protocol is
 * told at the next tq_conn_report(). */
void tq_link_fail(struct tq_net *net, struct tq_link *link, const char *why);
/* All of them, with all that is under way: net->broken says why. */
void tq_conn_break(struct tq_net *net);
/* The same for what it did wrong: names it. */
void tq_link_give_up(struct tq_net *net, struct tq_link *link, const char *what);
/*
 * The link, or all, are about to go: asks those that may still send us CREDIT to stop, since what
 * is late breaks their lane. tq_link_left(), tq_conn_left(): they have promised it, or a moment is
 * over.
 */
void tq_link_leave(struct tq_net *net, struct tq_link *link);
bool tq_link_left(const struct tq_link *link);
void tq_conn_leave(struct tq_net *net);
bool tq_conn_left(const struct tq_net *net);
/* Logs what has failed, and tells the protocol; returns how many links. Part of tq_conn_poll(); to
 * be called before the user hears of it in another way. */
int tq_conn_report(struct tq_net *net);
/* Retransmissions and timeouts; returns events. *next: ns until it wants to be called again
 * (UINT64_MAX: no need). */
int tq_conn_poll(struct tq_net *net, uint64_t *next);
/* An address as published; link by address. */
const void *tq_conn_address(struct tq_net *net, size_t *len);
int tq_link_add(struct tq_net *net, const void *address, size_t len, struct tq_peer *peer,
		struct tq_link **link);
/* The peer that was added with that address; NULL: none. */
struct tq_peer *tq_link_peer(struct tq_net *net, const void *address, size_t len);
void tq_link_remove(struct tq_net *net, struct tq_link *link);
/* The link that has this number here (struct tq_msg_hdr's conn); NULL: none. */
struct tq_link *tq_link_find(struct tq_net *net, uint32_t conn);

#endif
