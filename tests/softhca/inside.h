/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inside.h - the shared memory of the fabric that this process runs in, mapped once more, for tests
 * that read it, or write into it what no call would: garbage, and what a process leaves behind that
 * dies or is stopped at one instruction.
 */
#ifndef T_INSIDE_H
#define T_INSIDE_H

#include "fabric/fabric.h"
#include "util.h"

extern struct shca_fabric t_fab;
extern struct shca_proc *t_proc; /* entry of this process */
extern unsigned t_slot;          /* its index */

/* Maps the fabric and finds this process, which has opened a device. */
void t_inside_open(void);
void t_inside_close(void);

/* Return the entries of objects on the first adapter. */
struct shca_cq_entry *t_cq_entry(const struct ibv_cq *cq);
struct shca_qp_entry *t_qp_entry(const struct t_qp *qp);
/* Returns the slot of a position of a CQ of this process. */
struct shca_cqe *t_cq_slot(const struct ibv_cq *cq, uint64_t pos);
/* Returns the ring of a CQ of this process. */
struct shca_cq_ring *t_cq_ring(const struct ibv_cq *cq);
/* Returns the newest completion of a CQ, and waits for one if there is none yet. */
struct shca_cqe *t_cq_newest(const struct ibv_cq *cq);
/* Returns the WQE in a slot of a QP's receive queue. */
struct shca_rwqe *t_rwqe(const struct t_qp *qp, uint32_t slot);

#endif
