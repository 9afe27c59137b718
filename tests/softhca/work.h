/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work.h - posting, and waiting for completions and events with a deadline.
 */
#ifndef T_WORK_H
#define T_WORK_H

#include "qp.h"

/* Returns a signalled send request; change the other fields as needed. */
struct ibv_send_wr t_wr(enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int n);
/* Returns a request for RDMA or an atomic (set compare_add and swap for an atomic). */
struct ibv_send_wr t_rdma(enum ibv_wr_opcode op, uint64_t wr_id, struct ibv_sge *sge, int n,
			  uint64_t raddr, uint32_t rkey);
/* Post one request or a list. The _try forms return the verb's value. */
void t_post(struct t_qp *qp, struct ibv_send_wr *wr);
int t_post_try(struct t_qp *qp, struct ibv_send_wr *wr);
void t_send(struct t_qp *qp, uint64_t wr_id, struct ibv_sge sge);
void t_recv(struct t_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n);
int t_recv_try(struct t_qp *qp, uint64_t wr_id, struct ibv_sge *sge, int n);
void t_srq_recv(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int n);
int t_srq_recv_try(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int n);

/* ---- completions and events ---- */

/* Takes exactly n completions, in the order in which they come. Fails after the deadline. */
void t_poll(struct ibv_cq *cq, struct ibv_wc *wc, int n);
/* Takes the next completion, which must have that wr_id and status. */
struct ibv_wc t_next_at(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			const char *file, int line);
#define t_next(cq, wr_id, status) t_next_at((cq), (wr_id), (status), __FILE__, __LINE__)
/* Takes the next completion, which must be a success with that wr_id and opcode. */
#define t_done(cq, wr_id, op)                                                \
	do {                                                                 \
		struct ibv_wc t_done_wc = t_next(cq, wr_id, IBV_WC_SUCCESS); \
		t_eq(t_done_wc.opcode, op);                                  \
	} while (0)
/* Checks that no completion comes within ms milliseconds. */
void t_none(struct ibv_cq *cq, int ms);
/* Checks that the CQ is empty now. */
void t_empty(struct ibv_cq *cq);

/* Waits for fd to be readable. Returns false if ms pass first. */
bool t_readable(int fd, int ms);
/* Returns the next asynchronous event, acknowledged. */
struct ibv_async_event t_event(struct ibv_context *ctx);
/* Returns the next event about this QP. Fails unless it is one of those whose bit (1 << type) is in
 * mask. */
enum ibv_event_type t_qp_event(struct t_qp *qp, unsigned mask);
/* Takes and acknowledges all events that are there now. */
void t_drain_events(struct ibv_context *ctx);

#endif
