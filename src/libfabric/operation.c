/* SPDX-License-Identifier: BSD-3-Clause */
#include "operation.h"

#include <errno.h>

#include <rdma/fi_atomic.h>

#include "mr.h"
#include "peer.h"
#include "versions.h"

#define KNOWN_FLAGS                                                                              \
	(FI_REMOTE_CQ_DATA | FI_INJECT | FI_COMPLETION | FI_MORE | FI_FENCE | TF_PRIORITY |      \
	 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE | \
	 FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)

/* Returns 0 if the flags are valid and the operation may start now. */
static int check(struct tf_ep *ep, uint64_t flags)
{
	int rc = tf_op_check_flags(flags, KNOWN_FLAGS);

	if (rc)
		return rc;
	/* Earlier operations end by themselves, so the caller only tries again. */
	if ((flags & FI_FENCE) && atomic_load(&ep->tx.busy)) {
		tf_domain_progress(ep->domain);
		return -FI_EAGAIN;
	}
	return 0;
}

int tf_operation_begin(struct tf_operation *operation, struct tf_ep *ep,
		       const struct tf_operation_args *args)
{
	struct tf_dest *dest = ep->av ? tf_av_dest(ep->av, args->target) : NULL;
	struct tf_op *op = &operation->op;
	struct tf_peer *peer;
	int rc = dest ? check(ep, args->flags) : -FI_EINVAL;

	if (!rc)
		rc = tf_dest_find(dest, &peer, &operation->peer);
	if (rc)
		return rc;
	op->count = args->count;
	op->report = !args->quiet && tf_side_reports(&ep->tx, args->flags);
	op->peer = args->target;
	op->context = args->context;
	op->flags = args->kind | (args->count == TF_COUNT_READ ? FI_READ : FI_WRITE);
	operation->number = dest->number;
	operation->flags = args->flags & FI_REMOTE_CQ_DATA ? TF_REQUEST_DATA : 0;
	operation->nkeys = 0;
	operation->data = args->data;
	operation->len = args->len;
	atomic_init(&operation->parts, 1);
	atomic_init(&operation->error, 0);
	return tf_op_begin(op, ep, &ep->tx, args->flags & FI_INJECT);
}

void tf_operation_name(struct tf_operation *operation, uint64_t key)
{
	if (!tf_key_has_events(key))
		return;
	for (unsigned i = 0; i < operation->nkeys; i++) {
		if (operation->keys[i] == key)
			return;
	}
	operation->keys[operation->nkeys++] = key;
}

/* Tells the target's endpoint, or a registration alone, that the operation has ended. A message
 * that is sent now comes after the operation's data (tq_rma()). */
static int tell(struct tf_operation *operation, uint32_t endpoint, uint64_t key)
{
	struct tf_request request = {
		.kind = TF_REQUEST_EVENT,
		.flags = operation->flags | (operation->op.flags & FI_READ ? TF_REQUEST_READ : 0) |
			 (operation->op.flags & FI_ATOMIC ? TF_REQUEST_ATOM : 0),
		.endpoint = endpoint,
		.data = operation->data,
		.key = key,
		.length = operation->len,
	};

	return tf_active_send(operation->op.ep->domain, operation->peer, &request, NULL, 0, NULL,
			      NULL);
}

/* Tells all that have to know of the operation's end. */
static int tell_all(struct tf_operation *operation)
{
	uint64_t first = operation->nkeys ? operation->keys[0] : FI_KEY_NOTAVAIL;
	int rc = 0;

	if (operation->nkeys || (operation->flags & TF_REQUEST_DATA))
		rc = tell(operation, operation->number, first);
	for (unsigned i = 1; i < operation->nkeys && !rc; i++)
		rc = tell(operation, TF_NO_ENDPOINT, operation->keys[i]);
	return rc;
}

void tf_operation_end(struct tf_operation *operation, int error)
{
	int none = 0;
	struct tf_op op;

	if (error)
		atomic_compare_exchange_strong(&operation->error, &none, error);
	if (atomic_fetch_sub_explicit(&operation->parts, 1, memory_order_acq_rel) != 1)
		return;
	error = atomic_load(&operation->error);
	if (!error) {
		error = tell_all(operation);
		/* The operation is done, even if its target is gone, with its counters. */
		if (error == -EIO && !(operation->flags & TF_REQUEST_DATA))
			error = 0;
	}
	op = operation->op;
	operation->free(operation, error);
	tf_op_end_plain(&op, error);
}

int tf_operation_started(struct tf_operation *operation, size_t parts, int error)
{
	if (!parts && error && error != -EIO) {
		tf_op_abort(&operation->op);
		operation->free(operation, error);
		return error == -ENOMEM ? -FI_EAGAIN : error;
	}
	tf_operation_end(operation, error);
	return 0;
}
