/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "recv_end.h"

#define KNOWN_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_MSG | FI_TAGGED | FI_RECV)

/* ---- posting ---- */

int tf_recv_source(struct tf_ep *ep, enum tf_kind kind, fi_addr_t addr, struct tf_source *source,
		   int *rank)
{
	struct tf_dest *dest;
	struct tf_peer *peer = NULL;
	struct tq_peer *tq;
	int rc;

	*source = (struct tf_source){NULL, 0};
	*rank = TQ_ANY_SOURCE;
	if (addr == FI_ADDR_UNSPEC || !(ep->caps & FI_DIRECTED_RECV))
		return 0;
	dest = ep->av ? tf_av_dest(ep->av, addr) : NULL;
	if (!dest)
		return -FI_EINVAL;
	if (dest->number == ep->contexts->number)
		*rank = tf_dest_rank(dest, kind);
	if (*rank >= 0) {
		*source = (struct tf_source){
			atomic_load_explicit(&dest->peer, memory_order_acquire), dest->number};
		return 0;
	}
	*rank = TQ_ANY_SOURCE;
	/* A receive from any source would keep queues away from the process's tuples for a while.
	 * The source of one that can't be found is compared by match(). */
	rc = tf_dest_find(dest, &peer, &tq);
	if (rc == -FI_EAGAIN || !peer)
		return rc;
	*source = (struct tf_source){peer, dest->number};
	if (!rc && dest->number == ep->contexts->number)
		tf_dest_join(dest, kind, ep->contexts, tq, rank);
	else if (!rc)
		*rank = tq_ctx_join(ep->contexts->ctx[kind], tq);
	if (*rank < 0)
		*rank = TQ_ANY_SOURCE;
	return 0;
}

/* Returns memory for a record, or NULL. With the endpoint's lock. */
static struct tf_recv *new_recv(struct tf_ep *ep)
{
	struct tf_spare *spare = ep->spares;

	if (!spare)
		return malloc(sizeof(struct tf_recv));
	ep->spares = spare->next;
	ep->nspares--;
	return (struct tf_recv *)spare;
}

static void fill_in(struct tf_recv *recv, struct tf_ep *ep, const struct tf_recv_args *args,
		    const struct tf_source *source)
{
	recv->tag = TF_TAG_RECV;
	recv->kind = args->kind;
	recv->source = *source;
	recv->op.ep = ep;
	recv->op.count = TF_COUNT_RECV;
	recv->op.report = tf_side_reports(&ep->rx, args->flags);
	recv->op.peer = args->source;
	recv->op.context = args->context;
	recv->op.flags = FI_RECV | (args->kind == TF_TAGGED ? FI_TAGGED : FI_MSG);
	recv->buf = tf_vector_buf(&recv->vector, args->iov, args->count);
	recv->multi = args->flags & FI_MULTI_RECV;
	if (recv->multi) {
		recv->at = recv->buf.addr;
		recv->left = recv->buf.len;
		recv->min_left = atomic_load(&ep->min_multi_recv);
		atomic_init(&recv->parts, 1);
	}
	recv->canceled = false;
	recv->id = 0;
	atomic_init(&recv->owners, 2);
	recv->held = false;
	recv->ended = false;
}

/* Makes the record of a receive that has begun, in the list of those. Returns NULL without memory.
 */
static struct tf_recv *make(struct tf_ep *ep, const struct tf_recv_args *args,
			    const struct tf_source *source)
{
	struct tf_recv *recv;

	pthread_mutex_lock(&ep->lock);
	recv = new_recv(ep);
	if (recv) {
		fill_in(recv, ep, args, source);
		DL_APPEND(ep->posted, recv);
	}
	pthread_mutex_unlock(&ep->lock);
	return recv;
}

/* Returns true if the adapter may match the receive: see recv.h. */
static bool is_for_queue(const struct tf_recv *recv, int rank)
{
	return rank != TQ_ANY_SOURCE && recv->source.number == recv->op.ep->contexts->number &&
	       !recv->multi && !recv->buf.ops;
}

