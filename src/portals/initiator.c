/* SPDX-License-Identifier: BSD-3-Clause */
#include "initiator.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "ct.h"
#include "entry.h"
#include "handles.h"
#include "map.h"
#include "ni.h"

static bool is_reply(const struct p4_op *op)
{
	return op->kind == P4_GET || op->kind == P4_FETCH || op->kind == P4_SWAP;
}

void p4_initiator_free(struct p4_op *op)
{
	p4_assert_held();
	assert(op->cookie == PTL_INVALID_HANDLE);
	if (op->put.md)
		op->put.md->nops--;
	if (op->get.md)
		op->get.md->nops--;
	if (op->entry) {
		p4_entry_leave(op->entry, P4_ENTRY_REMOVED);
		op->entry->held = false;
		p4_entry_try_free(op->entry);
	}
	free(op->payload);
	free(op);
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

/* Posts the answer's event, which follows that of the send, and frees the operation. */
static void finish(struct p4_op *op)
{
	expect_none(op);
	if (op->wants_answer)
		post_answer(op);
	p4_initiator_free(op);
}

void p4_initiator_drop(struct p4_op *op)
{
	expect_none(op);
	p4_initiator_free(op);
}

void p4_initiator_on_sent(void *user, int error)
{
	struct p4_op *op = user;

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

void p4_initiator_fail_answer(struct p4_op *op)
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
		expect_none(
			op); /* p4_initiator_on_sent() finishes the operation, after its event */
}

/* ---- sending ---- */

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

bool p4_initiator_copy_data(struct p4_op *op)
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

void p4_initiator_fail(struct p4_op *op)
{
	p4_initiator_on_sent(op, -EIO);
}

void p4_initiator_send(struct p4_op *op)
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
	if (!ok || (op->kind == P4_SWAP && !op->payload && !p4_initiator_copy_data(op))) {
		p4_initiator_on_sent(op, -ENOMEM);
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
				  exact ? 0 : TQ_SEND_MATCHED, op, &req);
	if (rc)
		p4_initiator_on_sent(op, rc < 0 ? rc : 0);
leave:
	p4_lock();
	ni->nusers--;
	p4_unlock();
}

/* Changes a counting event, or a list. */
static void change(struct p4_op *op)
{
	struct p4_entry *entry = op->entry;
	struct p4_ct *ct;

	switch (op->kind) {
	case P4_ME_APPEND:
		op->entry = NULL;
		p4_entry_append(entry);
		break;
	case P4_ME_UNLINK:
		/* The thread may be the one that is to report the end of the entry's messages. */
		p4_entry_unlink(op->handle, false);
		break;
	default:
		p4_lock();
		ct = p4_handle_get(op->ct, P4_CT);
		if (ct && op->kind == P4_CT_INC)
			p4_ct_add(ct, op->value.success, op->value.failure);
		else if (ct)
			p4_ct_set(ct, op->value.success, op->value.failure);
		p4_unlock();
	}
	p4_lock();
	p4_initiator_free(op);
	p4_unlock();
}

void p4_initiator_run_triggered(struct p4_work *work)
{
	struct p4_op *op = (struct p4_op *)((char *)work - offsetof(struct p4_op, work));
	struct p4_ni *ni = op->ni;

	if (op->kind < P4_CT_INC)
		p4_peer_start(op->peer, op);
	else
		change(op);
	p4_lock();
	ni->nusers--;
	p4_unlock();
}

/* ---- answers ---- */

static enum p4_tag answer_entry = P4_TAG_ENTRY, nothing = P4_TAG_NOTHING;
static uint64_t nanswers; /* that have come; guarded by the library's lock */

uint64_t p4_initiator_take_answers(void)
{
	uint64_t n;

	p4_lock();
	n = nanswers;
	nanswers = 0;
	p4_unlock();
	return n;
}

void *p4_initiator_answer_entry(void)
{
	return &answer_entry;
}

static bool is_from_target(const struct p4_op *op, const struct tq_envelope *envelope)
{
	return p4_peer_is_sender(op->peer->key.nid, op->peer->key.pid, envelope);
}

/* Returns true if the answer can be one to the operation: a reply has as many bytes of data as it
 * says. */
static bool is_sane(const struct p4_op *op, const struct p4_wire_response *wire, uint64_t length)
{
	uint64_t mlength = le64toh(wire->mlength);

	return mlength <= op->length && length == (op->get.md ? mlength : 0) &&
	       wire->fail <= PTL_NI_SEGV && wire->list <= PTL_OVERFLOW_LIST;
}

/* Directs an answer to the operation that it names. */
static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	struct p4_wire_response wire;
	struct p4_op *op;

	(void)arg;
	take->buf = (struct tq_buf){0};
	take->user = &nothing;
	if (entry != &answer_entry)
		return TQ_PASS;
	memcpy(&wire, envelope->header, sizeof(wire));
	p4_lock();
	nanswers++;
	op = p4_handle_get(wire.cookie, P4_OP);
	if (!op || op->answer.expected || !is_from_target(op, envelope)) {
		p4_unlock();
		return TQ_TAKE_STAY;
	}
	op->answer.expected = true;
	if (!is_sane(op, &wire, envelope->length)) {
		op->answer.fail = PTL_NI_UNDELIVERABLE;
	} else {
		op->answer.mlength = le64toh(wire.mlength);
		op->answer.offset = le64toh(wire.offset);
		op->answer.fail = wire.fail;
		op->answer.list = wire.list;
		op->answer.silent = wire.flags & P4_SILENT;
		if (op->get.md)
			take->buf = p4_region_buf(&op->get.md->region, op->get.offset,
						  op->answer.mlength, &op->get_window);
	}
	take->user = &op->answer;
	p4_unlock();
	return TQ_TAKE_STAY;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	(void)arg;
	(void)envelope;
	(void)take;
	return TQ_DROP;
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	struct p4_op *op;

	(void)arg;
	p4_lock();
	switch (*(const enum p4_tag *)user) {
	case P4_TAG_ANSWER:
		op = (struct p4_op *)((char *)user - offsetof(struct p4_op, answer));
		op->answer.here = true;
		if (arrival->error)
			op->answer.fail = PTL_NI_UNDELIVERABLE;
		if (op->sent)
			finish(op);
		break;
	case P4_TAG_PEER:
		if (arrival->error != -ECANCELED)
			p4_peer_fail(user);
		break;
	default:
		break;
	}
	p4_unlock_run();
}

const struct tq_match_ops p4_initiator_ops = {match, unexpected, done};
