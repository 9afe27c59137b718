/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h - the life of a queue pair: creating it (qp_create.c), changing its state (qp_modify.c),
 * finding and ending it (qp.c).
 */
#ifndef SHCA_QP_H
#define SHCA_QP_H

#include "hca/queues/queue_pair.h"

/* Type of resource for which a parent domain's functions are asked: the memory of a send queue. */
#define SHCA_QP_MEMORY 0

/* Implement the libibverbs calls of the same names. */
struct ibv_qp *shca_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);

/* Returns this process's QP with that table index, if it still has that number; else NULL. */
struct ibv_qp *shca_qp_by_idx(struct shca_context *ctx, uint32_t idx, uint64_t number);
/* Ends a QP for its peers and gives its memory back; the struct stays. `left`: the context is being
 * closed, and nobody called ibv_destroy_qp(). */
void shca_qp_end(struct shca_qp *qp, bool left);

/* Lock this process's handles of target QPs: held from opening a QP until its handle is added, and
 * from removing a handle until the QP is closed. */
void shca_qp_lock_handles(void);
void shca_qp_unlock_handles(void);
/* Notes a new handle of a target QP in that context: events of this process's target QPs on that
 * HCA go there from now on. Needs the lock of the handles. */
void shca_qp_note_tgt_handle(struct shca_context *ctx);
/* Forgets holders of the lock of the handles, in a forked child. */
void shca_qp_reset(void);

/* Makes the object known by its table index; several handles of one target QP may be. Returns 0 or
 * -ENOMEM. */
int shca_qp_add_handle(struct shca_qp *qp);
/* Frees the memory of the send queue, which was allocated in that domain. */
void shca_qp_free_sq(struct shca_qp *qp, struct shca_pd *pd);
/* Drops the QP's completions from its CQs. The QP has nothing in flight. */
void shca_qp_purge(struct shca_qp *qp);
/* Gives the receive of an interrupted message back to the SRQ. The QP has nothing in flight. */
void shca_qp_drop_held(struct shca_qp *qp);

#endif
