/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of contexts with match bits. An entry is a receive. While it waits it is where a receive
 * would be: in its tuple's queue, in the tuple's list, or else among the wildcards.
 */
#include "proto/receiver/entry.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "proto/common/prefix.h"
#include "proto/common/req.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple_table.h"

static void release_id(struct tq_entry *entry)
{
	if (entry->id)
		tq_handle_free(&entry->recv.req.core->entries, entry->id);
	entry->id = 0;
}

static void at_end(struct tq_recv_req *recv, int error)
{
	struct tq_entry *entry = tq_entry_of(recv);

	release_id(entry);
	if (entry->prefix)
		tq_prefix_put(recv->req.core, entry->prefix);
	entry->prefix = NULL;
	recv->at_end = NULL;
	tq_recv_req_end(recv, error);
}

struct tq_entry *tq_entry_new(struct tq_ctx *ctx, const struct tq_want *want,
			      const struct tq_buf *buf, void *user)
{
	struct tq_entry *entry = tq_req_new(ctx->core, TQ_REQ_ENTRY, sizeof(*entry));

	if (!entry)
		return NULL;
	*entry = (struct tq_entry){
		.recv = {.req = {.kind = TQ_REQ_ENTRY, .core = ctx->core, .user = user},
			 .state = TQ_RECV_REQ_POSTED,
			 .ctx = ctx,
			 .want = *want,
			 .buf = *buf,
			 .at_end = at_end},
		.ops = ctx->match_ops,
		.arg = ctx->match_arg,
	};
	ctx->nrecvs++;
	return entry;
}

bool tq_entry_name(struct tq_entry *entry)
{
	entry->id = tq_handle_new(&entry->recv.req.core->entries, entry);
	return entry->id;
}

void tq_entry_unlink(struct tq_entry *entry)
{
	struct tq_recv_req *recv = &entry->recv;

	release_id(entry);
	if (!entry->listed)
		return;
	entry->listed = false;
	if (recv->rx_tuple) {
		DL_DELETE(recv->rx_tuple->posted, recv);
		tq_rx_tuple_rest(recv->rx_tuple);
	} else {
		DL_DELETE(recv->ctx->wild, recv);
	}
}

void tq_entry_free(struct tq_entry *entry)
{
	entry->recv.req.detached = true;
	tq_recv_req_end(&entry->recv, 0);
}

/* ---- queues ---- */

bool tq_entry_prepare(struct tq_entry *entry)
{
	if (!entry->may_be_queued)
		return false;
	if (!entry->prefix)
		entry->prefix = tq_prefix_get(entry->recv.req.core);
	return entry->prefix;
}

const char *tq_entry_on_delivered(struct tq_entry *entry, uint64_t len, const char *error)
{
	struct tq_recv_req *recv = &entry->recv;
	const struct tq_rx_tuple *tuple = recv->rx_tuple;

	if (error) /* the length of a held message is known */
		return error;
	if (len < recv->ctx->prefix_len)
		return "it sent a message without its match bits to a tuple queue";
	recv->req.status.length = len - recv->ctx->prefix_len;
	if (recv->state == TQ_RECV_REQ_HELD)
		return NULL; /* its bits are known */
	entry->listed = false;
	release_id(entry);
	entry->bits = le64toh(entry->prefix->bits);
	if ((entry->bits & ~tuple->pair->mask) != tuple->tag)
		return "it sent a message to the queue of another tuple";
	entry->sender = tuple->pair->peer;
	entry->queue = true;
	recv->ctx->nqueue_matched++;
	TQ_COUNT(recv->req.core->stats, bits_direct);
	memcpy(entry->header, entry->prefix->header, recv->ctx->header_len);
	return NULL;
}

/* ---- the end of all ---- */

static void end_tuple(struct tq_rx_tuple *tuple, int error)
{
	struct tq_recv_req *recv;

	while ((recv = tuple->posted)) {
		tq_entry_unlink(tq_entry_of(recv));
		tq_recv_req_end(recv, error);
	}
	DL_FOREACH(tuple->in_srq, recv)
		recv->cancelling = error;
	tq_recall(tuple, TQ_RECALL_REMOVED);
}

void tq_entry_end_all(struct tq_ctx *ctx, int error)
{
	struct tq_recv_req *recv;
	struct tq_rx_tuple *tuple;

	while ((recv = ctx->wild)) {
		tq_entry_unlink(tq_entry_of(recv));
		tq_recv_req_end(recv, error);
	}
	for (int rank = 0; rank < ctx->npeers; rank++) {
		tuple = ctx->pairs[rank] ? ctx->pairs[rank]->rx_tuples : NULL;
		for (; tuple; tuple = tuple->hh.next)
			end_tuple(tuple, error);
	}
}

void tq_core_entry_call_done(struct tq_req *req)
{
	struct tq_entry *entry = (struct tq_entry *)req;
	const struct tq_recv_req *recv = &entry->recv;
	const struct tq_arrival arrival = {
		/* A buffer that is shorter than its message is no error here. */
		.error = req->status.error == -EMSGSIZE ? 0 : req->status.error,
		.envelope = {.source = entry->sender ? req->status.source : recv->want.rank,
			     .peer = entry->sender,
			     .bits = entry->sender ? entry->bits : recv->want.tag,
			     .length = req->status.length,
			     .header = entry->sender ? entry->header : NULL,
			     .taken = entry->taken},
		.received = recv->wanted,
		.queue = entry->queue,
	};

	entry->ops->done(entry->arg, req->user, &arrival);
}
