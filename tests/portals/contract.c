/* SPDX-License-Identifier: BSD-3-Clause */
#include "contract.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define PATIENCE 1000 /* calls of tq_progress() in vain before a wait is endless */

struct tq_peer {
	int process;
};

struct entry {
	tq_entry_id id;
	int rank;
	uint64_t bits, ignore;
	struct tq_buf buf;
	bool queue;
	void *user;
	struct entry *next, *prev;
};

/* A message that no entry has taken, with its data in the place that unexpected() has named. */
struct waiting {
	struct contract_message message;
	void *user;
	struct waiting *next, *prev;
};

/* Data on their way to memory; or, with `taken`, the news that an entry has taken them. */
struct transfer {
	struct tq_ctx *ctx;
	struct contract_message message;
	struct tq_buf buf;
	void *user;
	void *taken;
	tq_entry_id queue_id; /* of the entry that the HCA has matched; 0: none */
	struct transfer *next, *prev;
};

struct answer {
	int to;
	uint8_t header[TQ_HEADER_MAX];
	size_t header_len;
	struct tq_buf buf;
	void *user;
	struct answer *next, *prev;
};

struct arrival {
	unsigned ctx;
	struct contract_message message;
	struct arrival *next, *prev;
};

struct tq_ctx {
	unsigned number;
	const struct tq_match_ops *ops;
	void *arg;
	size_t header_len;
	bool closed, recalling;
	int rank_of[CONTRACT_PROCESSES]; /* -1: not joined */
	int process_of[CONTRACT_PROCESSES];
	int nranks;
	struct entry *entries;
	struct waiting *waiting;
};

struct tq_ep {
	struct tq_job job;
	tq_found *found;
	void *found_arg;
	struct tq_ctx *ctxs[CONTRACT_REPLY + 1];
	unsigned nctxs, ended_ctxs;
	struct tq_peer peers[CONTRACT_PROCESSES];
	struct arrival *arrivals[CONTRACT_PROCESSES];
	struct transfer *transfers;
	struct answer *answers;
	tq_entry_id next_id;
};

struct tq_params {
	int none;
};

static struct {
	struct schedule *schedule;
	const struct contract_ops *ops;
	struct tq_ep *ep;
	unsigned in_vain;
} contract;

bool contract_blocking;

void contract_start(struct schedule *schedule, const struct contract_ops *ops)
{
	contract.schedule = schedule;
	contract.ops = ops;
	contract.in_vain = 0;
	contract_blocking = false;
}

struct tq_locator contract_locator(int process)
{
	return (struct tq_locator){.port = 100 + (uint32_t)process,
				   .number = 200 + (uint32_t)process};
}

