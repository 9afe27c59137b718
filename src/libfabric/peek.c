/* SPDX-License-Identifier: BSD-3-Clause */
#include "peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "recv_end.h"
#include "wire.h"

/* How often a search is tried while a queue is on its way back, before the caller has to. */
#define TRIES 64

/* A message that was claimed, with the completion of its receive, but for the context. */
struct tf_claim {
	enum tf_tag tag;
	struct tf_op op; /* of its own: the data are under way */
	void *context;   /* of the claim, by which its receive finds it */
	void *data;
	uint64_t length;
	struct tf_completion completion;
	/* Guarded by the endpoint's lock: */
	bool arrived, discarded;
	int error;
	uint64_t received;
	struct tf_recv *recv; /* waits for the data */
	struct tf_claim *prev, *next;
};

/* Stands for messages whose data nobody waits for. */
static enum tf_tag nobody = TF_TAG_SEARCH;

/* ---- searching ---- */

enum tq_verdict tf_search_match(struct tf_search *search, const struct tq_envelope *envelope,
				struct tq_take *take)
{
	struct tf_claim *claim = search->claim;

	if (claim) {
		claim->data = envelope->length ? malloc(envelope->length) : NULL;
		if (envelope->length && !claim->data)
			return TQ_STOP;
		claim->length = envelope->length;
		take->buf = (struct tq_buf){.addr = claim->data, .len = envelope->length};
		take->user = claim;
	} else if (search->discard) {
		take->buf = (struct tq_buf){0};
		take->user = &nobody;
	}
	if (search->all)
		return TQ_TAKE_STAY;
	search->found = true;
	search->envelope = *envelope;
	memcpy(search->header, envelope->header, sizeof(struct tf_header));
	search->envelope.header = search->header;
	return claim || search->discard ? TQ_TAKE : TQ_STOP;
}

static struct tf_claim *make_claim(struct tf_ep *ep, void *context)
{
	struct tf_claim *claim = calloc(1, sizeof(*claim));

	if (!claim)
		return NULL;
	claim->tag = TF_TAG_CLAIM;
	claim->context = context;
	claim->op.count = TF_COUNT_RECV;
	if (tf_op_begin(&claim->op, ep, &ep->rx, false)) {
		free(claim);
		return NULL;
	}
	pthread_mutex_lock(&ep->lock);
	DL_APPEND(ep->claims, claim);
	pthread_mutex_unlock(&ep->lock);
	return claim;
}

/* Takes the claim out of its list, and frees it. Called when its data have come, or none was
 * made. */
static void free_claim(struct tf_claim *claim)
{
	struct tf_ep *ep = claim->op.ep;

	pthread_mutex_lock(&ep->lock);
	DL_DELETE(ep->claims, claim);
	pthread_mutex_unlock(&ep->lock);
	free(claim->data);
	free(claim);
}

/* Searches, and fills in the search. Returns 0 or a negative error. */
static int search_for(struct tf_ep *ep, struct tf_search *search, const struct tf_recv_args *args)
{
	unsigned tries = 0;
	int rank, rc;

	rc = tf_recv_source(ep, args->kind, args->source, &search->source, &rank);
	if (rc) /* nothing has come from a process that isn't known yet */
		return rc == -FI_EAGAIN ? 0 : rc;
	do {
		tf_domain_progress(ep->domain);
		/* If so, what the process has sent is here, and nothing more comes. */
		search->failed =
			search->source.peer && tf_dest_is_gone(tf_av_dest(ep->av, args->source));
		rc = tq_entry_append(ep->contexts->ctx[args->kind], rank, args->tag, args->ignore,
				     NULL, TQ_ENTRY_SEARCH, search, NULL);
	} while (rc == -EAGAIN && ++tries < TRIES);
	return rc < 0 ? rc : 0;
}

static void report(struct tf_ep *ep, const struct tf_search *search)
{
	struct tf_completion completion = {
		.entry = {.op_context = search->op.context, .flags = search->op.flags},
		.source = FI_ADDR_NOTAVAIL,
		.err = search->failed ? FI_EIO : FI_ENOMSG,
	};

	if (search->found)
		completion = tf_recv_completion(&search->op, search->kind, &search->envelope);
	if (search->claim && search->found)
		search->claim->completion = completion;
	tf_ep_report(ep, &ep->rx, &completion);
}

static ssize_t peek(struct tf_ep *ep, const struct tf_recv_args *args)
{
	struct tf_search search = {
		.tag = TF_TAG_SEARCH,
		.kind = args->kind,
		.discard = args->flags & FI_DISCARD,
		.op = {.ep = ep,
		       .context = args->context,
		       .flags = FI_RECV | (args->kind == TF_TAGGED ? FI_TAGGED : FI_MSG)},
	};
	int rc;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if ((args->flags & FI_CLAIM) && !search.discard) {
		search.claim = make_claim(ep, args->context);
		if (!search.claim)
			return -FI_EAGAIN;
	}
	rc = search_for(ep, &search, args);
	if (!rc)
		report(ep, &search);
	if (search.claim && !search.found) {
		struct tf_op op = search.claim->op;

		free_claim(search.claim);
		tf_op_drop(&op);
	}
	return rc;
}