/* Appends the receive to libtupleq's list. Returns 0 or a negative error. */
static int append(struct tf_recv *recv, const struct tf_recv_args *args, int rank)
{
	int rc = tq_entry_append(recv->op.ep->contexts->ctx[recv->kind], rank, args->tag,
				 args->ignore, &recv->buf,
				 is_for_queue(recv, rank) ? TQ_ENTRY_QUEUE : 0, recv, &recv->id);

	return rc < 0 ? rc : 0;
}

ssize_t tf_recv(struct tf_ep *ep, const struct tf_recv_args *args)
{
	struct tf_op op = {.count = TF_COUNT_RECV};
	struct tf_source source;
	struct tf_recv *recv;
	int rank, rc;

	rc = tf_op_check_flags(args->flags, KNOWN_FLAGS);
	if (rc)
		return rc;
	if (args->count > TF_IOV_LIMIT ||
	    ((args->flags & FI_MULTI_RECV) && (args->count != 1 || !args->iov->iov_len)))
		return -FI_EINVAL;
	rc = tf_recv_source(ep, args->kind, args->source, &source, &rank);
	if (rc)
		return rc;
	rc = tf_op_begin(&op, ep, &ep->rx, false);
	if (rc)
		return rc;
	recv = make(ep, args, &source);
	if (!recv) {
		tf_op_abort(&op);
		return -FI_EAGAIN;
	}
	rc = append(recv, args, rank);
	/* Nothing was started, so nothing is reported. Open MPI's mtl/ofi counts on it: it frees a
	 * receive whose message could not be sent, without waiting for its end. */
	if (rc)
		tf_recv_end_error(recv, 0);
	tf_recv_disown(recv);
	return rc == -ENOMEM ? -FI_EAGAIN : rc;
}

/* ---- taking back ---- */

/* Returns true if the receive is posted, and nobody else takes it back. With the endpoint's lock.
 */
static bool may_be_held(const struct tf_recv *recv)
{
	return !recv->held && !recv->canceled &&
	       atomic_load_explicit(&recv->owners, memory_order_acquire) == 1;
}

/* Takes a receive that the caller holds out of its list. Returns false if a message has taken it,
 * or its source has failed. */
static bool take_out(struct tf_recv *recv)
{
	struct tf_ep *ep = recv->op.ep;
	int rc;

	while ((rc = tq_entry_remove(ep->contexts->ctx[recv->kind], recv->id)) == -EAGAIN)
		tf_domain_progress(ep->domain);
	return !rc;
}

ssize_t tf_recv_cancel(struct tf_ep *ep, void *context)
{
	struct tf_recv *recv;
	bool taken_out;

	pthread_mutex_lock(&ep->lock);
	DL_FOREACH(ep->posted, recv) {
		if (recv->op.context == context && may_be_held(recv))
			break;
	}
	if (recv)
		recv->held = true;
	pthread_mutex_unlock(&ep->lock);
	if (!recv)
		return -FI_ENOENT;
	taken_out = take_out(recv);
	if (taken_out)
		tf_recv_end_error(recv, -FI_ECANCELED);
	tf_recv_let_go(recv);
	return taken_out ? 0 : -FI_ENOENT;
}

/* Returns a receive that is in its list, and holds it; or NULL. */
static struct tf_recv *hold_any(struct tf_ep *ep)
{
	struct tf_recv *recv;

	pthread_mutex_lock(&ep->lock);
	DL_FOREACH(ep->posted, recv) {
		if (may_be_held(recv))
			break;
	}
	if (recv) {
		recv->held = true;
		/* Not to be found again. */
		recv->canceled = true;
	}
	pthread_mutex_unlock(&ep->lock);
	return recv;
}

void tf_recv_end_all(struct tf_ep *ep)
{
	struct tf_recv *recv;

	while ((recv = hold_any(ep))) {
		if (take_out(recv))
			tf_recv_end_error(recv, 0);
		tf_recv_let_go(recv);
	}
	while (atomic_load(&ep->rx.busy))
		tf_domain_progress(ep->domain);
}
