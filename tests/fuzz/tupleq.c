/* SPDX-License-Identifier: BSD-3-Clause */
#include "tupleq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tupleq/match.h>
#include <utlist.h>

#include "../expect.h"

struct entry {
	tq_entry_id id;
	int rank;
	uint64_t bits, ignore;
	struct tq_buf buf;
	unsigned flags;
	void *user;
	struct entry *prev, *next;
};

/* A message that waits for an entry, or whose data are under way. */
struct message {
	struct tq_ctx *ctx;
	struct tq_envelope envelope;
	struct tq_take take;
	unsigned char header[TQ_HEADER_MAX];
	struct message *prev, *next;
	unsigned char data[];
};

struct tq_ctx {
	uint32_t id;
	size_t header_len;
	const struct tq_match_ops *ops;
	void *arg;
	struct entry *entries;
	struct message *waiting;
	struct tq_ctx *prev, *next;
};

static struct {
	struct tq_ctx *contexts;
	struct message *under_way;
	struct fake_answer answer;
	uint32_t next_id;
} fake;

void fake_start(void)
{
	memset(&fake, 0, sizeof(fake));
}

void fake_nothing_left(void)
{
	t_holds(!fake.contexts && !fake.under_way && !fake_registrations());
}

/* ---- messages ---- */

/* Starts the transfer of a message's data. */
static void start(struct message *message)
{
	DL_APPEND(fake.under_way, message);
}

/* Lets an entry decide on a message that fits it. Returns true if the entry takes it. */
static bool offer(struct tq_ctx *ctx, struct entry *entry, struct message *message, bool *stop)
{
	enum tq_verdict verdict = TQ_TAKE;

	*stop = false;
	if ((entry->rank != TQ_ANY_SOURCE && entry->rank != message->envelope.source) ||
	    ((entry->bits ^ message->envelope.bits) & ~entry->ignore))
		return false;
	message->take = (struct tq_take){entry->buf, entry->user};
	if (!(entry->flags & TQ_ENTRY_QUEUE))
		verdict =
			ctx->ops->match(ctx->arg, entry->user, &message->envelope, &message->take);
	*stop = verdict == TQ_TAKE || verdict == TQ_STOP;
	if ((verdict == TQ_TAKE || verdict == TQ_STOP) && !(entry->flags & TQ_ENTRY_SEARCH)) {
		t_holds(verdict == TQ_TAKE);
		DL_DELETE(ctx->entries, entry);
		free(entry);
	}
	return verdict == TQ_TAKE || verdict == TQ_TAKE_STAY;
}

void fake_message(uint32_t id, unsigned peer, uint64_t bits, const void *header, const void *data,
		  size_t len)
{
	struct entry *entry, *next;
	struct message *message;
	struct tq_ctx *ctx;
	bool stop;

	DL_SEARCH_SCALAR(fake.contexts, ctx, id, id);
	if (!ctx)
		return;
	message = calloc(1, sizeof(*message) + len);
	message->ctx = ctx;
	memcpy(message->header, header, ctx->header_len);
	memcpy(message->data, data, len);
	message->envelope = (struct tq_envelope){
		.source = (int32_t)peer,
		.peer = fake_peer(peer),
		.bits = bits,
		.length = len,
		.header = message->header,
	};
	DL_FOREACH_SAFE(ctx->entries, entry, next) {
		if (offer(ctx, entry, message, &stop)) {
			start(message);
			return;
		}
	}
	message->take = (struct tq_take){0};
	switch (ctx->ops->unexpected(ctx->arg, &message->envelope, &message->take)) {
	case TQ_KEEP:
		DL_APPEND(ctx->waiting, message);
		return;
	case TQ_DROP:
		if (message->take.user) {
			start(message);
			return;
		}
		break;
	case TQ_STORE:
		t_fail("the provider stores a message");
	}
	free(message);
}

/* Ends a transfer. */
static void end(struct message *message, int error)
{
	const struct tq_buf *buf = &message->take.buf;
	uint64_t len = message->envelope.length < buf->len ? message->envelope.length : buf->len;
	const struct tq_arrival arrival = {error, message->envelope, error ? 0 : len, false};

	DL_DELETE(fake.under_way, message);
	if (!error && len && buf->ops)
		buf->ops->unpack(buf->arg, 0, message->data, len);
	else if (!error && len)
		memcpy(buf->addr, message->data, len);
	message->ctx->ops->done(message->ctx->arg, message->take.user, &arrival);
	free(message);
}

