/* SPDX-License-Identifier: BSD-3-Clause */
#include "contexts.h"

#include <stdlib.h>

#include "recv_match.h"
#include "wire.h"

#define IDS 4 /* of contexts for one number */

static uint32_t id_of(uint32_t number, enum tf_kind kind)
{
	return number * IDS + (uint32_t)kind;
}

/* Adds the contexts to libtupleq. */
static int add(struct tf_contexts *contexts)
{
	for (unsigned kind = 0; kind < TF_KINDS; kind++) {
		int rc = tq_ctx_add_bits(contexts->domain->tq, id_of(contexts->number, kind), NULL,
					 0, 0, TQ_CTX_OPEN, sizeof(struct tf_header), &tf_recv_ops,
					 contexts, &contexts->ctx[kind]);

		if (rc) {
			while (kind--)
				tq_ctx_remove(contexts->ctx[kind]);
			return rc;
		}
	}
	return 0;
}

struct tf_contexts *tf_contexts_get(struct tf_domain *domain, uint32_t number)
{
	struct tf_contexts *contexts;

	if (number >= TF_NUMBERS)
		return NULL;
	pthread_mutex_lock(&domain->lock);
	HASH_FIND(hh, domain->contexts, &number, sizeof(number), contexts);
	if (!contexts) {
		contexts = calloc(1, sizeof(*contexts));
		if (contexts) {
			contexts->number = number;
			contexts->domain = domain;
			/* unexpected() takes no lock of this library. */
			if (add(contexts)) {
				free(contexts);
				contexts = NULL;
			} else {
				HASH_ADD(hh, domain->contexts, number, sizeof(number), contexts);
			}
		}
	}
	pthread_mutex_unlock(&domain->lock);
	return contexts;
}

void tf_contexts_remove(struct tf_domain *domain)
{
	struct tf_contexts *contexts;

	for (contexts = domain->contexts; contexts; contexts = contexts->hh.next) {
		for (unsigned kind = 0; kind < TF_KINDS; kind++)
			tq_ctx_remove(contexts->ctx[kind]);
	}
}

void tf_contexts_free(struct tf_domain *domain)
{
	struct tf_contexts *contexts, *tmp;

	HASH_ITER(hh, domain->contexts, contexts, tmp) {
		HASH_DEL(domain->contexts, contexts);
		free(contexts);
	}
}
