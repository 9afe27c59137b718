/* SPDX-License-Identifier: BSD-3-Clause */
#include "send.h"

#include <errno.h>
#include <stdlib.h>

#include "info.h"
#include "vector.h"
#include "versions.h"
#include "wire.h"

/* Flags that ask for more than that the buffer can be used again: that the data are with the
 * receiver, though perhaps in memory of the provider there; or that a receive has taken the
 * message. Sends of the first kind can go to a tuple's queue. */
#define SYNC_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define KNOWN_FLAGS                                                                            \
	(SYNC_FLAGS | FI_REMOTE_CQ_DATA | FI_INJECT | FI_COMPLETION | FI_MORE | FI_FENCE |     \
	 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_COMMIT_COMPLETE | FI_MSG | FI_TAGGED | \
	 FI_SEND | TF_PRIORITY)

struct send {
	struct tf_op op;
	struct tf_vector vector;
	char copy[]; /* of an injected message */
};

/* Ends a send (struct tf_ending). */
static void end(struct tf_ending *ending, int error)
{
	struct send *send = tf_container(ending, struct send, op.ending);

	tf_op_end_plain(&send->op, error);
	free(send);
}

static unsigned transport_flags(const struct tf_ep *ep, const struct tf_send_args *args,
				const struct tf_dest *dest)
{
	unsigned flags = 0;

	/* The receiver's adapter can't tell a process's endpoints apart: see recv_match.c. */
	if (ep->contexts->number != dest->number)
		flags |= TQ_SEND_MATCHED;
	if (args->flags & FI_INJECT)
		flags |= TQ_SEND_BUFFERED;
	if (args->quiet)
		return flags;
	if (args->flags & FI_MATCH_COMPLETE)
		flags |= TQ_SEND_SYNC;
	else if (args->flags & FI_DELIVERY_COMPLETE)
		flags |= TQ_SEND_DELIVERED;
	return flags;
}

static struct tf_header make_header(const struct tf_ep *ep, const struct tf_send_args *args)
{
	return (struct tf_header){
		.endpoint = htole32(ep->contexts->number),
		.flags = htole32(args->flags & FI_REMOTE_CQ_DATA ? TF_HEADER_DATA : 0),
		.data = htole64(args->data),
	};
}

static uint64_t completion_flags(const struct tf_send_args *args)
{
	return FI_SEND | (args->kind == TF_TAGGED ? FI_TAGGED : FI_MSG);
}

/* ---- a short message, which has no record if its send ends when it is sent ---- */

/* Returns true if this is to be tried. */
static bool may_end_at_once(const struct tf_ep *ep, const struct tf_send_args *args)
{
	return args->count == 1 && args->iov->iov_len <= TF_INJECT_SIZE && ep->enabled &&
	       !(args->flags & (SYNC_FLAGS | FI_FENCE)) &&
	       (args->flags & FI_INJECT || !ep->tx.cq || !tf_cq_is_full(ep->tx.cq));
}

/* Sends the message if its send ends with that. Returns true if it has. */
static bool send_at_once(struct tf_ep *ep, const struct tf_send_args *args,
			 const struct tf_dest *dest, struct tq_ctx *ctx, int rank)
{
	const struct tf_header header = make_header(ep, args);
	const struct tq_buf buf = {.addr = args->iov->iov_base, .len = args->iov->iov_len};
	struct tq_req *req;

	if (tq_send_bits(ctx, rank, args->tag, &header, &buf,
			 transport_flags(ep, args, dest) | TQ_SEND_AT_ONCE, NULL, &req) != 1)
		return false;
	/* The caller uses the endpoint, so it isn't being closed. */
	if (!args->quiet && tf_side_reports(&ep->tx, args->flags)) {
		const struct tf_completion completion = {
			.entry = {.op_context = args->context, .flags = completion_flags(args)},
			.source = args->dest,
		};

		tf_cq_add(ep->tx.cq, &completion);
	}
	tf_cntr_count(ep->cntrs[TF_COUNT_SEND], false);
	return true;
}

/* ---- all others ---- */

/* Hands the message to libtupleq. Returns its result. */
static int start(struct send *send, const struct tf_send_args *args, const struct tf_dest *dest,
		 struct tq_ctx *ctx, int rank)
{
	const struct tf_header header = make_header(send->op.ep, args);
	struct tq_buf buf;
	struct tq_req *req;

	if (args->flags & FI_INJECT) {
		tf_vector_gather(args->iov, args->count, send->copy);
		buf = (struct tq_buf){.addr = send->copy,
				      .len = tf_vector_len(args->iov, args->count)};
	} else {
		buf = tf_vector_buf(&send->vector, args->iov, args->count);
	}
	return tq_send_bits(ctx, rank, args->tag, &header, &buf,
			    transport_flags(send->op.ep, args, dest), &send->op.ending, &req);
}

/* Makes the record of a send. */
static struct send *make(const struct tf_ep *ep, const struct tf_send_args *args)
{
	size_t copy = args->flags & FI_INJECT ? tf_vector_len(args->iov, args->count) : 0;
	struct send *send = malloc(sizeof(*send) + copy);

	if (!send)
		return NULL;
	send->op.ending.end = end;
	send->op.count = TF_COUNT_SEND;
	send->op.report = !args->quiet && tf_side_reports(&ep->tx, args->flags);
	send->op.peer = args->dest;
	send->op.context = args->context;
	send->op.flags = completion_flags(args);
	return send;
}

/* Returns 0 if the arguments are valid and the operation may start now. */
static int check(struct tf_ep *ep, const struct tf_send_args *args, const struct tf_dest *dest)
{
	size_t len = tf_vector_len(args->iov, args->count);
	int rc = tf_op_check_flags(args->flags, KNOWN_FLAGS);

	if (rc)
		return rc;
	if (!dest || args->count > TF_IOV_LIMIT)
		return -FI_EINVAL;
	if (len > TF_MAX_MESSAGE)
		return -FI_EMSGSIZE;
	if ((args->flags & FI_INJECT) && len > ep->inject_size)
		return -FI_EINVAL;
	/* Earlier operations end by themselves, so the caller only tries again. */
	if ((args->flags & FI_FENCE) && atomic_load(&ep->tx.busy)) {
		tf_domain_progress(ep->domain);
		return -FI_EAGAIN;
	}
	return 0;
}

ssize_t tf_send(struct tf_ep *ep, const struct tf_send_args *args)
{
	struct tf_dest *dest = ep->av ? tf_av_dest(ep->av, args->dest) : NULL;
	struct send *send;
	struct tq_ctx *ctx;
	int rank, rc;

	rc = check(ep, args, dest);
	if (!rc)
		rc = tf_dest_resolve(dest, args->kind, &ctx, &rank);
	if (rc)
		return rc;
	if (may_end_at_once(ep, args) && send_at_once(ep, args, dest, ctx, rank))
		return 0;
	send = make(ep, args);
	if (!send)
		return -FI_EAGAIN;
	rc = tf_op_begin(&send->op, ep, &ep->tx, args->flags & FI_INJECT);
	if (rc) {
		free(send);
		return rc;
	}
	rc = start(send, args, dest, ctx, rank);
	if (rc == 1 || (rc == -EIO && !args->quiet)) {
		end(&send->op.ending, rc == 1 ? 0 : rc);
		return 0;
	}
	if (rc) {
		tf_op_abort(&send->op);
		free(send);
		return rc == -ENOMEM ? -FI_EAGAIN : rc;
	}
	return 0;
}
