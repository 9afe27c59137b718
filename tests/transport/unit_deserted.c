/* SPDX-License-Identifier: BSD-3-Clause */
/* When the last peer of a context has failed, its receives from any source end with an error,
 * unless the context is open. */
#include <errno.h>

#include "proto/common/ctx.h"
#include "proto/common/objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "unit.h"

enum { OTHERS = 2, TAG = 7 };

static struct tq_peer others[OTHERS];
static struct tq_peer *const all[] = {&unit.peer, &others[0], &others[1]};

static struct tq_ctx *context(uint32_t id, int n)
{
	struct tq_ctx *ctx;

	return tq_core_ctx_add(&unit.core, id, all, n, 0, 0, &ctx) ? NULL : ctx;
}

/* Returns a context that the first `n` peers have joined. */
static struct tq_ctx *open_context(uint32_t id, int n)
{
	struct tq_ctx *ctx;

	if (tq_core_ctx_add(&unit.core, id, NULL, 0, 0, TQ_CTX_OPEN, &ctx))
		return NULL;
	for (int i = 0; i < n; i++) {
		if (tq_core_ctx_join(ctx, all[i]) != i)
			return NULL;
	}
	return ctx;
}

static int receive(struct tq_ctx *ctx, struct tq_req **req)
{
	static char data[64];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_status status;

	return tq_core_recv(ctx, TQ_ANY_SOURCE, TAG, &buf, NULL, req, &status);
}

/* Returns the error with which the request has ended, or 0 if others have ended, too. */
static int ended(const struct tq_req *req)
{
	struct tq_req *list = tq_core_ended(&unit.core);

	return list == req && !list->next ? list->status.error : 0;
}

int main(void)
{
	struct tq_ctx *some, *whole, *later, *open;
	struct tq_req *req, *kept, *joined;
	struct tq_status status;

	unit_start(NULL, NULL);
	for (int i = 0; i < OTHERS; i++) {
		if (tq_core_peer_init(&unit.core, &others[i], NULL, NULL))
			return 1;
	}
	some = context(1, 2);
	whole = context(2, 3);
	open = open_context(4, 2);
	if (!some || !whole || !open)
		return 1;
	unit_check("deserted", "a receive waits", !receive(some, &req));
	unit_check("deserted", "so does one of another context", !receive(whole, &kept));
	tq_core_on_peer_failed(&unit.core, &others[0]);
	unit_check("deserted", "as long as one peer is left", !tq_core_ended(&unit.core));
	tq_core_on_peer_failed(&unit.core, &unit.peer);
	unit_check("deserted", "it ends when the last one fails", ended(req) == -EIO);
	tq_core_release(req);
	unit_check("deserted", "others fail at once", receive(some, &req) == -EIO);
	unit_check("deserted", "so do probes",
		   tq_core_probe(some, TQ_ANY_SOURCE, TAG, &status) == -EIO);
	later = context(3, 2);
	unit_check("deserted", "in a new context, too", later && receive(later, &req) == -EIO);
	unit_check("deserted", "where peers are left, they wait",
		   !tq_core_probe(whole, TQ_ANY_SOURCE, TAG, &status));

	unit_check("deserted", "in an open context receives wait for peers that will join",
		   !receive(open, &joined) && !tq_core_ended(&unit.core));
	unit_check("deserted", "and so do probes",
		   !tq_core_probe(open, TQ_ANY_SOURCE, TAG, &status));

	/* A context that is removed keeps its receives, also when its peers are gone. */
	tq_core_ctx_remove(whole);
	tq_core_peer_fini(&unit.core, &unit.peer);
	unit.peer = (struct tq_peer){0};
	unit_check("deserted", "a peer that is gone is not looked at", !tq_core_ended(&unit.core));
	tq_core_on_peer_failed(&unit.core, &others[1]);
	unit_check("deserted", "the last of the others ends a receive", ended(kept) == -EIO);
	tq_core_release(kept);
	tq_core_on_broken(&unit.core);
	unit_check("deserted", "an adapter that fails ends receives in an open context",
		   ended(joined) == -EIO);
	tq_core_release(joined);
	tq_core_destroy(&unit.core);
	tq_params_free(unit.params);
	return unit_status();
}
