/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/receiver/wild.h"

#include <errno.h>

#include "proto/receiver/want.h"

int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	/* Promises about wildcards don't concern the negative tags of collectives. */
	unsigned flags = tag >= 0 || tag == TQ_ANY_TAG ? ctx->flags : 0;

	if (ctx->flags & TQ_CTX_BITS)
		return -EINVAL; /* its receives are entries */
	if (rank == TQ_ANY_SOURCE ? flags & TQ_CTX_NO_ANY_SOURCE : rank < 0 || rank >= ctx->npeers)
		return -EINVAL;
	return tag == TQ_ANY_TAG && flags & TQ_CTX_NO_ANY_TAG ? -EBADMSG : 0;
}

bool tq_wild_fits_tuple(const struct tq_rx_tuple *tuple)
{
	const struct tq_recv_req *wild;

	DL_FOREACH(tuple->pair->ctx->wild, wild) {
		if (tq_want_fits_tuple(&wild->want, tuple))
			return true;
	}
	return false;
}
