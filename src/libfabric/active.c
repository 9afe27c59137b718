/* SPDX-License-Identifier: BSD-3-Clause */
#include "active.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "vector.h"

/* Beyond those of all endpoints (contexts.h). */
#define REQUESTS UINT32_C(0xfffffff0)
#define ANSWERS  UINT32_C(0xfffffff1)

struct tf_active {
	struct tf_domain *domain;
	tf_carry_out *carry_out;
	struct tq_ctx *requests, *answers;
	_Atomic(uint64_t) tickets;
};

/* ---- sending ---- */

/* A copy of a message's data on their way. */
struct message {
	struct tf_ending ending;
	_Alignas(16) char data[];
};

static void on_sent(struct tf_ending *ending, int error)
{
	/* A connection that has failed is the end of the answer's entry. */
	(void)error;
	free(ending);
}

/* Sends a copy of the data. Returns 0 or a negative errno. */
static int send_copy(struct tq_ctx *ctx, struct tq_peer *peer, uint64_t bits, const void *header,
		     const struct iovec *data, size_t count)
{
	size_t len = tf_vector_len(data, count);
	struct message *message = malloc(sizeof(*message) + len);
	struct tq_buf buf = {.len = len};
	struct tq_req *req;
	int rank, rc;

	if (!message)
		return -ENOMEM;
	message->ending.end = on_sent;
	buf.addr = message->data;
	tf_vector_gather(data, count, message->data);
	rank = tq_ctx_join(ctx, peer);
	rc = rank < 0 ? rank
		      : tq_send_bits(ctx, rank, bits, header, &buf,
				     TQ_SEND_NO_QUEUE | TQ_SEND_BUFFERED, &message->ending, &req);
	if (rc)
		free(message);
	return rc < 0 ? rc : 0;
}

int tf_active_send(struct tf_domain *domain, struct tq_peer *peer, struct tf_request *request,
		   const struct iovec *data, size_t count, struct tf_call *call, void *answer)
{
	struct tf_active *active = domain->active;
	struct tq_buf buf = {.addr = answer, .len = call ? call->expected : 0};
	tq_entry_id id;
	int rank, rc;

	request->ticket = 0;
	if (!call)
		return send_copy(active->requests, peer, 0, request, data, count);
	request->ticket = atomic_fetch_add(&active->tickets, 1) + 1;
	rank = tq_ctx_join(active->answers, peer);
	if (rank < 0)
		return rank;
	rc = tq_entry_append(active->answers, rank, request->ticket, 0, &buf, 0, call, &id);
	if (rc < 0)
		return rc;
	rc = send_copy(active->requests, peer, 0, request, data, count);
	/* Without the entry the connection has failed, and the call has ended or is about to. */
	if (rc && tq_entry_remove(active->answers, id))
		rc = 0;
	return rc;
}

/* ---- answers ---- */

static enum tq_verdict take_answer(void *arg, void *entry, const struct tq_envelope *envelope,
				   struct tq_take *take)
{
	(void)arg;
	(void)entry;
	(void)envelope;
	(void)take;
	return TQ_TAKE;
}

/* An answer to no request: its sender's fault. */
static enum tq_disposition drop_answer(void *arg, const struct tq_envelope *envelope,
				       struct tq_take *take)
{
	(void)arg;
	(void)envelope;
	(void)take;
	return TQ_DROP;
}

static void on_answer(void *arg, void *user, const struct tq_arrival *arrival)
{
	struct tf_call *call = user;
	struct tf_answer answer;
	int error = arrival->error;

	(void)arg;
	if (!error) {
		memcpy(&answer, arrival->envelope.header, sizeof(answer));
		if (answer.error)
			error = answer.error < INT16_MAX ? -(int)answer.error : -EPROTO;
		else if (arrival->envelope.length != call->expected)
			error = -EPROTO;
	}
	call->end(call, error);
}

static const struct tq_match_ops answer_ops = {
	.match = take_answer,
	.unexpected = drop_answer,
	.done = on_answer,
};

/* ---- requests ---- */

/* A request whose data come. */
struct incoming {
	size_t len;
	_Alignas(16) char data[];
};

/* Stands for a request for which there was no memory. */
static struct incoming no_memory;

static enum tq_verdict no_entry(void *arg, void *entry, const struct tq_envelope *envelope,
				struct tq_take *take)
{
	(void)arg;
	(void)entry;
	(void)envelope;
	(void)take;
	return TQ_PASS;
}

static enum tq_disposition on_request(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	struct incoming *incoming = NULL;

	(void)arg;
	if (envelope->length <= TF_REQUEST_MAX)
		incoming = malloc(sizeof(*incoming) + envelope->length);
	if (incoming) {
		incoming->len = envelope->length;
		take->buf.addr = incoming->data;
		take->buf.len = incoming->len;
	}
	take->user = incoming ? incoming : &no_memory;
	return TQ_DROP;
}

/* Carries a request out, whose data have come, and answers it. */
static void on_request_data(void *arg, void *user, const struct tq_arrival *arrival)
{
	struct tf_active *active = arg;
	struct incoming *incoming = user;
	struct tf_answer answer = {.error = ENOMEM};
	struct tf_request request;
	struct iovec data;
	size_t len = 0;

	if (arrival->error)
		goto free;
	memcpy(&request, arrival->envelope.header, sizeof(request));
	if (incoming != &no_memory) {
		len = incoming->len;
		answer.error = (uint64_t)-active->carry_out(active->domain, &request,
							    incoming->data, &len);
	}
	if (answer.error)
		len = 0;
	/* Without an answer the connection has failed, or memory is so short that the peer will
	 * have to notice. */
	data = (struct iovec){incoming->data, len};
	if (request.ticket && send_copy(active->answers, arrival->envelope.peer, request.ticket,
					&answer, &data, 1) == -ENOMEM)
		tq_peer_give_up(arrival->envelope.peer, "no memory for an answer is left");
free:
	if (incoming != &no_memory)
		free(incoming);
}

static const struct tq_match_ops request_ops = {
	.match = no_entry,
	.unexpected = on_request,
	.done = on_request_data,
};

/* ---- opening ---- */

int tf_active_open(struct tf_domain *domain, tf_carry_out *carry_out)
{
	struct tf_active *active = calloc(1, sizeof(*active));
	int rc;

	if (!active)
		return -ENOMEM;
	active->domain = domain;
	active->carry_out = carry_out;
	domain->active = active;
	rc = tq_ctx_add_bits(domain->tq, ANSWERS, NULL, 0, 0, TQ_CTX_OPEN, sizeof(struct tf_answer),
			     &answer_ops, active, &active->answers);
	if (rc)
		goto free;
	rc = tq_ctx_add_bits(domain->tq, REQUESTS, NULL, 0, 0, TQ_CTX_OPEN | TQ_CTX_SERVED,
			     sizeof(struct tf_request), &request_ops, active, &active->requests);
	if (rc)
		goto remove;
	return 0;
remove:
	tq_ctx_remove(active->answers);
free:
	free(active);
	domain->active = NULL;
	return rc;
}

void tf_active_remove(struct tf_domain *domain)
{
	if (!domain->active)
		return;
	tq_ctx_remove(domain->active->requests);
	tq_ctx_remove(domain->active->answers);
}

void tf_active_free(struct tf_domain *domain)
{
	free(domain->active);
	domain->active = NULL;
}
