/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations that are under way. An operation has parts, one for each piece of memory at
 * the target, and ends with the last of them. Then the target gets the data for its completion
 * queue, if the user has given any, and events for the counters of its endpoint and of the
 * registrations (FI_RMA_EVENT), and the operation is reported.
 */
#ifndef TF_OPERATION_H
#define TF_OPERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "active.h"
#include "ep.h"
#include "vector.h"

struct tf_operation {
	struct tf_op op;
	struct tq_peer *peer;
	uint32_t number; /* of the target's endpoint */
	uint8_t flags;   /* TF_REQUEST_DATA */
	uint8_t nkeys;
	uint64_t keys[TF_IOV_LIMIT]; /* of registrations there that count the operation */
	uint64_t data;
	size_t len;
	atomic_size_t parts; /* under way, and one for the function that starts them */
	atomic_int error;    /* of the first part that failed; 0 */
	/* Frees the operation, of which nothing is used any more; may store results before. */
	void (*free)(struct tf_operation *operation, int error);
};

/* The arguments of a call that all one-sided operations have. */
struct tf_operation_args {
	fi_addr_t target;
	void *context;
	uint64_t data;
	uint64_t flags;      /* of the call, such as FI_COMPLETION */
	bool quiet;          /* success is never reported: fi_inject_write() */
	enum tf_count count; /* TF_COUNT_READ or TF_COUNT_WRITE */
	uint64_t kind;       /* FI_RMA or FI_ATOMIC */
	size_t len;
};

/*
 * Begins an operation whose `free` is set, with the part of the function that starts its parts.
 * Returns 0; -FI_EAGAIN if the target's address is not there yet, or too much is under way; or
 * another error. Then the operation is the caller's.
 */
int tf_operation_begin(struct tf_operation *operation, struct tf_ep *ep,
		       const struct tf_operation_args *args);

/* Names a registration at the target to an operation that has begun. */
void tf_operation_name(struct tf_operation *operation, uint64_t key);

/* Counts a part before it is started. */
static inline void tf_operation_add(struct tf_operation *operation)
{
	atomic_fetch_add_explicit(&operation->parts, 1, memory_order_relaxed);
}

/* Ends a part, perhaps the operation with it. `error` is 0 or a negative errno. Called without a
 * lock. */
void tf_operation_end(struct tf_operation *operation, int error);

/*
 * Ends the part of the function that has started `parts` other ones; the operation may be gone
 * then. `error` is that of one that could not be started. Returns it if there was no other part,
 * and nothing is reported then. Otherwise the operation ends with it, and 0 is returned.
 */
int tf_operation_started(struct tf_operation *operation, size_t parts, int error);

#endif