void fake_deliver(bool fails)
{
	if (fake.under_way)
		end(fake.under_way, fails ? -EIO : 0);
}

void fake_deliver_all(void)
{
	while (fake.under_way)
		fake_deliver(false);
}

/* Takes an entry out of the list, because its source has failed. */
static void fail(struct tq_ctx *ctx, struct entry *entry)
{
	const struct tq_arrival arrival = {.error = -EIO};
	void *user = entry->user;

	DL_DELETE(ctx->entries, entry);
	free(entry);
	ctx->ops->done(ctx->arg, user, &arrival);
}

void fake_drain(void)
{
	struct tq_ctx *ctx;

	fake_deliver_all();
	DL_SEARCH_SCALAR(fake.contexts, ctx, id, FAKE_ANSWERS);
	while (ctx->entries)
		fail(ctx, ctx->entries);
}

const struct fake_answer *fake_answer(void)
{
	return &fake.answer;
}

void fake_forget_answer(void)
{
	fake.answer.count = 0;
}

/* ---- what the provider calls: contexts ---- */

int tq_ctx_add_bits(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, size_t header_len, const struct tq_match_ops *ops,
		    void *arg, struct tq_ctx **ctx)
{
	(void)ep;
	(void)peers;
	(void)npeers;
	(void)rank;
	(void)flags;
	*ctx = calloc(1, sizeof(**ctx));
	(*ctx)->id = id;
	(*ctx)->header_len = header_len;
	(*ctx)->ops = ops;
	(*ctx)->arg = arg;
	DL_APPEND(fake.contexts, *ctx);
	return 0;
}

int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	(void)ctx;
	return (int)fake_index(peer);
}

void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	(void)ctx;
	(void)flags;
}

void tq_ctx_remove(struct tq_ctx *ctx)
{
	t_holds(!ctx->entries);
	/* Operations that are under way still end. */
	fake_deliver_all();
	while (ctx->waiting) {
		struct message *message = ctx->waiting;

		DL_DELETE(ctx->waiting, message);
		free(message);
	}
	DL_DELETE(fake.contexts, ctx);
	free(ctx);
}

int tq_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		 const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	(void)rank;
	(void)bits;
	(void)flags;
	(void)user;
	(void)req;
	if (ctx->id == FAKE_ANSWERS) {
		t_holds(buf->len <= sizeof(fake.answer.data));
		fake.answer.count++;
		memcpy(&fake.answer.error, header, sizeof(fake.answer.error));
		fake.answer.len = buf->len;
		if (buf->len)
			memcpy(fake.answer.data, buf->addr, buf->len);
	}
	return 1;
}

int tq_entry_append(struct tq_ctx *ctx, int rank, uint64_t bits, uint64_t ignore,
		    const struct tq_buf *buf, unsigned flags, void *user, tq_entry_id *id)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct message *message, *next;
	bool stop = false;
	int taken = 0;

	*entry = (struct entry){.id = ++fake.next_id,
				.rank = rank,
				.bits = bits,
				.ignore = ignore,
				.flags = flags,
				.user = user};
	if (buf)
		entry->buf = *buf;
	if (id)
		*id = entry->id;
	if (!(flags & TQ_ENTRY_SEARCH))
		DL_APPEND(ctx->entries, entry);
	DL_FOREACH_SAFE(ctx->waiting, message, next) {
		if (offer(ctx, entry, message, &stop)) {
			DL_DELETE(ctx->waiting, message);
			start(message);
			taken++;
		}
		if (stop)
			break;
	}
	if (flags & TQ_ENTRY_SEARCH)
		free(entry);
	return taken;
}

int tq_entry_remove(struct tq_ctx *ctx, tq_entry_id id)
{
	struct entry *entry;

	DL_SEARCH_SCALAR(ctx->entries, entry, id, id);
	if (!entry)
		return -ENOENT;
	DL_DELETE(ctx->entries, entry);
	free(entry);
	return 0;
}