/* ---- claimed messages ---- */

/* Ends the receive of a claimed message, whose data have come. */
static void deliver(struct tf_claim *claim, struct tf_recv *recv)
{
	size_t len = claim->received < recv->buf.len ? claim->received : recv->buf.len;
	struct tf_completion completion = claim->completion;
	struct tf_op op = recv->op;

	tf_vector_scatter(&recv->buf, claim->data, len);
	completion.entry.op_context = op.context;
	completion.entry.buf = recv->buf.ops ? recv->vector.pieces[0].addr : recv->buf.addr;
	tf_recv_judge(&completion, claim->error, claim->length, len);
	free(recv);
	tf_op_end(&op, &completion);
}

void tf_claim_arrived(struct tf_claim *claim, const struct tq_arrival *message)
{
	struct tf_op op = claim->op;
	struct tf_recv *recv;
	bool discarded;

	pthread_mutex_lock(&op.ep->lock);
	claim->arrived = true;
	claim->error = message->error;
	claim->received = message->received;
	recv = claim->recv;
	discarded = claim->discarded;
	pthread_mutex_unlock(&op.ep->lock);
	if (recv)
		deliver(claim, recv);
	if (recv || discarded)
		free_claim(claim);
	tf_op_drop(&op);
}

static struct tf_claim *find_claim(struct tf_ep *ep, const void *context)
{
	struct tf_claim *claim;

	DL_FOREACH(ep->claims, claim) {
		if (claim->context == context && !claim->recv && !claim->discarded)
			break;
	}
	return claim;
}

static ssize_t discard(struct tf_ep *ep, const struct tf_recv_args *args)
{
	struct tf_completion completion;
	struct tf_claim *claim;
	bool arrived = false;

	pthread_mutex_lock(&ep->lock);
	claim = find_claim(ep, args->context);
	if (claim) {
		completion = claim->completion;
		claim->discarded = true;
		arrived = claim->arrived;
	}
	pthread_mutex_unlock(&ep->lock);
	if (!claim)
		return -FI_EINVAL;
	if (arrived)
		free_claim(claim);
	completion.entry.len = 0;
	if (tf_side_reports(&ep->rx, args->flags))
		tf_ep_report(ep, &ep->rx, &completion);
	return 0;
}

static ssize_t take_claim(struct tf_ep *ep, const struct tf_recv_args *args)
{
	struct tf_claim *claim;
	struct tf_recv *recv;
	bool arrived = false;
	int rc;

	if (args->flags & FI_DISCARD)
		return discard(ep, args);
	if (args->count > TF_IOV_LIMIT)
		return -FI_EINVAL;
	recv = calloc(1, sizeof(*recv));
	if (!recv)
		return -FI_EAGAIN;
	recv->op.count = TF_COUNT_RECV;
	recv->op.context = args->context;
	recv->op.report = tf_side_reports(&ep->rx, args->flags);
	recv->buf = tf_vector_buf(&recv->vector, args->iov, args->count);
	rc = tf_op_begin(&recv->op, ep, &ep->rx, false);
	if (rc) {
		free(recv);
		return rc;
	}
	pthread_mutex_lock(&ep->lock);
	claim = find_claim(ep, args->context);
	if (claim) {
		claim->recv = recv;
		arrived = claim->arrived;
	}
	pthread_mutex_unlock(&ep->lock);
	if (!claim) {
		tf_op_abort(&recv->op);
		free(recv);
		return -FI_EINVAL;
	}
	if (arrived) {
		deliver(claim, recv);
		free_claim(claim);
	}
	return 0;
}

ssize_t tf_recv_or_peek(struct tf_ep *ep, const struct tf_recv_args *args)
{
	if (args->flags & FI_PEEK)
		return peek(ep, args);
	if (args->flags & FI_CLAIM)
		return take_claim(ep, args);
	return tf_recv(ep, args);
}

void tf_peek_end_all(struct tf_ep *ep)
{
	struct tf_search search = {.tag = TF_TAG_SEARCH, .discard = true, .all = true};

	for (unsigned kind = 0; kind < TF_KINDS; kind++) {
		while (tq_entry_append(ep->contexts->ctx[kind], TQ_ANY_SOURCE, 0, UINT64_MAX, NULL,
				       TQ_ENTRY_SEARCH, &search, NULL) == -EAGAIN)
			tf_domain_progress(ep->domain);
	}
	while (ep->claims)
		free_claim(ep->claims);
}
