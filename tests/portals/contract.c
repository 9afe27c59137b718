/* SPDX-License-Identifier: BSD-3-Clause */
/* contract.c - see contract.h: the endpoint, its processes and contexts. */
#include "contract.h"

#include <stdlib.h>
#include <string.h>

#include "contract_objects.h"
#include "played.h"

#define IDLE_CALLS_MAX 1000 /* calls of tq_progress() without a step: a wait is endless */

struct contract_state contract;
bool contract_blocking;

void contract_start(struct schedule *schedule, const struct contract_ops *ops)
{
	contract.schedule = schedule;
	contract.ops = ops;
	contract.idle_calls = 0;
	contract_blocking = false;
}

void contract_introduce(void)
{
	struct tq_ep *ep = contract.ep;

	for (int i = 0; i < CONTRACT_PROCESSES; i++) {
		struct tq_locator locator = played_locator(i);

		ep->found(ep->found_arg, &locator, &i, sizeof(i), 0);
	}
}

void contract_stop(void)
{
	t_true(!contract.ep, "the endpoint was not closed");
}

/* ---- the endpoint ---- */

int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep)
{
	(void)params;
	(void)cache;
	t_true(!contract.ep, "a second endpoint");
	contract.ep = *ep = calloc(1, sizeof(**ep));
	(*ep)->job = *job;
	(*ep)->next_id = 1;
	for (int i = 0; i < CONTRACT_PROCESSES; i++)
		(*ep)->peers[i].process = -1;
	return 0;
}

void tq_close(struct tq_ep *ep)
{
	t_true(ep->ended_ctxs == ep->nctxs, "contexts are left");
	t_true(!ep->transfers && !ep->answers, "transfers are left");
	for (unsigned i = 0; i < ep->nctxs; i++) {
		struct waiting *waiting, *next;

		DL_FOREACH_SAFE(ep->ctxs[i]->waiting, waiting, next)
			free(waiting);
		free(ep->ctxs[i]);
	}
	free(ep);
	contract.ep = NULL;
}

int tq_progress(struct tq_ep *ep)
{
	unsigned n;

	(void)ep;
	if (!contract_blocking)
		return 0;
	n = contract_steps();
	contract.idle_calls = n ? 0 : contract.idle_calls + 1;
	t_true(contract.idle_calls < IDLE_CALLS_MAX, "a call waits for ever");
	if (n)
		contract_step(schedule_choose(contract.schedule, n));
	return n > 0;
}

/* ---- processes ---- */

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator)
{
	*locator = played_locator(peer->process);
	return 0;
}

void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg)
{
	ep->found = found;
	ep->found_arg = arg;
}

int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator)
{
	(void)ep;
	t_true(locator->port == played_locator(0).port, "a process is looked up that was found");
	return 0; /* contract_introduce() answers */
}

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer)
{
	int process;

	(void)name;
	t_eq(len, sizeof(process));
	memcpy(&process, address, len);
	*peer = &ep->peers[process];
	(*peer)->process = process;
	return 0;
}

void tq_peer_connect(struct tq_peer *peer)
{
	t_true(peer->process >= 0, "a process is connected to that was not added");
}

/* ---- contexts ---- */

int tq_ctx_add_bits(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, size_t header_len, const struct tq_match_ops *ops,
		    void *arg, struct tq_ctx **ctx)
{
	(void)id;
	(void)peers;
	(void)rank;
	t_true(!npeers && flags == TQ_CTX_OPEN && ep->nctxs <= CONTRACT_REPLY,
	       "a context of another kind");
	*ctx = calloc(1, sizeof(**ctx));
	(*ctx)->number = ep->nctxs;
	(*ctx)->ops = ops;
	(*ctx)->arg = arg;
	(*ctx)->header_len = header_len;
	memset((*ctx)->rank_of, 0xff, sizeof((*ctx)->rank_of));
	ep->ctxs[ep->nctxs++] = *ctx;
	return 0;
}

int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	int *rank = &ctx->rank_of[peer->process];

	if (*rank < 0) {
		ctx->process_of[ctx->nranks] = peer->process;
		*rank = ctx->nranks++;
	}
	return *rank;
}

static bool has_queue_entries(const struct tq_ctx *ctx)
{
	const struct entry *entry;

	DL_FOREACH(ctx->entries, entry) {
		if (entry->queue)
			return true;
	}
	return false;
}

void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	bool closed = flags & TQ_CTX_CLOSED;

	if (closed && !ctx->closed)
		ctx->recalling = has_queue_entries(ctx);
	if (!closed)
		ctx->recalling = false;
	ctx->closed = closed;
}

bool tq_ctx_has_queues(struct tq_ctx *ctx)
{
	const struct transfer *transfer;

	DL_FOREACH(contract.ep->transfers, transfer) {
		if (transfer->ctx == ctx && transfer->queue_id)
			return true;
	}
	return ctx->closed ? ctx->recalling : has_queue_entries(ctx);
}

bool contract_is_recalling(unsigned ctx)
{
	return contract.ep->ctxs[ctx]->recalling;
}

void tq_ctx_remove(struct tq_ctx *ctx)
{
	struct tq_ep *ep = contract.ep;
	struct transfer *transfer;
	struct entry *entry;

	DL_FOREACH(ep->transfers, transfer)
		t_true(transfer->ctx != ctx, "a context is removed with transfers under way");
	while ((entry = ctx->entries)) {
		const struct tq_arrival ended = {.error = -ECANCELED};

		DL_DELETE(ctx->entries, entry);
		ctx->ops->done(ctx->arg, entry->user, &ended);
		free(entry);
	}
	ep->ended_ctxs++;
}
