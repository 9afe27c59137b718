/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an endpoint's network. The endpoint's lock guards all of net/, unless a comment
 * says otherwise.
 *
 * A *node* (link.h) is what an HCA's port and an XRC domain make together. A *lane* (lane.h) is a
 * connection from here to a node, which is usable towards a process there once the process has
 * confirmed it. A *link* (link.h) is the network's side of a peer.
 */
#ifndef TQ_NET_OBJECTS_H
#define TQ_NET_OBJECTS_H

#include <stdatomic.h>

#include <tupleq/tupleq.h>

#include "base/handles.h"
#include "base/lock.h"
#include "base/params.h"
#include "base/stats.h"
#include "base/util.h"
#include "net/adapter/address.h"
#include "net/adapter/cq.h"
#include "net/adapter/device.h"
#include "net/adapter/timers.h"
#include "proto/common/msg.h"
#include "proto/common/net_ops.h"

struct tq_inbox;
struct tq_link;
struct tq_look_ups;
struct tq_node;
struct tq_posted;

enum tq_class { TQ_SMALL, TQ_LARGE, TQ_CLASSES }; /* of control messages, by length */

/* The files for connections: links, requests, targets, and how they end. */
struct tq_connections {
	struct tq_address address;
	uint64_t nonce;

	/* Links. */
	struct tq_link *links;     /* hash by nonce */
	uint32_t nunnamed;         /* of these, not peers */
	struct tq_handles numbers; /* links by their number here */

	/* Requests for lanes: lane_qp.c, lane_connect.c. */
	struct tq_connect_request *requests; /* hash by txid */
	uint64_t txid;                       /* of the last request */
	struct tq_link *wants_hold;          /* list: links that found no free hold lane */
	bool hold_freed;                     /* a hold lane became free since */
	struct tq_lane *flushing; /* list: retired lanes, which go when their work is flushed */

	/* Other processes' lanes: target.c. */
	struct tq_target *targets; /* hash by key */

	/* Failures. */
	struct tq_link *failing; /* list: marked by tq_link_fail(), not torn down yet */
	struct tq_link *broken;  /* list: torn down, and not reported yet */

	/* Goodbyes: links.c. */
	uint32_t bye_acks_due; /* processes that wait for this one's BYE_ACK */

	/* Keepalive: connections.c. No timer is used, because the check is for programs that poll:
	 * it wakes no thread, and reads the clock once in many polls. */
	uint64_t check_due; /* ns */
	uint32_t polls;
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
	struct tq_mem *mem;       /* mem.h */
	struct tq_copies *copies; /* copy.h */
	struct tq_srqs *srqs;     /* srq.c */

	/* lane.c */
	uint64_t copies_sent; /* bytes that sends under way, of which few are signalled, occupy in
				 the pool of copies */
	void (*lane_error)(struct tq_net *net, struct tq_lane *lane, uint32_t wqe,
			   const struct ibv_wc *wc); /* tq_lane_error() */

	struct tq_inbox *inbox;     /* inbox.c; NULL: there is none */
	uint32_t inbox_turns;       /* polls that found messages in it */
	bool inbox_said;            /* true if the log says that a peer's can't be attached */
	bool memory_said;           /* true if the log says that a peer's memory can't be read */
	struct tq_control *control; /* control.c */
	struct tq_banks *banks;     /* bank.h */
	/* credit.c */
	struct tq_link *senders; /* list: links that have a bank or a ring */
	struct tq_link *owing;   /* list: links to which CREDIT may be due */
	bool credit_waits;       /* some of them could not be sent */
	bool backpressured;      /* unexpected data are at their limit */
	/* post.c */
	struct tq_link *waiting;         /* list: links with a backlog */
	struct tq_backlog *backlog_free; /* stack: entries for the next messages that wait */
	uint32_t nbacklog_free;

	struct tq_rdma *rdma;      /* rdma.c */
	struct tq_node *bulk_busy; /* rdma.c: list: nodes with a queue */
	struct tq_link *putting;   /* peer_memory.c: list: links with puts that wait */

	struct tq_oob *oob;                 /* oob.c */
	struct tq_look_ups *look_ups;       /* look_up.c; NULL: nobody looks up */
	atomic_bool found_waiting;          /* look_up.c: there are results */
	struct tq_timers timers;            /* timers.c */
	struct tq_timer remind_timer;       /* net.c: for direct messages that wait */
	struct tq_connections *connections; /* NULL: not open */
	struct tq_node *nodes;              /* hash by key */
	uint32_t works;                     /* calls of tq_net_work() */
	const char *broken_reason;          /* why nothing goes any more; NULL: all is well */
	bool broken_handled;                /* all that was under way then has ended */
	uint64_t failures;                  /* links that failed */
	/* Datagrams that are due, or that are repeated until their answer comes. */
	uint32_t ndatagrams;
};

/* Takes note that the adapter, or a queue of it, has failed for good: at the next tq_net_work() all
 * ends. */
static inline void tq_net_set_broken(struct tq_net *net, const char *why)
{
	if (!net->broken_reason)
		net->broken_reason = why;
}

#endif
