/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resp.h - the responder: what the target's adapter checks and does with a message of a connected
 * QP (IBA 9.7). It runs in the requester's process, on the target's entries in shared memory. All
 * inside an epoch.
 */
#ifndef SHCA_RESP_H
#define SHCA_RESP_H

#include "hca/queues/qp.h"

enum shca_answer {
	SHCA_ACK,
	SHCA_SILENT,     /* nobody answers: the requester's timer runs */
	SHCA_NAK_SEQ,    /* not the PSN that is expected: to be sent again */
	SHCA_RNR,        /* no receive is posted */
	SHCA_NAK_INV,    /* remote invalid request */
	SHCA_NAK_ACCESS, /* remote access error */
	SHCA_NAK_OP,     /* remote operation error */
};

/* Where a message of a QP goes. */
struct shca_target {
	struct shca_hca *hca;
	struct shca_qp_entry *qp;
	uint32_t qp_idx;
	struct shca_srq_entry *srq; /* NULL: the QP's own receive queue */
	uint32_t srq_idx;
	struct shca_rq *rq;
	struct shca_cq_entry *cq; /* of receives; NULL if it is gone */
	unsigned owner;           /* process slot: whose receives, memory and CQ */
	uint32_t pdn;             /* of the receives' memory */
	uint32_t rkey_pdn;        /* of the memory that an R_Key names */
	bool wakes_us;            /* after RNR: we are rung when a receive is posted */
};

/* Finds the target of *w and checks that it listens to qp. */
enum shca_answer shca_resp_find(struct shca_qp *qp, const struct shca_swqe *w,
				struct shca_target *t);
/* Fills in the rest of *t from t->hca and t->qp, which is no XRC target. */
void shca_resp_bind(struct shca_target *t);
/* Compares PSNs: ACK or NAK_SEQ. */
enum shca_answer shca_resp_psn(const struct shca_qp *qp, const struct shca_swqe *w,
			       const struct shca_target *t);

/* Sends the event of an SRQ in which fewer receives are posted than its limit, which is disarmed
 * then. */
void shca_resp_check_limit(struct shca_hca *hca, struct shca_srq_entry *s);
/* Takes a receive: its WQE slot. ACK or RNR (SILENT: the owner's memory is gone). */
enum shca_answer shca_resp_claim(struct shca_target *t, uint32_t *slot);
/* Notes, or forgets, that a message of several steps holds that receive: an end of the QP flushes
 * it. */
void shca_resp_hold(struct shca_target *t, uint32_t slot);
bool shca_resp_holds(const struct shca_target *t, uint32_t slot);
/* True if it was still held: it is the caller's to complete. */
bool shca_resp_unhold(struct shca_target *t, uint32_t slot);
/* Completes a receive that a QP holds with WR_FLUSH_ERR, if it holds one. Any process; the QP can't
 * be receiving. */
void shca_resp_flush_held(struct shca_hca *hca, struct shca_qp_entry *qp);

/*
 * Where `len` bytes go in a claimed receive. ACK with runs, or the error: the receive is completed
 * in error then and the target QP is in ERR.
 */
enum shca_answer shca_resp_scatter(struct shca_target *t, struct shca_qp *qp, uint32_t slot,
				   uint64_t len, struct shca_run *runs, unsigned *n);
/* Completes a claimed receive in error, and the target QP with it: what to answer. */
enum shca_answer shca_resp_receive_failed(struct shca_target *t, struct shca_qp *qp, uint32_t slot,
					  enum ibv_wc_status status);
/* The memory that an RDMA or atomic request names; on an error the target QP is in ERR. Without
 * data only the QP's own flags matter. */
enum shca_answer shca_resp_rkey(struct shca_target *t, const struct shca_swqe *w, uint64_t len,
				uint32_t access, struct shca_run *run);

/* A message that travels in its completion. */
struct shca_cqe_payload {
	const struct shca_run *runs; /* own memory */
	uint16_t bounce;             /* of shca_cq_carries() */
};

/* Completes a receive; cargo: the whole message, or NULL if it is where it belongs. */
enum shca_answer shca_resp_complete(struct shca_target *t, struct shca_qp *qp,
				    const struct shca_swqe *w, uint32_t slot,
				    enum ibv_wc_status status, uint32_t len,
				    const struct shca_cqe_payload *payload);

/* Makes a time monotonic per QP: completions of one QP are seen in order. */
uint64_t shca_in_order(_Atomic uint64_t *last, uint64_t at);

#endif
