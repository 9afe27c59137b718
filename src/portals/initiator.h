/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator of operations: requests, and what becomes of them. */
#ifndef P4_INITIATOR_H
#define P4_INITIATOR_H

#include <stdbool.h>

#include <portals4.h>

#include "endpoint.h"
#include "lib.h"
#include "md.h"
#include "wire.h"

struct p4_entry;
struct p4_peer;

/* Part of a memory descriptor. */
struct p4_part {
	struct p4_md *md; /* NULL: none */
	ptl_size_t offset;
};

/* An answer from the target. */
struct p4_answer {
	enum p4_tag tag;
	bool here;     /* has come */
	bool expected; /* is on its way into the memory */
	ptl_size_t mlength, offset;
	ptl_ni_fail_t fail;
	ptl_list_t list;
	bool silent;
};

struct p4_op {
	enum p4_tag tag; /* of the send */
	struct p4_answer answer;
	enum p4_op_kind kind;
	struct p4_ni *ni;
	struct p4_peer *peer;
	bool wants_answer;       /* the target is to answer the request */
	ptl_handle_any_t cookie; /* names the operation in the answer, from its start on; then it is
				    in p4_peer.answers */
	bool sent;               /* the send of the request has ended */

	/* The arguments. */
	struct p4_part put, get; /* where the data come from and go to */
	ptl_size_t length, remote_offset;
	ptl_ack_req_t ack_req;
	ptl_pt_index_t pt;
	ptl_match_bits_t match_bits;
	void *user_ptr;
	ptl_hdr_data_t hdr_data;
	ptl_op_t operation;
	ptl_datatype_t datatype;
	unsigned char operand[P4_OPERAND];
	struct p4_window put_window, get_window;
	void *payload; /* of a swap: operand and data; of volatile memory: a copy */

	/* Until it is triggered: */
	ptl_size_t threshold;
	ptl_handle_ct_t ct; /* P4_CT_INC, P4_CT_SET */
	ptl_ct_event_t value;
	struct p4_entry *entry; /* P4_ME_APPEND */
	ptl_handle_me_t handle; /* P4_ME_UNLINK */

	struct p4_work work;
	struct p4_op *next, *prev;           /* p4_ct.triggered */
	struct p4_op *peer_next, *peer_prev; /* p4_peer.waiting, then .answers */
};

/* The functions of the context of answers. */
extern const struct tq_match_ops p4_initiator_ops;
/* Returns the `user` of the entry that takes all answers. */
void *p4_initiator_answer_entry(void);
/* Returns how many answers have come since the last call. Called without the lock. */
uint64_t p4_initiator_take_answers(void);

/* Runs an operation that was triggered. Called without the lock, as are p4_initiator_send(),
 * p4_initiator_fail() and p4_initiator_on_sent(). */
void p4_initiator_run_triggered(struct p4_work *work);
/* Sends the request to its process, whose address is there. The operation may be gone then. */
void p4_initiator_send(struct p4_op *op);
/* Copies the data into the payload, a swap's after its operand. Returns false if there is no
 * memory. */
bool p4_initiator_copy_data(struct p4_op *op);
/* Ends an operation that can't be sent. */
void p4_initiator_fail(struct p4_op *op);
/* Ends a send: `user` is the operation, which ends too unless its answer is yet to come. */
void p4_initiator_on_sent(void *user, int error);
/* Ends the wait for an answer that won't come. An answer that is already coming in ends by itself.
 * With the lock. */
void p4_initiator_fail_answer(struct p4_op *op);
/* Frees an operation that was started, after the endpoint. With the lock. */
void p4_initiator_drop(struct p4_op *op);
/* Frees an operation that was not started. With the lock. */
void p4_initiator_free(struct p4_op *op);

#endif
