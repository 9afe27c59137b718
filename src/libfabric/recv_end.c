/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_end.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "wire.h"

/* Records that are kept for the next ones. A choice: the receives that a program has under way at a
 * time are mostly fewer, and more than these cost what malloc() does. */
#define SPARES_MAX 256

struct tf_completion tf_recv_completion(const struct tf_op *op, enum tf_kind kind,
					const struct tq_envelope *envelope)
{
	struct tf_completion completion = {
		.entry = {.op_context = op->context, .flags = op->flags},
		.source = FI_ADDR_NOTAVAIL,
	};
	struct tf_header header;

	memcpy(&header, envelope->header, sizeof(header));
	completion.entry.len = envelope->length;
	completion.entry.tag = kind == TF_TAGGED ? envelope->bits : 0;
	if (le32toh(header.flags) & TF_HEADER_DATA) {
		completion.entry.flags |= FI_REMOTE_CQ_DATA;
		completion.entry.data = le64toh(header.data);
	}
	if (op->ep->av && (op->ep->caps & FI_SOURCE))
		completion.source =
			tf_av_find(op->ep->av, envelope->peer, le32toh(header.endpoint));
	return completion;
}

void tf_recv_judge(struct tf_completion *completion, int error, uint64_t length, uint64_t received)
{
	completion->entry.len = received;
	completion->err = -error;
	if (!error && received < length) {
		completion->err = FI_ETRUNC;
		completion->olen = length - received;
	}
}

/* ---- the record ---- */

/* Returns true for the last owner. */
static bool drop_owner(struct tf_recv *recv)
{
	return atomic_fetch_sub_explicit(&recv->owners, 1, memory_order_acq_rel) == 1;
}

void tf_recv_disown(struct tf_recv *recv)
{
	if (drop_owner(recv))
		free(recv);
}

/* Keeps the record's memory for a next one, or frees it. With the endpoint's lock. */
static void keep(struct tf_ep *ep, struct tf_recv *recv)
{
	struct tf_spare *spare = (struct tf_spare *)recv;

	if (ep->nspares == SPARES_MAX) {
		free(recv);
		return;
	}
	spare->next = ep->spares;
	ep->spares = spare;
	ep->nspares++;
}

/* Takes the record out of the list of posted receives, and ends it unless a thread uses it. With
 * the endpoint's lock. */
static void retire(struct tf_recv *recv)
{
	struct tf_ep *ep = recv->op.ep;

	DL_DELETE(ep->posted, recv);
	recv->ended = true;
	if (!recv->held && drop_owner(recv))
		keep(ep, recv);
}

void tf_recv_let_go(struct tf_recv *recv)
{
	struct tf_ep *ep = recv->op.ep;
	bool ended;

	pthread_mutex_lock(&ep->lock);
	recv->held = false;
	ended = recv->ended;
	pthread_mutex_unlock(&ep->lock);
	if (ended)
		tf_recv_disown(recv);
}

/* ---- its end ---- */

static void *first_byte(const struct tf_recv *recv)
{
	return recv->buf.ops ? recv->vector.pieces[0].addr : recv->buf.addr;
}

/* Ends the operation, after the record; with a completion, or quietly (NULL). */
static void finish(struct tf_recv *recv, const struct tf_completion *completion)
{
	struct tf_op op = recv->op;

	pthread_mutex_lock(&op.ep->lock);
	retire(recv);
	if (completion)
		tf_op_report(&op, completion);
	pthread_mutex_unlock(&op.ep->lock);
	tf_op_drop(&op);
}

void tf_recv_end(struct tf_recv *recv, const struct tq_arrival *message)
{
	struct tf_completion completion;

	if (!message->envelope.header) {
		tf_recv_end_error(recv, message->error);
		return;
	}
	completion = tf_recv_completion(&recv->op, recv->kind, &message->envelope);
	completion.entry.buf = first_byte(recv);
	tf_recv_judge(&completion, message->error, message->envelope.length, message->received);
	finish(recv, &completion);
}

/* Returns true if nothing refers to the buffer any more: the user gets it back. */
static bool drop_part(struct tf_recv *recv)
{
	return atomic_fetch_sub(&recv->parts, 1) == 1;
}

/* Ends a buffer with FI_MULTI_RECV after its last message, without one of its own. */
static void end_canceled(struct tf_recv *recv)
{
	const struct tf_completion completion = {
		.entry = {.op_context = recv->op.context,
			  .flags = recv->op.flags | FI_MULTI_RECV,
			  .buf = recv->buf.addr},
		.source = FI_ADDR_NOTAVAIL,
		.err = FI_ECANCELED,
	};

	finish(recv, &completion);
}

void tf_recv_end_error(struct tf_recv *recv, int error)
{
	struct tf_completion completion = {
		.entry = {.op_context = recv->op.context,
			  .flags = recv->op.flags,
			  .buf = first_byte(recv)},
		.source = recv->op.peer,
		.err = -error,
	};

	if (recv->multi) {
		recv->canceled = true;
		if (!drop_part(recv))
			return;
		completion.entry.flags |= FI_MULTI_RECV;
	}
	finish(recv, error ? &completion : NULL);
}

void tf_recv_end_part(struct tf_part *part, const struct tq_arrival *message)
{
	struct tf_recv *recv = part->recv;
	struct tf_completion completion;
	bool last;

	completion = tf_recv_completion(&recv->op, recv->kind, &message->envelope);
	completion.entry.buf = part->addr;
	tf_recv_judge(&completion, message->error, message->envelope.length, message->received);
	free(part);
	last = drop_part(recv);
	if (last && !recv->canceled) {
		completion.entry.flags |= FI_MULTI_RECV;
		finish(recv, &completion);
		return;
	}
	if (recv->op.report || completion.err)
		tf_ep_report(recv->op.ep, &recv->op.ep->rx, &completion);
	tf_cntr_count(recv->op.ep->cntrs[TF_COUNT_RECV], completion.err);
	if (last)
		end_canceled(recv);
}