void contract_introduce(void)
{
	struct tq_ep *ep = contract.ep;

	for (int i = 0; i < CONTRACT_PROCESSES; i++) {
		struct tq_locator locator = contract_locator(i);

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

struct tq_params *tq_params_new(void)
{
	return calloc(1, sizeof(struct tq_params));
}

void tq_params_free(struct tq_params *params)
{
	free(params);
}

int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size)
{
	(void)params;
	(void)name;
	(void)value;
	(void)why;
	(void)size;
	return -EINVAL;
}

const struct tq_counter_desc *tq_counter_desc(unsigned i)
{
	(void)i;
	return NULL;
}

uint64_t tq_counter(const struct tq_ep *ep, unsigned i)
{
	(void)ep;
	return i;
}

const char *tq_device_text(const struct tq_ep *ep)
{
	(void)ep;
	return "a device";
}

int tq_thread_progress(struct tq_ep *ep, bool on)
{
	(void)ep;
	return on ? -ENOTSUP : 0;
}

int tq_progress(struct tq_ep *ep)
{
	unsigned n;

	(void)ep;
	if (!contract_blocking)
		return 0;
	n = contract_steps();
	contract.in_vain = n ? 0 : contract.in_vain + 1;
	t_true(contract.in_vain < PATIENCE, "a call waits for ever");
	if (n)
		contract_step(schedule_choose(contract.schedule, n));
	return n > 0;
}

/* ---- processes ---- */

int tq_locator(const struct tq_ep *ep, struct tq_locator *locator)
{
	(void)ep;
	*locator = contract_locator(0);
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
	t_true(locator->port == contract_locator(0).port, "a process is looked up that was found");
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

int tq_peer_error(struct tq_peer *peer)
{
	(void)peer;
	return 0;
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

/* ---- matching ---- */

static bool fits(const struct entry *entry, const struct tq_ctx *ctx,
		 const struct contract_message *message)
{
	return (entry->rank == TQ_ANY_SOURCE ||
		(entry->rank < ctx->nranks && ctx->process_of[entry->rank] == message->from)) &&
	       !((entry->bits ^ message->bits) & ~entry->ignore);
}

static struct tq_envelope envelope_of(const struct tq_ctx *ctx,
				      const struct contract_message *message, void *taken)
{
	return (struct tq_envelope){
		.source = ctx->rank_of[message->from],
		.bits = message->bits,
		.length = message->len,
		.header = message->header,
		.taken = taken,
	};
}

static void transfer(struct tq_ctx *ctx, const struct contract_message *message,
		     const struct tq_take *take, void *taken, tq_entry_id queue_id)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	transfer->ctx = ctx;
	transfer->message = *message;
	transfer->buf = taken ? (struct tq_buf){0} : take->buf;
	transfer->user = take->user;
	transfer->taken = taken;
	transfer->queue_id = queue_id;
	DL_APPEND(contract.ep->transfers, transfer);
}

static void remove_entry(struct tq_ctx *ctx, struct entry *entry)
{
	DL_DELETE(ctx->entries, entry);
	free(entry);
}

/* Asks an entry about a message. Returns true if the message is taken. */
static bool ask(struct tq_ctx *ctx, struct entry *entry, const struct contract_message *message,
		void *taken, enum tq_verdict *verdict)
{
	const struct tq_envelope envelope = envelope_of(ctx, message, taken);
	struct tq_take take = {.buf = entry->buf, .user = entry->user};

	*verdict = ctx->ops->match(ctx->arg, entry->user, &envelope, &take);
	if (*verdict != TQ_TAKE && *verdict != TQ_TAKE_STAY)
		return false;
	transfer(ctx, message, &take, taken, 0);
	return true;
}

static void offer(struct tq_ctx *ctx, const struct contract_message *message)
{
	const struct tq_envelope envelope = envelope_of(ctx, message, NULL);
	struct tq_take take = {.user = NULL};
	enum tq_disposition disposition = ctx->ops->unexpected(ctx->arg, &envelope, &take);
	struct waiting *waiting;

	t_true(disposition != TQ_KEEP, "a message is left at its sender");
	if (take.user)
		transfer(ctx, message, &take, NULL, 0);
	if (disposition == TQ_DROP)
		return;
	waiting = calloc(1, sizeof(*waiting));
	waiting->message = *message;
	waiting->user = take.user;
	DL_APPEND(ctx->waiting, waiting);
}

/* Returns the entry that the HCA may match: the first that fits, if it lies in a queue. */
static struct entry *queue_entry(const struct tq_ctx *ctx, const struct contract_message *message)
{
	struct entry *entry;

	if (message->matched || (ctx->closed && !ctx->recalling))
		return NULL;
	DL_FOREACH(ctx->entries, entry) {
		if (fits(entry, ctx, message))
			return entry->queue ? entry : NULL;
	}
	return NULL;
}

static void match_by_library(struct tq_ctx *ctx, const struct contract_message *message)
{
	struct entry *entry, *next;
	enum tq_verdict verdict;

	contract.ops->arrives(message->id, NULL);
	DL_FOREACH_SAFE(ctx->closed ? NULL : ctx->entries, entry, next) {
		if (!fits(entry, ctx, message) || !ask(ctx, entry, message, NULL, &verdict))
			continue;
		if (verdict == TQ_TAKE)
			remove_entry(ctx, entry);
		return;
	}
	offer(ctx, message);
}

static void match_by_hca(struct tq_ctx *ctx, struct entry *entry,
			 const struct contract_message *message)
{
	const struct tq_take take = {.buf = entry->buf, .user = entry->user};

	contract.ops->arrives(message->id, entry->user);
	transfer(ctx, message, &take, NULL, entry->id);
	remove_entry(ctx, entry);
}

static void arrive(int from)
{
	struct arrival *arrival = contract.ep->arrivals[from];
	struct tq_ctx *ctx = contract.ep->ctxs[arrival->ctx];
	struct entry *entry = queue_entry(ctx, &arrival->message);

	DL_DELETE(contract.ep->arrivals[from], arrival);
	tq_ctx_join(ctx, &contract.ep->peers[from]);
	if (entry && schedule_choose(contract.schedule, 2))
		match_by_hca(ctx, entry, &arrival->message);
	else
		match_by_library(ctx, &arrival->message);
	free(arrival);
}

void contract_send(unsigned ctx, const struct contract_message *message)
{
	struct arrival *arrival = calloc(1, sizeof(*arrival));

	arrival->ctx = ctx;
	arrival->message = *message;
	DL_APPEND(contract.ep->arrivals[message->from], arrival);
}

/* ---- entries ---- */

/* Asks a new entry about what waits. Returns how many it has taken; sets *gone if the entry isn't
 * to be appended. */
static int ask_about_waiting(struct tq_ctx *ctx, struct entry *entry, bool *gone)
{
	struct waiting *waiting, *next;
	enum tq_verdict verdict;
	int taken = 0;

	DL_FOREACH_SAFE(ctx->waiting, waiting, next) {
		if (!fits(entry, ctx, &waiting->message))
			continue;
		if (ask(ctx, entry, &waiting->message, waiting->user, &verdict)) {
			taken++;
			DL_DELETE(ctx->waiting, waiting);
			free(waiting);
		}
		if (verdict == TQ_TAKE || verdict == TQ_STOP) {
			*gone = true;
			break;
		}
	}
	return taken;
}

int tq_entry_append(struct tq_ctx *ctx, int rank, uint64_t bits, uint64_t ignore,
		    const struct tq_buf *buf, unsigned flags, void *user, tq_entry_id *id)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	bool gone = flags & TQ_ENTRY_SEARCH;
	int taken;

	entry->id = contract.ep->next_id++;
	entry->rank = rank;
	entry->bits = bits;
	entry->ignore = ignore;
	entry->queue = flags & TQ_ENTRY_QUEUE && rank != TQ_ANY_SOURCE;
	entry->buf = buf ? *buf : (struct tq_buf){0};
	entry->user = user;
	if (id)
		*id = entry->id;
	taken = ask_about_waiting(ctx, entry, &gone);
	if (gone)
		free(entry);
	else
		DL_APPEND(ctx->entries, entry);
	return taken;
}

int tq_entry_remove(struct tq_ctx *ctx, tq_entry_id id)
{
	const struct transfer *transfer;
	struct entry *entry;

	DL_FOREACH(contract.ep->transfers, transfer) {
		if (transfer->queue_id == id)
			return -EAGAIN;
	}
	DL_FOREACH(ctx->entries, entry) {
		if (entry->id != id)
			continue;
		if (entry->queue && schedule_choose(contract.schedule, 2)) {
			/* Was in its queue, and comes back. */
			entry->queue = false;
			return -EAGAIN;
		}
		remove_entry(ctx, entry);
		contract.ops->removed();
		return 0;
	}
	return -ENOENT;
}

/* ---- answers ---- */

static void deliver_answer(int to, const void *header, const struct tq_buf *buf)
{
	uint8_t data[64];

	t_true(buf->len <= sizeof(data), "an answer with %d bytes", (int)buf->len);
	if (buf->ops)
		buf->ops->pack(buf->arg, 0, data, buf->len);
	else if (buf->len)
		memcpy(data, buf->addr, buf->len);
	contract.ops->answered(to, header, data, buf->len);
}

int tq_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		 const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	struct answer *answer;

	(void)bits;
	(void)flags;
	t_true(ctx->number == CONTRACT_REPLY && rank >= 0 && rank < ctx->nranks,
	       "a message that is no answer");
	if (!buf->len) {
		deliver_answer(ctx->process_of[rank], header, buf);
		return 1;
	}
	answer = calloc(1, sizeof(*answer));
	answer->to = ctx->process_of[rank];
	answer->buf = *buf;
	answer->user = user;
	memcpy(answer->header, header, ctx->header_len);
	DL_APPEND(contract.ep->answers, answer);
	*req = NULL;
	return 0;
}

