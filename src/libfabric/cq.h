/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues. A queue grows as needed, so that no completion is lost; but operations are
 * refused with -FI_EAGAIN while it holds as many completions as its user asked room for.
 */
#ifndef TF_CQ_H
#define TF_CQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "domain.h"
#include "wait.h"

/* A completion, or an error if `err` isn't 0. */
struct tf_completion {
	struct fi_cq_tagged_entry entry;
	fi_addr_t source; /* or FI_ADDR_NOTAVAIL */
	int err;
	size_t olen;
};

struct tf_cq {
	struct fid_cq fid;
	struct tf_domain *domain;
	atomic_uint users; /* endpoints */
	enum fi_cq_format format;
	size_t size;
	struct tf_wait wait;
	atomic_bool signaled; /* fi_cq_signal() */
	pthread_mutex_t lock;
	/* A ring, changed with the lock: */
	struct tf_completion *ring;
	size_t room, first; /* the room is a power of two */
	atomic_size_t count;
};

int tf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
	       void *context);
int tf_cq_trywait(struct fid *fid);
/* Adds a completion or an error. */
void tf_cq_add(struct tf_cq *cq, const struct tf_completion *completion);

/* Returns true if no further operation may be started. */
static inline bool tf_cq_is_full(const struct tf_cq *cq)
{
	return atomic_load_explicit(&cq->count, memory_order_relaxed) >= cq->size;
}

#endif
