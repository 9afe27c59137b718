/* SPDX-License-Identifier: BSD-3-Clause */
/* TGT QPs for other processes' lanes. */
#ifndef TQ_NET_TARGET_H
#define TQ_NET_TARGET_H

#include "net/lanes/lane.h"
#include "net/peers/oob.h"

/* A TGT QP of another process's lane, and the answer that was given for it. */
struct tq_target {
	/* The requester's nonce, and the txid of its request. */
	struct tq_target_key {
		uint64_t nonce, txid;
	} key;
	struct tq_link *link;
	enum tq_lane_kind kind;
	struct ibv_qp *qp;
	struct tq_oob_rep rep;
	UT_hash_handle hh; /* tq_connections.targets */
};

/* Handles a request for a lane to this process. */
void tq_target_on_request(struct tq_net *net, const struct tq_oob_req *req);
/* Answers the requests that were kept for a link which has become a peer's. */
void tq_targets_answer_kept(struct tq_net *net, struct tq_link *link);
/* Drops the link's TGT QPs; NULL: all. */
void tq_targets_drop(struct tq_net *net, const struct tq_link *link);

#endif
