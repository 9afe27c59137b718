/* SPDX-License-Identifier: BSD-3-Clause */
#include "recv_match.h"

#include <stdlib.h>
#include <string.h>

#include "contexts.h"
#include "peek.h"
#include "recv.h"
#include "recv_end.h"
#include "wire.h"

/* ---- which receive takes a message ---- */

static bool is_from(const struct tf_peer *peer, const struct tq_envelope *envelope)
{
	struct tq_peer *tq = atomic_load_explicit(&peer->tq, memory_order_acquire);
	struct tq_locator locator;

	if (tq == envelope->peer)
		return true;
	return !tq_peer_locator(envelope->peer, &locator) && locator.port == peer->locator.port &&
	       locator.number == peer->locator.number;
}

/* Returns true if the message comes from the endpoint that the receive names. */
static bool fits(const struct tf_source *source, const struct tq_envelope *envelope)
{
	struct tf_header header;

	if (!source->peer)
		return true;
	memcpy(&header, envelope->header, sizeof(header));
	return le32toh(header.endpoint) == source->number && is_from(source->peer, envelope);
}

/* Gives the message the next bytes of a buffer with FI_MULTI_RECV. */
static enum tq_verdict take_part(struct tf_recv *recv, const struct tq_envelope *envelope,
				 struct tq_take *take)
{
	struct tf_part *part = malloc(sizeof(*part));
	size_t len = envelope->length < recv->left ? envelope->length : recv->left;

	if (!part)
		return TQ_PASS;
	*part = (struct tf_part){TF_TAG_PART, recv, recv->at};
	take->buf = (struct tq_buf){.addr = recv->at, .len = len};
	take->user = part;
	recv->at += len;
	recv->left -= len;
	/* The last message takes over what the posted buffer counts for. */
	if (recv->left < recv->min_left)
		return TQ_TAKE;
	atomic_fetch_add(&recv->parts, 1);
	return TQ_TAKE_STAY;
}

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	struct tf_search *search = entry;
	struct tf_recv *recv = entry;

	(void)arg;
	if (*(const enum tf_tag *)entry == TF_TAG_SEARCH) {
		return fits(&search->source, envelope) ? tf_search_match(search, envelope, take)
						       : TQ_PASS;
	}
	if (!fits(&recv->source, envelope))
		return TQ_PASS;
	return recv->multi ? take_part(recv, envelope, take) : TQ_TAKE;
}

/* ---- what no receive takes, and what has come ---- */

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	struct tf_contexts *contexts = arg;

	(void)envelope;
	(void)take;
	return atomic_load(&contexts->ep) ? TQ_KEEP : TQ_DROP;
}

static void done(void *arg, void *user, const struct tq_arrival *message)
{
	(void)arg;
	switch (*(const enum tf_tag *)user) {
	case TF_TAG_RECV:
		tf_recv_end(user, message);
		break;
	case TF_TAG_PART:
		tf_recv_end_part(user, message);
		break;
	case TF_TAG_CLAIM:
		tf_claim_arrived(user, message);
		break;
	case TF_TAG_SEARCH:
		break;
	}
}

const struct tq_match_ops tf_recv_ops = {match, unexpected, done};