/* ---- steps ---- */

static void end_transfer(struct transfer *transfer)
{
	const struct contract_message *message = &transfer->message;
	const struct tq_match_ops *ops = transfer->ctx->ops;
	struct tq_buf *buf = &transfer->buf;
	uint64_t n = message->len < buf->len ? message->len : buf->len;
	const struct tq_arrival arrival = {
		.envelope = envelope_of(transfer->ctx, message, transfer->taken),
		.received = n,
		.queue = transfer->queue_id,
	};

	DL_DELETE(contract.ep->transfers, transfer);
	if (buf->ops)
		buf->ops->unpack(buf->arg, 0, message->data, n);
	else if (n)
		memcpy(buf->addr, message->data, n);
	ops->done(transfer->ctx->arg, transfer->user, &arrival);
	if (!transfer->taken)
		contract.ops->stored(message->id);
	free(transfer);
}

static void end_answer(struct answer *answer)
{
	const struct tq_status status = {0};

	DL_DELETE(contract.ep->answers, answer);
	deliver_answer(answer->to, answer->header, &answer->buf);
	contract.ep->job.complete(answer->user, &status);
	free(answer);
}

/* Counts the possible steps; takes the step `which`, unless that is -1. */
static unsigned steps(int which)
{
	struct tq_ep *ep = contract.ep;
	struct transfer *transfer, *next_transfer;
	struct answer *answer, *next_answer;
	int n = 0;

	for (int i = 1; i < CONTRACT_PROCESSES; i++) {
		if (ep->arrivals[i] && n++ == which) {
			arrive(i);
			return 0;
		}
	}
	DL_FOREACH_SAFE(ep->transfers, transfer, next_transfer) {
		if (n++ == which) {
			end_transfer(transfer);
			return 0;
		}
	}
	DL_FOREACH_SAFE(ep->answers, answer, next_answer) {
		if (n++ == which) {
			end_answer(answer);
			return 0;
		}
	}
	for (unsigned i = 0; i < ep->nctxs; i++) {
		if (ep->ctxs[i]->recalling && n++ == which)
			ep->ctxs[i]->recalling = false;
	}
	return (unsigned)n;
}

unsigned contract_steps(void)
{
	return steps(-1);
}

void contract_step(unsigned which)
{
	steps((int)which);
}
