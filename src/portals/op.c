/* SPDX-License-Identifier: BSD-3-Clause */
#include "op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "handles.h"
#include "ni.h"
#include "peer.h"

static bool is_reply(const struct p4_op *op)
{
	return op->kind == P4_GET || op->kind == P4_FETCH || op->kind == P4_SWAP;
}

/* ---- events ---- */

static void post_sent(struct p4_op *op, ptl_ni_fail_t fail)
{
	ptl_event_t event = {
		.type = PTL_EVENT_SEND,
		.user_ptr = op->user_ptr,
		.mlength = op->length,
		.rlength = op->length,
		.remote_offset = op->remote_offset,
		.ni_fail_type = fail,
	};

	if (op->put.md)
		p4_md_event(op->put.md, &event, PTL_MD_EVENT_CT_SEND, op->length);
}

static void post_answer(struct p4_op *op)
{
	const struct p4_answer *answer = &op->answer;
	ptl_event_t event = {
		.type = is_reply(op) ? PTL_EVENT_REPLY : PTL_EVENT_ACK,
		.user_ptr = op->user_ptr,
		.mlength = answer->mlength,
		.rlength = op->length,
		.remote_offset = answer->offset,
		.ni_fail_type = answer->fail,
		.ptl_list = answer->list,
	};

	if (answer->silent && !answer->fail)
		return;
	if (is_reply(op))
		p4_md_event(op->get.md, &event, PTL_MD_EVENT_CT_REPLY, answer->mlength);
	else if (op->ack_req == PTL_ACK_REQ)
		p4_md_event(op->put.md, &event, PTL_MD_EVENT_CT_ACK, answer->mlength);
	else
		p4_md_count(op->put.md, PTL_MD_EVENT_CT_ACK, answer->mlength, answer->fail);
}

/* Lets answers find the operation. */
static bool expect_answer(struct p4_op *op)
{
	p4_assert_held();
	op->cookie = p4_handle_new(P4_OP, op);
	if (op->cookie == PTL_INVALID_HANDLE)
		return false;
	DL_APPEND2(op->peer->answers, op, peer_prev, peer_next);
	return true;
}

static void expect_none(struct p4_op *op)
{
	if (op->cookie == PTL_INVALID_HANDLE)
		return;
	DL_DELETE2(op->peer->answers, op, peer_prev, peer_next);
	p4_handle_free(op->cookie);
	op->cookie = PTL_INVALID_HANDLE;
}

void p4_op_free(struct p4_op *op)
{
	p4_assert_held();
	expect_none(op);
	if (op->put.md)
		op->put.md->nops--;
	if (op->get.md)
		op->get.md->nops--;
	free(op->payload);
	free(op);
}

/* Posts the answer's event, which follows that of the send, and frees the operation. */
static void finish(struct p4_op *op)
{
	if (op->wants_answer)
		post_answer(op);
	p4_op_free(op);
}

static void on_sent(struct p4_send *send, int error)
{
	struct p4_op *op = (struct p4_op *)send;

	p4_lock();
	op->sent = true;
	post_sent(op, error ? PTL_NI_UNDELIVERABLE : PTL_NI_OK);
	if (error && !op->answer.here && !op->answer.expected) {
		op->answer.here = true;
		op->answer.fail = PTL_NI_UNDELIVERABLE;
	}
	if (op->answer.here || !op->wants_answer)
		finish(op);
	p4_unlock_run();
}

void p4_op_fail_answer(struct p4_op *op)
{
	p4_assert_held();
	/* Until its done() the answer uses the operation and writes to the user's memory. */
	if (op->answer.expected) {
		expect_none(op);
		return;
	}
	op->answer.fail = PTL_NI_UNDELIVERABLE;
	op->answer.here = true;
	if (op->sent)
		finish(op);
	else
		expect_none(op); /* on_sent() finishes the operation, after its event */
}

void p4_op_on_answer(struct p4_op *op)
{
	op->answer.here = true;
	if (op->sent)
		finish(op);
}

/* ---- sending ---- */

struct p4_op *p4_op_new(const struct p4_op *like)
{
	struct p4_op *op = malloc(sizeof(*op));

	if (!op)
		return NULL;
	*op = *like;
	op->send.end = on_sent;
	op->answer.tag = P4_TAG_ANSWER;
	op->cookie = PTL_INVALID_HANDLE;
	return op;
}

/* Returns the data of the request. */
static struct tq_buf data_of(struct p4_op *op)
{
	if (op->payload)
		return (struct tq_buf){.addr = op->payload,
				       .len = (op->kind == P4_SWAP ? P4_OPERAND : 0) + op->length};
	if (!op->put.md)
		return (struct tq_buf){0};
	return p4_region_buf(&op->put.md->region, op->put.offset, op->length, &op->put_window);
}

static struct p4_wire_request header_of(const struct p4_op *op)
{
	struct tq_locator self = p4_endpoint_locator();

	return (struct p4_wire_request){
		.hdr_data = htole64(op->hdr_data),
		.remote_offset = htole64(op->remote_offset),
		.rlength = htole64(op->length),
		.cookie = op->cookie == PTL_INVALID_HANDLE ? 0 : op->cookie,
		.uid = htole32(geteuid()),
		.nid = htole32(self.port),
		.pid = htole32(self.number),
		.kind = (uint8_t)op->kind,
		.ack_req = op->ack_req,
		.operation = op->operation,
		.datatype = op->datatype,
	};
}

bool p4_op_copy_data(struct p4_op *op)
{
	size_t operand = op->kind == P4_SWAP ? P4_OPERAND : 0;

	op->payload = malloc(operand + op->length + 1); /* never NULL for no bytes */
	if (!op->payload)
		return false;
	memcpy(op->payload, op->operand, operand);
	p4_region_read(&op->put.md->region, op->put.offset, (char *)op->payload + operand,
		       op->length);
	return true;
}

void p4_op_fail(struct p4_op *op)
{
	on_sent(&op->send, -EIO);
}

void p4_op_send(struct p4_op *op)
{
	bool exact = op->kind == P4_PUT && !op->remote_offset, ok;
	struct p4_ni *ni = op->ni;
	struct p4_wire_request header;
	struct tq_buf buf;
	struct tq_req *req;
	int rc;

	/* The contexts of an interface that is closing are about to go. */
	p4_lock();
	ok = !ni->closing && (!op->wants_answer || expect_answer(op));
	ni->nusers++;
	p4_unlock();
	if (!ok || (op->kind == P4_SWAP && !op->payload && !p4_op_copy_data(op))) {
		on_sent(&op->send, -ENOMEM);
		goto leave;
	}
	header = header_of(op);
	buf = data_of(op);
	/* In the context of answers an entry watches a process that owes an answer. */
	rc = op->wants_answer ? p4_peer_rank(op->peer, op->ni, P4_REPLY) : 0;
	if (rc >= 0)
		rc = p4_peer_rank(op->peer, op->ni, op->pt);
	if (rc >= 0)
		rc = tq_send_bits(op->ni->ctx[op->pt], rc, op->match_bits, &header, &buf,
				  exact ? 0 : TQ_SEND_MATCHED, &op->send, &req);
	if (rc)
		on_sent(&op->send, rc < 0 ? rc : 0);
leave:
	p4_lock();
	ni->nusers--;
	p4_unlock();
}
