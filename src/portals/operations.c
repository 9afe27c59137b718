/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's functions that start operations, at once or when they are triggered. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "ct.h"
#include "handles.h"
#include "map.h"
#include "ni.h"
#include "op.h"
#include "peer.h"

/* When an operation is to start. */
struct start {
	bool triggered;
	ptl_handle_ct_t ct;
	ptl_size_t threshold;
};
static const struct start now = {0};

/* Finds a memory descriptor, and checks that the operation's part of it is in it. */
static bool find_part(ptl_handle_md_t handle, ptl_size_t offset, ptl_size_t length,
		      struct p4_part *part)
{
	struct p4_md *md = p4_handle_get(handle, P4_MD);

	if (!md || offset > md->region.length || length > md->region.length - offset)
		return false;
	*part = (struct p4_part){md, offset};
	return true;
}

/* Checks the arguments of an operation, and finds its interface and process. */
static int check(struct p4_op *op, const struct p4_md *md, ptl_process_t target)
{
	int rc;

	op->ni = md->ni;
	if (op->pt > (ptl_pt_index_t)op->ni->limits.max_pt_index ||
	    op->length > op->ni->limits.max_msg_size)
		return PTL_ARG_INVALID;
	op->peer = p4_map_peer(op->ni, target, &rc);
	return op->peer ? PTL_OK : rc;
}

static int check_atomic(const struct p4_op *op)
{
	const ptl_ni_limits_t *limits = &op->ni->limits;
	ptl_size_t most =
		op->kind == P4_ATOMIC ? limits->max_atomic_size : limits->max_fetch_atomic_size;
	size_t size = p4_atomic_type_size(op->datatype);
	bool swap = op->operation >= PTL_SWAP;

	if (!p4_atomic_is_valid(op->operation, op->datatype) || swap != (op->kind == P4_SWAP))
		return PTL_ARG_INVALID;
	if (op->length % size || op->length > most)
		return PTL_ARG_INVALID;
	/* All swaps but the plain one are of one item. */
	if (op->operation > PTL_SWAP && op->length > size)
		return PTL_ARG_INVALID;
	return PTL_OK;
}

/* Where an operation's data are, by handles. */
struct place {
	ptl_handle_md_t md;
	ptl_size_t offset;
};

/* Checks all arguments, and finds the objects that they name. Returns PTL_OK or another code. */
static int prepare(struct p4_op *op, ptl_process_t target, const struct place *put,
		   const struct place *get, const struct start *start, struct p4_ct **ct)
{
	const struct p4_md *md;
	int rc;

	if ((put && !find_part(put->md, put->offset, op->length, &op->put)) ||
	    (get && !find_part(get->md, get->offset, op->length, &op->get)))
		return PTL_ARG_INVALID;
	md = put ? op->put.md : op->get.md;
	if (put && get && op->get.md->ni != md->ni)
		return PTL_ARG_INVALID;
	/* An acknowledgement needs a place. */
	if (op->ack_req > PTL_OC_ACK_REQ || (op->ack_req == PTL_ACK_REQ && md->eq == PTL_EQ_NONE) ||
	    (op->ack_req == PTL_CT_ACK_REQ && md->ct == PTL_CT_NONE))
		return PTL_ARG_INVALID;
	rc = check(op, md, target);
	if (!rc && op->kind != P4_PUT && op->kind != P4_GET)
		rc = check_atomic(op);
	*ct = NULL;
	if (rc || !start->triggered)
		return rc;
	return p4_ct_find_trigger(op->ni, start->ct, start->threshold, ct);
}

/* Copies data that the user may change as soon as the call returns (PTL_MD_VOLATILE). */
static int copy_volatile(struct p4_op *op)
{
	const struct p4_md *md = op->put.md;

	if (!md || !(md->options & PTL_MD_VOLATILE))
		return PTL_OK;
	if (op->length > op->ni->limits.max_volatile_size)
		return PTL_ARG_INVALID;
	return p4_op_copy_data(op) ? PTL_OK : PTL_NO_SPACE;
}

static void run_triggered(struct p4_work *work)
{
	struct p4_op *op = (struct p4_op *)((char *)work - offsetof(struct p4_op, trigger.work));
	struct p4_ni *ni = op->ni;

	p4_peer_start(op->peer, op);
	p4_ct_end_start(ni);
}

static void drop_triggered(struct p4_trigger *trigger)
{
	p4_op_free((struct p4_op *)((char *)trigger - offsetof(struct p4_op, trigger)));
}

/* Starts a copy of the operation `like`, or has it triggered; `put` and `get` may be NULL. Returns
 * a code of Portals. */
