/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of this process: their requests, and what becomes of them. */
#ifndef P4_OP_H
#define P4_OP_H

#include <stdbool.h>

#include <portals4.h>

#include "ct.h"
#include "endpoint.h"
#include "lib.h"
#include "md.h"
#include "wire.h"

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
	struct p4_send send;
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

	struct p4_trigger trigger;
	struct p4_op *peer_next, *peer_prev; /* p4_peer.waiting, then .answers */
};

/* Makes a copy of an operation, which has its arguments, for one start. Returns NULL without
 * memory. */
struct p4_op *p4_op_new(const struct p4_op *like);
/* Copies the data into the payload, a swap's after its operand. Returns false if there is no
 * memory. */
bool p4_op_copy_data(struct p4_op *op);
/* Sends the request to its process, whose address is there. The operation may be gone then. Called
 * without the lock. */
void p4_op_send(struct p4_op *op);
/* Ends an operation that can't be sent. Called without the lock. */
void p4_op_fail(struct p4_op *op);
/* Ends the wait for an answer that won't come. An answer that is already coming in ends by itself.
 * With the lock, as are the following. */
void p4_op_fail_answer(struct p4_op *op);
/* Ends the operation, whose answer is there, unless the end of the send is yet to come. */
void p4_op_on_answer(struct p4_op *op);
/* Frees an operation that was not started, or whose answer is no longer awaited. */
void p4_op_free(struct p4_op *op);

#endif
