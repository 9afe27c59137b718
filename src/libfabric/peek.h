/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for a message that waits (FI_PEEK), and taking it out of the queues (FI_CLAIM), so that
 * only one later receive gets it, or none (FI_DISCARD). A claimed message is copied to memory of
 * the provider.
 */
#ifndef TF_PEEK_H
#define TF_PEEK_H

#include <stdbool.h>

#include <tupleq/match.h>

#include "recv.h"

/* A search among the messages that wait. */
struct tf_search {
	enum tf_tag tag;
	struct tf_source source;
	struct tf_op op; /* only its completion is used */
	enum tf_kind kind;
	bool discard, all;      /* takes the message without its data; takes each one */
	struct tf_claim *claim; /* FI_CLAIM: takes the message */
	bool failed;            /* the source has ended */
	/* Set by match(): */
	bool found;
	struct tq_envelope envelope;
	unsigned char header[TQ_HEADER_MAX];
};

/* Receives as the flags say. FI_PEEK: looks for a message, and adds a completion, or an error with
 * FI_ENOMSG, or FI_EIO if its source has failed. FI_CLAIM alone: receives, or discards, the message
 * that was claimed with this context. Without them: tf_recv(). Returns 0 or a negative error. */
ssize_t tf_recv_or_peek(struct tf_ep *ep, const struct tf_recv_args *args);
/* Decides on a message that fits the search. */
enum tq_verdict tf_search_match(struct tf_search *search, const struct tq_envelope *envelope,
				struct tq_take *take);
/* Takes note that the data of a claimed message have come. */
void tf_claim_arrived(struct tf_claim *claim, const struct tq_arrival *message);
/* Discards all messages that wait or were claimed, when the endpoint is closed and nothing comes to
 * its buffers any more. */
void tf_peek_end_all(struct tf_ep *ep);

#endif