static int submit(const struct p4_op *like, ptl_process_t target, const struct place *put,
		  const struct place *get, const struct start *start)
{
	struct p4_op *op;
	struct p4_ct *ct;
	int rc;

	if (!p4_enter())
		return PTL_NO_INIT;
	op = p4_op_new(like);
	if (!op) {
		p4_unlock();
		return PTL_NO_SPACE;
	}
	op->trigger.work.run = run_triggered;
	op->trigger.drop = drop_triggered;
	op->wants_answer = get || op->ack_req != PTL_NO_ACK_REQ;
	rc = prepare(op, target, put, get, start, &ct);
	/* A triggered operation sends what is there when it is triggered. */
	if (!rc && !ct)
		rc = copy_volatile(op);
	if (rc) {
		free(op);
		p4_unlock();
		return rc;
	}
	if (put)
		op->put.md->nops++;
	if (get)
		op->get.md->nops++;
	if (ct)
		p4_ct_trigger(ct, &op->trigger, start->threshold);
	p4_unlock_run();
	if (!ct)
		p4_peer_start(op->peer, op);
	return PTL_OK;
}

/* Makes an operation of its arguments, and starts it, or has it triggered. Arguments that
 * operations of its kind don't have are 0. */
static int operate(enum p4_op_kind kind, const struct place *put, const struct place *get,
		   ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target,
		   ptl_pt_index_t pt, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
		   void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand, ptl_op_t operation,
		   ptl_datatype_t datatype, const struct start *start)
{
	struct p4_op op = {
		.kind = kind,
		.length = length,
		.ack_req = ack_req,
		.pt = pt,
		.match_bits = match_bits,
		.remote_offset = remote_offset,
		.user_ptr = user_ptr,
		.hdr_data = hdr_data,
		.operation = operation,
		.datatype = datatype,
	};

	/* A plain swap has no operand. */
	if (kind == P4_SWAP && operation != PTL_SWAP) {
		if (!operand)
			return p4_is_init() ? PTL_ARG_INVALID : PTL_NO_INIT;
		memcpy(op.operand, operand, p4_atomic_type_size(datatype));
	}
	return submit(&op, target, put, get, start);
}

/* ---- the functions of <portals4.h> ---- */

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	   ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	   ptl_hdr_data_t hdr_data)
{
	return operate(P4_PUT, &(struct place){md_handle, local_offset}, NULL, length, ack_req,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL, 0,
		       0, &now);
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
		    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
		    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	return operate(P4_PUT, &(struct place){md_handle, local_offset}, NULL, length, ack_req,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL, 0,
		       0, &(struct start){true, trig_ct_handle, threshold});
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	   ptl_size_t remote_offset, void *user_ptr)
{
	return operate(P4_GET, NULL, &(struct place){md_handle, local_offset}, length,
		       PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset, user_ptr, 0,
		       NULL, 0, 0, &now);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		    ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
		    ptl_size_t threshold)
{
	return operate(P4_GET, NULL, &(struct place){md_handle, local_offset}, length,
		       PTL_NO_ACK_REQ, target_id, pt_index, match_bits, remote_offset, user_ptr, 0,
		       NULL, 0, 0, &(struct start){true, trig_ct_handle, threshold});
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	      ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	      ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	      ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype)
{
	return operate(P4_ATOMIC, &(struct place){md_handle, local_offset}, NULL, length, ack_req,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL,
		       operation, datatype, &now);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
		       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
		       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
		       ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	return operate(P4_ATOMIC, &(struct place){md_handle, local_offset}, NULL, length, ack_req,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL,
		       operation, datatype, &(struct start){true, trig_ct_handle, threshold});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
		   ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
		   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		   ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
		   ptl_op_t operation, ptl_datatype_t datatype)
{
	return operate(P4_FETCH, &(struct place){put_md_handle, local_put_offset},
		       &(struct place){get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL,
		       operation, datatype, &now);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
			    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
			    ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
			    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
			    ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
			    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	return operate(P4_FETCH, &(struct place){put_md_handle, local_put_offset},
		       &(struct place){get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, NULL,
		       operation, datatype, &(struct start){true, trig_ct_handle, threshold});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	    ptl_op_t operation, ptl_datatype_t datatype)
{
	return operate(P4_SWAP, &(struct place){put_md_handle, local_put_offset},
		       &(struct place){get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, operand,
		       operation, datatype, &now);
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
		     ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
		     ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		     ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
		     const void *operand, ptl_op_t operation, ptl_datatype_t datatype,
		     ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold)
{
	return operate(P4_SWAP, &(struct place){put_md_handle, local_put_offset},
		       &(struct place){get_md_handle, local_get_offset}, length, PTL_NO_ACK_REQ,
		       target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data, operand,
		       operation, datatype, &(struct start){true, trig_ct_handle, threshold});
}

int PtlAtomicSync(void)
{
	if (!p4_is_init())
		return PTL_NO_INIT;
	/* Threads of this process change the memory, one after the other, with this lock. */
	p4_lock();
	p4_unlock();
	return PTL_OK;
}
