/* SPDX-License-Identifier: BSD-3-Clause */
/* The INI QP of a lane, its states, and the requests for its connection. */
#ifndef TQ_NET_LANE_QP_H
#define TQ_NET_LANE_QP_H

#include "net/lanes/lane.h"

/* Makes a lane, with its QP in INIT. */
int tq_lane_make(struct tq_net *net, struct tq_node *node, enum tq_lane_kind kind,
		 struct tq_lane **lane);
/* Connects the lane to the TGT QP, which takes `rd_atomic` reads. */
int tq_lane_connect(struct tq_net *net, struct tq_lane *lane, uint32_t tgt_qpn, uint8_t rd_atomic);
/* Puts the lane into TQ_LANE_RETIRED, so that its work is flushed. */
void tq_lane_stop(struct tq_net *net, struct tq_lane *lane);
/* Frees a lane on which nothing is awaited. */
void tq_lane_destroy(struct tq_net *net, struct tq_lane *lane);

/*
 * Requests for lanes that wait for their answer. They go by datagrams, which get lost: so they are
 * repeated until the answer comes, or connect_timeout is over.
 */

/* `link` is asked to make, or to open, the TGT QP of `lane`. */
struct tq_connect_request {
	uint64_t txid;
	struct tq_link *link;
	struct tq_lane *lane;
	bool sent; /* with this txid, so its answer is taken */
	/* The request is sent again until its answer comes; until the lane is READY, only the first
	 * of its list is. */
	bool repeats;
	struct tq_timer timer; /* armed while it repeats */
	uint64_t backoff;      /* ns */
	uint64_t heard;        /* ns: of the last sign of life, or of the start */
	uint64_t silent;       /* ns without a sign of life before it repeated last */
	struct tq_connect_request *next, *prev; /* tq_lane.requests */
	UT_hash_handle hh;                      /* tq_connections.requests, by txid */
};

/* Asks the link's process for the lane. Returns 0 or -ENOMEM. */
int tq_connect_request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link);
/* Forgets a request. */
void tq_connect_request_free(struct tq_net *net, struct tq_connect_request *request);
/* Has the other requests of a lane, which has become READY by an answer, sent anew by
 * tq_connect_request_end(): they ask to open the TGT QP now, and the answers of processes that were
 * asked to make one are late. */
void tq_connect_requests_restart(struct tq_net *net, const struct tq_connect_request *answered);
/* Forgets a request, and sends those of its lane that can go now. */
void tq_connect_request_end(struct tq_net *net, struct tq_connect_request *request);
/* Forgets all requests of the link, and sends those of their lanes that can go now. */
void tq_connect_requests_drop(struct tq_net *net, struct tq_link *link);

#endif
