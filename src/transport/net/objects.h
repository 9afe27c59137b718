/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network keeps. A *node* is what an HCA's port and an XRC domain make together. A *lane*
 * is a connection (an INI QP) from here to a node; it is usable towards a process there once that
 * process has confirmed that it holds the TGT QP open. A *link* is the network's side of a peer.
 */
#ifndef TQ_NET_OBJECTS_H
#define TQ_NET_OBJECTS_H

/* The library is built with hidden visibility. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include <tupleq/tupleq.h>

#include "base/handles.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/params.h"
#include "base/states.h"
#include "base/stats.h"
#include "proto/msg.h"
#include "proto/net_ops.h"

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
	uint32_t kept;    /* of those free: for the next drain of each hold lane */
	/* rcq: */
	struct tq_net *net; /* that is told of its size; scq, which doesn't grow: NULL */
	bool drained;       /* the last poll left nothing in it */
	bool sweeping;      /* there may be completions of SRQs in it that are gone */
};

/* ---- lane_connect.c: nodes, lanes, links ---- */

#define TQ_LANE_BATCH 16 /* at least every so many sends on a lane one is signalled */

enum tq_lane_kind { TQ_LANE_CONTROL, TQ_LANE_BULK, TQ_LANE_HOLD };
enum tq_lane_state {
	TQ_LANE_CONNECTING, /* the TGT QP is being asked for */
	TQ_LANE_READY,
	TQ_LANE_FAILED, /* in ERR: its work is being flushed; it goes with the last of it */
	TQ_LANE_STATES
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
	/* WQEs in it whose completion (or that of a later one) was not seen. */
	uint32_t outstanding;
	uint32_t unsignalled;       /* since the last signalled one */
	uint32_t awaited;           /* of those outstanding: whose done() will be called */
	bool erred;                 /* a completion with an error was seen */
	bool taken;                 /* hold lane: a tuple has it */
	struct tq_link *user;       /* and towards this process */
	struct tq_link **confirmed; /* the processes that hold the TGT QP open: nconfirmed, room */
	uint32_t nconfirmed, confirmed_room;
	struct tq_request *requests; /* lane_connect.c: that wait for its TGT QP, or for a process
					to open it; the first asks for the TGT QP to be made */
	/* Hold lanes: in its node's list; failed ones: in that of struct tq_connections. */
	struct tq_lane *next, *prev;
	/*
	 * Hold lane: how many of its WQEs were reported. Of direct sends that nobody waits for
	 * (TQ_DIRECT_LAZY) most are not signalled: a later one's completion reports them, or that
	 * of a drain.
	 */
	uint32_t reported;
	uint32_t unreported; /* lazy ones behind the last that is awaited */
	bool drain;          /* a slot of the send CQ is kept for that */
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
	struct ibv_ah *ah;              /* for datagrams; NULL: not made yet */
	int ah_error;                   /* errno of the last attempt */
	uint64_t ah_due;                /* of the next */
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

struct tq_net {
	const struct tq_lock *lock; /* of the endpoint; NULL in tests without one */
	struct tq_core *core;
	bool service;    /* the thread that calls is the service thread */
	tq_trace *trace; /* NULL: nobody traces */
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
	struct tq_net_limits limits;
	struct tq_mem *mem;         /* mem.c */
	struct tq_srqs *srqs;       /* srq.c */
	struct tq_control *control; /* control.c */
	uint64_t copies_sent;       /* bytes of copies that go back when sends are complete of which
				       few are signalled */
	struct tq_rdma *rdma;       /* rdma.c */
	struct tq_node *bulk_busy;  /* rdma.c: nodes with a queue (bulk_next) */
	struct tq_link *putting;    /* put.c: links with puts that wait */
	struct tq_oob *oob;         /* oob.c */
	struct tq_connections *connections; /* lane_connect.c */
	struct tq_node *nodes;              /* hash */
	uint32_t works;                     /* calls of tq_net_work() */
	const char *broken_reason;          /* nothing goes any more: why; NULL: all is well */
	bool broken_handled;                /* and all that was under way has ended */
	uint64_t failures;                  /* links that failed */
	uint32_t nrequests; /* datagrams that wait for their answer, and are sent again */
};

#endif
