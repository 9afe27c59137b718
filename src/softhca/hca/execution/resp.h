/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resp.h - the responder: what the target's adapter checks and does with a message of a connected
 * QP (IBA 9.7). The requester's process runs it on the target's entries in shared memory, inside an
 * epoch.
 */
#ifndef SHCA_RESP_H
#define SHCA_RESP_H

#include "hca/queues/queue_pair.h"

enum shca_answer {
	SHCA_ACK,
	SHCA_SILENT,     /* no answer comes: the requester's timer runs */
	SHCA_NAK_SEQ,    /* the PSN is not the expected one: the message is to be sent again */
	SHCA_RNR,        /* no receive is posted */
	SHCA_NAK_INV,    /* remote invalid request */
	SHCA_NAK_ACCESS, /* remote access error */
	SHCA_NAK_OP,     /* remote operation error */
};

/* The destination of a QP's message. */
struct shca_target {
	struct shca_hca *hca;
	struct shca_qp_entry *qp;
	uint32_t qp_idx;
	struct shca_srq_entry *srq; /* NULL: the QP's own receive queue */
	uint32_t srq_idx;
	struct shca_rq *rq;
	char *receives; /* memory of *rq (shca_rq_map()); NULL: the owner's memory is gone */
	struct shca_cq_entry *cq; /* of receives */
	unsigned owner;           /* process slot that owns the receives, their memory and the CQ;
				     SHCA_NO_PROC: the target was not found */
	uint32_t pdn;             /* PD of the receives' memory */
	uint32_t rkey_pdn;        /* PD of the memory that an R_Key names */
	bool wakes_us;            /* after RNR: this process is woken when a receive is posted */
};

/* Returns true if the base values of two P_Keys are equal and one of the two is a full member (IBA
 * 10.9.1.2). */
static inline bool shca_resp_pkeys_match(uint16_t a, uint16_t b)
{
	return (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}

/* Finds the target of *wqe and checks that it is connected to qp. Returns ACK, SILENT if no such
 * target may receive, or NAK_INV after the target QP was put into ERR, because its XRC domain has
 * no such SRQ. */
enum shca_answer shca_resp_find(struct shca_qp *qp, const struct shca_swqe *wqe,
				struct shca_target *target);
/* Fills in the rest of *target from its hca and qp, which is not an XRC target. */
void shca_resp_bind(struct shca_target *target);
/* Compares PSNs. Returns ACK or NAK_SEQ. */
enum shca_answer shca_resp_psn(const struct shca_qp *qp, const struct shca_swqe *wqe,
			       const struct shca_target *target);

/* Takes a receive and stores its WQE slot. Returns ACK, RNR, or SILENT if the owner's memory is
 * gone. */
enum shca_answer shca_resp_claim(struct shca_target *target, uint32_t *slot);
/* Notes in the target's entry that a message of several steps holds that receive, so that an end of
 * the QP flushes the receive. */
void shca_resp_hold(struct shca_target *target, uint32_t slot);
/* Returns true if the message still holds the receive. */
bool shca_resp_holds(const struct shca_target *target, uint32_t slot);
/* Removes that note. Returns true if the receive was still held: the caller completes it. */
bool shca_resp_unhold(struct shca_target *target, uint32_t slot);
/* Completes with WR_FLUSH_ERR the receive that a QP holds, if there is one. Any process may call
 * this while the QP can't receive. */
void shca_resp_flush_held(struct shca_hca *hca, struct shca_qp_entry *qp);

/*
 * Translates the first `len` bytes of a claimed receive into runs. Returns ACK, or the answer of
 * shca_resp_receive_failed() if the receive is too short or its keys don't allow the access.
 */
enum shca_answer shca_resp_scatter(struct shca_target *target, struct shca_qp *qp, uint32_t slot,
				   uint64_t len, struct shca_run *runs, unsigned *n);
/* Completes a claimed receive in error, and fails the target QP. Returns the answer: SILENT if the
 * QP has ended and the receive is no longer this message's. */
enum shca_answer shca_resp_receive_failed(struct shca_target *target, struct shca_qp *qp,
					  uint32_t slot, enum ibv_wc_status status);
/* Gives a claimed receive back, because the message that had it is lost. */
void shca_resp_give_back(struct shca_target *target, struct shca_qp *qp, uint32_t slot);
/* Translates the memory that an RDMA or atomic request names into a run of the process
 * target->owner. A request without data needs only the access flags of the QP. Returns ACK, SILENT
 * if the target has ended, or NAK_ACCESS after the target QP was put into ERR, unless it is a UC
 * QP. */
enum shca_answer shca_resp_rkey(const struct shca_target *target, const struct shca_swqe *wqe,
				uint64_t len, uint32_t access, struct shca_run *run);

/* Ends the binding of a window that a SEND names, whose data are in place or come with its
 * completion. Returns ACK, or fails the claimed receive: NAK_ACCESS, or SILENT if the target has
 * ended. */
enum shca_answer shca_resp_invalidate(struct shca_target *target, struct shca_qp *qp,
				      const struct shca_swqe *wqe, uint32_t slot);

/* A message that travels in its completion. */
struct shca_cqe_payload {
	const struct shca_run *runs; /* own memory */
	uint16_t bounce;             /* as shca_cq_carries() set it */
};

/* Completes a receive. `payload` is the whole message, or NULL if the data are in place. Returns
 * ACK, SILENT if the target has ended, or NAK_OP after the target QP was put into ERR, because its
 * CQ has overrun. */
enum shca_answer shca_resp_complete(struct shca_target *target, struct shca_qp *qp,
				    const struct shca_swqe *wqe, uint32_t slot,
				    enum ibv_wc_status status, uint32_t len,
				    const struct shca_cqe_payload *payload);

/* Makes a time monotonic per QP, so that completions of one QP are seen in order. Returns the later
 * of `at` and *last. */
uint64_t shca_resp_in_order(_Atomic uint64_t *last, uint64_t at);

#endif
