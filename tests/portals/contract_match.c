/* SPDX-License-Identifier: BSD-3-Clause */
/* contract_match.c - see contract.h: messages are matched, stored and answered. */
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "contract_objects.h"

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
		.peer = &contract.ep->peers[message->from],
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
	if (!taken)
		transfer->buf = take->buf;
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

/* Asks a new entry about the waiting messages. Returns how many of them the entry has taken; sets
 * *gone if the entry isn't to be appended. */
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
			/* The entry comes back from its queue. */
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
