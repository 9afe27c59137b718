/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * req.h - between req.c, which drives a send queue, and req_ops.c, which has a function per opcode.
 */
#ifndef SHCA_REQ_H
#define SHCA_REQ_H

#include "resp.h"

/* What became of the message at the head. */
enum shca_step {
	SHCA_STEP_DONE, /* completed, well or not */
	SHCA_STEP_MORE, /* a part was moved */
	SHCA_STEP_WAIT, /* again at r->when */
};

/* A message being executed. */
struct shca_req {
	struct shca_qp *qp;
	struct shca_swqe *w;
	struct shca_target t;
	struct shca_exec *exec;
	enum shca_runner by;
	uint64_t when;
};

/* Per ibv_wr_opcode: does the next part of r->w. r->t is found; our own runs are in qp->copy. */
typedef enum shca_step (*shca_req_op)(struct shca_req *r);
extern const shca_req_op shca_req_ops[];

/* Acts on an answer that is not ACK: waits, retries, or completes in error. */
enum shca_step shca_req_answer(struct shca_req *r, enum shca_answer a);

#endif
