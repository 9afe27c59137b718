/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.h - posting: from the user's work request to a WQE, and the decision which thread executes
 * it.
 */
#ifndef SHCA_POST_H
#define SHCA_POST_H

#include "req.h"

/* Implements ibv_post_send() and ibv_post_recv(). */
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Returns 0 if that opcode may be posted to this QP, else EINVAL or EOPNOTSUPP. */
int shca_post_check_opcode(const struct shca_qp *qp, enum ibv_wr_opcode op);
/* Returns true if that opcode, which may be posted, sends data, which may then be inline. */
bool shca_post_sends_data(enum ibv_wr_opcode op);
/* Copies the destination of a datagram into its WQE. */
void shca_post_set_ud(struct shca_swqe *wqe, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* Stores in a WQE the region and the key to bind a window to. Returns 0 or EOPNOTSUPP. */
int shca_post_set_bind(struct shca_swqe *wqe, const struct ibv_mw *mw, uint32_t key,
		       const struct ibv_mw_bind_info *info);
/* Executes posted work, or leaves it to the thread that executes this queue already. The caller
 * holds sq_lock. */
void shca_post_kick(struct shca_qp *qp);
/* Executes a send queue that is RUNNING, and hands the rest to the engine. The caller holds
 * sq_lock. */
void shca_post_run(struct shca_qp *qp, enum shca_runner by);

#endif
