/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req.h - the requester: req.c drives a send queue, and req_ops.c has a function per opcode.
 */
#ifndef SHCA_REQ_H
#define SHCA_REQ_H

#include "fabric/epoch.h"
#include "resp.h"

/* ---------------------------------------------------------------- a send queue */

/* How the execution of a send queue stopped. */
enum shca_req_result {
	SHCA_REQ_EMPTY, /* the queue is empty, or may not be executed */
	SHCA_REQ_MORE,  /* the message is too large for the caller, or the turn is over */
	SHCA_REQ_WAIT,  /* the message waits until *when */
};

/* Kind of the executing thread: says how large a message it takes on, and which counter counts. */
enum shca_runner { SHCA_BY_CALLER, SHCA_BY_ENGINE };

/* Executes from the head of the send queue. The caller holds sq_lock, which is released while the
 * engine copies much data. */
enum shca_req_result shca_req_run(struct shca_qp *qp, enum shca_runner by, uint64_t *when);
/* Completes all posted sends with WR_FLUSH_ERR. The caller holds sq_lock, and no thread executes
 * the queue. */
void shca_req_flush(struct shca_qp *qp);
/* Ends the WQE at the head with a status. An error other than WR_FLUSH_ERR puts the QP into ERR, or
 * a UC or UD QP into SQE. The caller holds sq_lock and is inside an epoch. */
void shca_req_complete(struct shca_qp *qp, struct shca_swqe *wqe, enum ibv_wc_status status,
		       uint32_t byte_len);

/* Returns true if a message is a SEND, which takes a receive and writes no memory but that
 * receive's. */
static inline bool shca_req_is_send(const struct shca_swqe *wqe)
{
	const unsigned sends =
		1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_SEND_WITH_INV;

	return sends >> wqe->opcode & 1;
}

/* ---------------------------------------------------------------- one message */

enum shca_step {
	SHCA_STEP_DONE, /* the message is completed, well or not */
	SHCA_STEP_MORE, /* a part was copied */
	SHCA_STEP_WAIT, /* to be continued at req->when */
};

/* A message being executed. */
struct shca_req {
	struct shca_qp *qp;
	struct shca_swqe *wqe;
	struct shca_target target;
	struct shca_exec *exec;
	enum shca_runner by;
	uint64_t when; /* ns of shca_now(), after SHCA_STEP_WAIT */
};
/* Has the message continued at `when`. */
static inline enum shca_step shca_req_wait_until(struct shca_req *req, uint64_t when)
{
	req->when = when;
	return SHCA_STEP_WAIT;
}

/* Does the next part of req->wqe, by ibv_wr_opcode. req->target is found, and the runs of own
 * memory are in qp->copy. */
typedef enum shca_step (*shca_req_op)(struct shca_req *req);
extern const shca_req_op shca_req_ops[];

/* req_windows.c: requests about memory windows, which go to no peer. */
enum shca_step shca_req_bind(struct shca_req *req);
enum shca_step shca_req_invalidate(struct shca_req *req);
static inline bool shca_req_is_local(const struct shca_swqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

/* Completes the message with an error. */
enum shca_step shca_req_fail(struct shca_req *req, enum ibv_wc_status status);
/* Acts on an answer of the responder that is not ACK: waits, retries, or completes in error. */
enum shca_step shca_req_answer(struct shca_req *req, enum shca_answer answer);

#endif
