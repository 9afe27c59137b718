/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts with match bits (tupleq/match.h): an endpoint has one for untagged and one for tagged
 * messages, whose ids are made of the endpoint's number. To send to an endpoint, a process needs
 * contexts of that number, too. Endpoints' numbers are not used again in a domain, so that late
 * messages for an endpoint that was closed reach no other one: its contexts drop them.
 */
#ifndef TF_CONTEXTS_H
#define TF_CONTEXTS_H

#include <stdatomic.h>
#include <stdint.h>

#include <uthash.h>

#include "domain.h"

struct tf_ep;

enum tf_kind { TF_MSG, TF_TAGGED, TF_KINDS };

/* The most endpoints that a domain can have in its life. */
#define TF_NUMBERS (UINT32_C(1) << 28)

struct tf_contexts {
	uint32_t number;
	struct tf_domain *domain;
	struct tq_ctx *ctx[TF_KINDS];
	_Atomic(struct tf_ep *) ep; /* NULL: no endpoint here has this number */
	UT_hash_handle hh;
};

/* Returns the contexts of a number, after adding them if necessary; NULL without memory, or if no
 * endpoint can have that number. Called without the domain's lock. */
struct tf_contexts *tf_contexts_get(struct tf_domain *domain, uint32_t number);
/* Ends the contexts of a domain that is being closed, which has no endpoint. */
void tf_contexts_remove(struct tf_domain *domain);
/* Frees them, after the transport. */
void tf_contexts_free(struct tf_domain *domain);

#endif
