/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for lanes that wait for their answer. They go by datagrams, which get lost: so they are
 * repeated until the answer comes, or connect_timeout is over.
 */
#ifndef TQ_NET_REQUEST_H
#define TQ_NET_REQUEST_H

#include "net/lanes/lane.h"

/* `link` is asked to make, or to open, the TGT QP of `lane`. */
struct tq_request {
	uint64_t txid;
	struct tq_link *link;
	struct tq_lane *lane;
	bool sent; /* with this txid, so its answer is taken */
	/* The request is sent again until its answer comes; until the lane is READY, only the first
	 * of its list is. */
	bool repeats;
	struct tq_timer timer;          /* armed while it repeats */
	uint64_t backoff;               /* ns */
	uint64_t heard;                 /* ns: of the last sign of life, or of the start */
	uint64_t silent;                /* ns without a sign of life before it repeated last */
	struct tq_request *next, *prev; /* tq_lane.requests */
	UT_hash_handle hh;              /* tq_connections.requests, by txid */
};

/* Asks the link's process for the lane. Returns 0 or -ENOMEM. */
int tq_request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link);
/* Forgets a request. */
void tq_request_free(struct tq_net *net, struct tq_request *request);
/* Has the other requests of a lane, which has become READY by an answer, sent anew by
 * tq_request_end(): they ask to open the TGT QP now, and the answers of processes that were asked
 * to make one are late. */
void tq_requests_restart(struct tq_net *net, const struct tq_request *answered);
/* Forgets a request, and sends those of its lane that can go now. */
void tq_request_end(struct tq_net *net, struct tq_request *request);
/* Forgets all requests of the link, and sends those of their lanes that can go now. */
void tq_requests_drop(struct tq_net *net, struct tq_link *link);

#endif
