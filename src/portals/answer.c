/* SPDX-License-Identifier: BSD-3-Clause */
#include "answer.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "handles.h"
#include "lib.h"
#include "op.h"
#include "peer.h"

static enum p4_tag answer_entry = P4_TAG_ENTRY, nothing = P4_TAG_NOTHING;

void *p4_answer_entry(void)
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
	p4_endpoint_count_answer();
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
		if (arrival->error)
			op->answer.fail = PTL_NI_UNDELIVERABLE;
		p4_op_on_answer(op);
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

const struct tq_match_ops p4_answer_ops = {match, unexpected, done};
